"""The graph of lineage (`kestra.md` 1.7, 7.1)."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from waybill.catalog.caller import Caller
from waybill.catalog.graph import LineageGraph
from waybill.model.asset import TABLE, Asset
from waybill.model.usage import Usage
from waybill.store.namespaces import NamespaceRules
from waybill.store.usages import UsageStore

if TYPE_CHECKING:
    from tests.support.catalog_client import CatalogClient
    from tests.support.stack_in_memory import StackInMemory


def run(stack: StackInMemory, task: str, reads: list[str], writes: list[str], **changes: Any) -> None:
    """Record a run of its own."""
    run.count = getattr(run, "count", 0) + 1  # type: ignore[attr-defined]
    assets = {
        "inputs": [{"id": asset_id} for asset_id in reads],
        "outputs": [{"id": asset_id, "type": TABLE} for asset_id in writes],
    }
    stack.record(taskId=task, taskRunId=f"{task}-{run.count}", **({"assets": assets} | changes))  # type: ignore[attr-defined]


def graph(api: CatalogClient, asset_id: str, **query: str) -> dict[str, Any]:
    body: dict[str, Any] = api.get(f"/assets/{asset_id}/dependencies", query).body
    return body


def edges(found: dict[str, Any]) -> list[str]:
    return [f"{edge['source']} {edge['relation']} {edge['target']}" for edge in found["edges"]]


def test_a_flow_with_one_input_and_one_output_is_three_nodes_and_two_edges(
    api: CatalogClient, stack: StackInMemory
) -> None:
    """Rows 77 and 78."""
    run(stack, "load", ["shop"], ["orders"])

    assert graph(api, "orders") == {
        "nodes": [
            {"uid": "asset/orders", "namespace": None, "id": "orders", "type": "ASSET"},
            {"uid": "asset/shop", "namespace": "company.sales", "id": "shop", "type": "ASSET"},
            {"uid": "flow/company.sales/load", "namespace": "company.sales", "id": "load", "type": "FLOW"},
        ],
        "edges": [
            {"source": "asset/shop", "target": "asset/orders", "relation": "USED_BY"},
            {"source": "flow/company.sales/load", "target": "asset/orders", "relation": "UPSERT"},
        ],
        "upstream": ["shop"],
        "downstream": [],
        "complete": True,
    }


@pytest.fixture
def _chain(stack: StackInMemory) -> None:
    """Three steps, and a side branch."""
    run(stack, "extract", ["a"], ["b"])
    run(stack, "transform", ["b"], ["c", "side"])
    run(stack, "publish", ["c"], ["d"])


@pytest.mark.usefixtures("_chain")
def test_one_step_or_all_the_way(api: CatalogClient) -> None:
    """Rows 77 and 79."""
    one, every = graph(api, "c"), graph(api, "c", expandAll="true")

    assert (one["upstream"], one["downstream"]) == (["b"], ["d"])
    assert (every["upstream"], every["downstream"]) == (["b", "a"], ["d"])
    assert [node["id"] for node in every["nodes"] if node["type"] == "ASSET"] == ["a", "b", "c", "d"]


@pytest.mark.usefixtures("_chain")
def test_what_lies_upstream_can_be_left_out(api: CatalogClient) -> None:
    """Row 77."""
    found = graph(api, "b", expandAll="true", destinationOnly="true")

    assert (found["upstream"], found["downstream"]) == ([], ["c", "side", "d"])
    assert "asset/a" not in [node["uid"] for node in found["nodes"]]


def test_a_cycle_ends_where_it_began(api: CatalogClient, stack: StackInMemory) -> None:
    run(stack, "there", ["a"], ["b"])
    run(stack, "back", ["b"], ["a"])
    run(stack, "self", ["a"], ["a"])

    found = graph(api, "a", expandAll="true")

    assert (found["upstream"], found["downstream"]) == (["b"], ["b"])
    assert [edge for edge in edges(found) if "USED_BY" in edge] == [
        "asset/a USED_BY asset/a",
        "asset/a USED_BY asset/b",
        "asset/b USED_BY asset/a",
    ]


def test_bundles_of_one_run_do_not_mix(api: CatalogClient, stack: StackInMemory) -> None:
    """Row 29: no cartesian product."""
    emits = [
        {"inputs": [{"id": f"in-{number}"}], "outputs": [{"id": f"out-{number}", "type": TABLE}]} for number in (1, 2)
    ]
    stack.record(assets={"enableAuto": True}, emits=emits)

    assert graph(api, "in-1")["downstream"] == ["out-1"]
    assert graph(api, "out-2")["upstream"] == ["in-2"]


def test_a_flow_that_reads_and_writes_nothing_is_not_forgotten(api: CatalogClient, stack: StackInMemory) -> None:
    """`kestra.md` 10.13: "what depends on this" must not under-report."""
    stack.write("orders")
    run(stack, "report", ["orders"], [])

    assert edges(graph(api, "orders")) == [
        "asset/orders USED_BY flow/company.sales/load",
        "flow/company.sales/load UPSERT asset/orders",
    ]


def test_what_was_deleted_or_never_written_is_not_in_the_graph(api: CatalogClient, stack: StackInMemory) -> None:
    run(stack, "load", ["a"], ["gone", "kept"])
    run(stack, "load", ["a"], ["never"], state="FAILED")
    stack.delete("gone")

    assert graph(api, "a")["downstream"] == ["kept"]


def test_many_runs_of_one_job_cost_few_reads(stack: StackInMemory) -> None:
    """The rows of the same edges are jumped over."""
    usages = UsageStore(CountingQueries(stack.dynamodb), stack.settings.catalog_table, timedelta(days=1))
    key = ("2026-12-01T09#0", "01a23113-7d5a-7356-af9b-a8369f1f849a")
    for job, written, runs in (("hourly", "b", 500), ("weekly", "c", 1)):
        edge = Usage("a", "R", job, "0123456789abcdef", "", {"log": "/".join(key)}, (written,))
        usages.put_all([replace(edge, event_id=str(uuid.uuid4())) for _ in range(runs)])

    shapes = list(usages.one_of_each_shape("a", "R"))

    assert [usage.neighbours for usage in shapes] == [("b",), ("c",)]
    assert usages._client.count == 2


class CountingQueries:
    """A client that counts its queries."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.count = 0

    def query(self, **arguments: Any) -> Any:
        self.count += 1
        return self._client.query(**arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def test_a_run_of_many_assets_has_its_edges_without_a_row_for_each(api: CatalogClient, stack: StackInMemory) -> None:
    """n + m rows, not n times m: each names the others only while they are few."""
    reads, writes = ([f"{side}-{number:03}" for number in range(120)] for side in ("in", "out"))
    run(stack, "wide", reads, writes)

    assert len(stack.uses()) == 240
    assert graph(api, "in-007")["downstream"] == writes
    assert graph(api, "out-007")["upstream"] == reads
    rows = [item for item in stack.items(stack.settings.catalog_table) if item["sk"]["S"].startswith("use#")]
    assert max(len(str(row)) for row in rows) < 1000


def test_a_graph_of_ten_thousand_assets_is_found_whole(stack: StackInMemory) -> None:
    """A tree of that size, through stores that hold it in memory: what is shown here is the walk."""
    graph_of = LineageGraph(TreeAssets(), TreeUsages(10_000), Caller("anybody", NamespaceRules(stack.namespaces)))  # type: ignore[arg-type]

    found = graph_of.around("0", destination_only=True, expand_all=True)

    assert (len(found.downstream), found.complete) == (9_999, True)
    assert len([edge for edge in found.edges if edge[2] == "USED_BY"]) == 9_999


def test_a_graph_that_takes_too_long_is_given_as_far_as_it_got(stack: StackInMemory) -> None:
    ticks = iter(range(1000))
    caller = Caller("anybody", NamespaceRules(stack.namespaces))
    graph_of = LineageGraph(TreeAssets(), TreeUsages(10_000), caller, seconds=3, clock=lambda: float(next(ticks)))  # type: ignore[arg-type]

    found = graph_of.around("0", destination_only=True, expand_all=True)

    assert 0 < len(found.downstream) < 9_999
    assert found.complete is False


class TreeAssets:
    """Assets of whatever id is asked for."""

    def get_many(self, ids: Any) -> dict[str, Any]:
        return {asset_id: Asset(id=asset_id) for asset_id in ids}


class TreeUsages:
    """Each asset is read by one job, which writes four others, until there are so many."""

    def __init__(self, size: int) -> None:
        self._size = size

    def one_of_each_shape(self, asset_id: str, direction: Any) -> list[Any]:
        details = {"namespace": "company", "flowId": "grow"}
        children = range(4 * int(asset_id) + 1, min(4 * int(asset_id) + 5, self._size))
        names = tuple(str(child) for child in children)
        return [Usage(asset_id, direction, f"job-{asset_id}", "shape", "event", details, names)] if names else []

    def neighbours(self, usage: Any) -> Any:
        return usage.neighbours
