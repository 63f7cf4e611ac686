"""Lineage shipped to Marquez: to a stand-in that answers by measured tables, to a real one where MARQUEZ_URL is set."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.delivering import QUICK, asset, delivery, ship
from tests.support.marquez import HTML, Marquez
from tests.support.pipeline import Pipeline, reports_of
from tests.support.shared import shared
from waybill.export.openlineage.patience import Patience

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.delivering import Shipped
    from tests.support.stack_in_memory import StackInMemory
    from waybill.export.ports import Delivery

LISTS = ("namespaces", "jobs", "sources", "namespaces/{ns}/jobs", "namespaces/{ns}/datasets")
BOTH_NAMES = {"odd": {"namespace": "ns", "name": "n"}}


@dataclass
class Server:
    """A Marquez to ship to and to ask.

    Attributes:
        namespace: of this test alone, so that a server that others use does not matter.
    """

    url: str
    namespace: str

    def ask(self, path: str) -> Any:
        """Read from its API; None where it says that there is nothing."""
        answer = httpx.get(f"{self.url}/api/v1/{path}", timeout=60)
        if answer.status_code == 404:
            return None
        answer.raise_for_status()
        return answer.json()

    def job(self, name: str, namespace: str | None = None) -> Any:
        """Return a job."""
        return self.ask(f"namespaces/{_quoted(namespace or self.namespace)}/jobs/{_quoted(name)}")

    def run(self, run_id: str) -> Any:
        """Return a run."""
        return self.ask(f"jobs/runs/{run_id}")

    def dataset(self, name: str, namespace: str | None = None) -> Any:
        """Return a dataset."""
        return self.ask(f"namespaces/{_quoted(namespace or self.namespace)}/datasets/{_quoted(name)}")

    def reached_from(self, dataset: str, namespace: str) -> set[str]:
        """Return the nodes downstream of a dataset."""
        start = f"dataset:{namespace}:{dataset}"
        graph = self.ask(f"lineage?nodeId={_quoted(start)}&depth=20")["graph"]
        after = {node["id"]: [edge["destination"] for edge in node["outEdges"]] for node in graph}
        reached: set[str] = set()
        ahead = [start]
        while ahead:
            new = [there for there in after.get(ahead.pop(), ()) if there not in reached]
            reached |= set(new)
            ahead += new
        return reached

    def lists(self) -> dict[str, int]:
        """Return what each list answers."""
        paths = [path.format(ns=self.namespace) for path in LISTS]
        return {path: httpx.get(f"{self.url}/api/v1/{path}", timeout=60).status_code for path in paths}

    def ship(self, parcels: list[Delivery], patience: Patience = QUICK, **properties: Any) -> Shipped:
        """Ship deliveries to it."""
        return asyncio.run(ship(self.url, parcels, patience, 120, **properties))

    def delivery(self, number: int = 1, job: str = "a", **properties: Any) -> Delivery:
        """Make a delivery in the test's own namespace."""
        for side in ("inputs", "outputs"):
            assets = properties.get(side, [asset("raw.orders" if side == "inputs" else "orders")])
            properties[side] = [one.model_copy(update={"namespace": self.namespace}) for one in assets]
        run = str(uuid.uuid4())
        return delivery(number, job, **{"namespace": self.namespace, "task_run_id": run, **properties})


@pytest.fixture
def stand_in() -> Iterator[Marquez]:
    """The stand-in, empty."""
    with Marquez().listening() as marquez:
        yield marquez


@pytest.fixture
def server(stand_in: Marquez) -> Server:
    """The real Marquez that MARQUEZ_URL names, else the stand-in."""
    return Server(os.environ.get("MARQUEZ_URL", stand_in.url).rstrip("/"), f"waybill.t{uuid.uuid4().hex[:8]}")


@pytest.fixture
def own(stand_in: Marquez) -> Server:
    """The stand-in, for what cannot be done to a real one."""
    return Server(stand_in.url, "waybill.test")


def test_a_real_dbt_run_arrives_as_it_was(server: Server, stack: StackInMemory) -> None:
    reports = reports_of(shared("data/task-runs/jaffle_shop.jsonl"))
    for report in reports:
        report["namespace"] = server.namespace
        for output in report["assets"]["outputs"]:
            output["namespace"] = server.namespace
    pipeline = Pipeline(stack, {"uri": server.url})
    events = pipeline.record(reports)

    answer = pipeline.ship()

    assert answer["outputs"]["backend"] == {"delivered": 8, "rejected": 0, "skipped": 0, "retried": 0}
    for event, run in zip(events, pipeline.run_ids(), strict=True):
        assert server.run(run)["state"] == "COMPLETED"
        job = server.job(f"{event.flow_id}.{event.task_id}")
        assert job["latestRun"]["id"] == run
        assert sorted(item["name"] for item in job["inputs"]) == sorted(ref.id for ref in event.inputs)
        assert [item["name"] for item in job["outputs"]] == [ref.id for ref in event.outputs]
    reached = server.reached_from("jaffle_shop.main.raw_orders", server.namespace)
    assert f"dataset:{server.namespace}:jaffle_shop.main.customers" in reached
    assert set(server.lists().values()) == {200}


@pytest.mark.parametrize(
    ("state", "expected"),
    [("SUCCESS", "COMPLETED"), ("WARNING", "COMPLETED"), ("FAILED", "FAILED"), ("KILLED", "ABORTED")],
)
def test_the_state_of_a_run(server: Server, state: str, expected: str) -> None:
    parcel = server.delivery(state=state)
    assert server.ship([parcel]).counts == (1, 0, 0)
    assert server.run(parcel.event.task_run_id)["state"] == expected


def test_start_events_give_times_and_durations(server: Server) -> None:
    parcel = server.delivery()
    assert server.ship([parcel], startEvents=True).counts == (1, 0, 0)
    run = server.run(parcel.event.task_run_id)
    assert run["state"] == "COMPLETED"
    assert run["startedAt"].startswith("2026-07-01T09:00:00")
    assert run["endedAt"].startswith("2026-07-01T09:01:00")
    assert run["durationMs"] == 60_000


def test_descriptions_columns_and_owners_are_shown(server: Server) -> None:
    metadata = {"owner": "data", "columns": [{"name": "id", "type": "int"}]}
    output = asset("orders", description="One row per order", metadata=metadata)
    server.ship([server.delivery(outputs=[output])])
    dataset = server.dataset("orders")
    assert dataset["description"] == "One row per order"
    assert [(field["name"], field["type"]) for field in dataset["fields"]] == [("id", "int")]
    assert dataset["facets"]["ownership"]["owners"] == [{"name": "data"}]
    assert dataset["facets"]["waybill_asset"]["id"] == "orders"


def test_a_failed_run_keeps_the_edges_of_its_job(server: Server) -> None:
    server.ship([server.delivery(1), server.delivery(2, state="FAILED", error={"message": "boom"})])
    job = server.job("orders.a")
    assert job["latestRun"]["state"] == "FAILED"
    assert [item["name"] for item in job["inputs"]] == ["raw.orders"]
    assert [item["name"] for item in job["outputs"]] == ["orders"]


def test_emoji_and_events_of_220_kb_arrive(server: Server) -> None:
    emoji = asset("emoji", type="odd", metadata={"ns": "postgres://h:5432", "n": f"orders 😀 {server.namespace}"})
    large = asset("large", description="☃" * 75_000)
    parcels = [server.delivery(1, "emoji", outputs=[emoji]), server.delivery(2, "large", outputs=[large])]
    assert server.ship(parcels, mappings=BOTH_NAMES).counts == (2, 0, 0)
    assert server.dataset(f"orders 😀 {server.namespace}", "postgres://h:5432") is not None
    assert server.dataset("large")["description"] == "☃" * 75_000
    assert set(server.lists().values()) == {200}


POISON = {
    "a space": ("lake house", "n"),
    "a percent sign": ("lake%20house", "n"),
    "a tilde": ("lake~house", "n"),
    "a hash": ("lake#house", "n"),
    "a question mark": ("lake?house", "n"),
    "an ampersand": ("lake&house", "n"),
    "a comma": ("lake,house", "n"),
    "a quote": ('lake"house', "n"),
    "a bracket": ("lake[house", "n"),
    "no ASCII": ("läke", "n"),
    "1,025 characters": ("x" * 1025, "n"),
    "NUL in the namespace": ("lake\x00house", "n"),
    "NUL in the name": ("lakehouse", "a\x00b"),
    "a name too long for an index": ("lakehouse", "".join(uuid.uuid4().hex for _ in range(100))),
}


def test_poison_becomes_dead_letters_while_the_rest_arrives_and_no_list_breaks(server: Server) -> None:
    parcels = []
    for number, (kind, (namespace, name)) in enumerate(POISON.items()):
        bad = asset(f"bad.{number}", type="odd", metadata={"ns": namespace, "n": name}, description=kind)
        parcels += [server.delivery(number, "poison", outputs=[bad]), server.delivery(number, "good")]
    dirty = asset("dirty", description="a\x00b\ud800c", metadata={"note": "\x00", "nothing": None})
    parcels.append(server.delivery(99, "dirty", outputs=[dirty]))

    shipped = server.ship(parcels, mappings=BOTH_NAMES)

    assert shipped.error is None
    assert shipped.counts == (len(POISON) + 1, len(POISON), 0)
    assert [letter.event["outputs"][0]["id"] for letter in shipped.letters] == [f"bad.{n}" for n in range(len(POISON))]
    assert all(letter.attempts == 0 for letter in shipped.letters)
    assert server.job("orders.poison") is None
    assert server.job("orders.good")["latestRun"]["state"] == "COMPLETED"
    assert server.dataset("dirty")["description"] == "a\ufffdb\ufffdc"
    assert set(server.lists().values()) == {200}


def test_shipping_again_changes_nothing(server: Server) -> None:
    parcels = [server.delivery(number, f"job{number % 3}") for number in range(9)]
    server.ship(parcels)
    before = [server.job(f"orders.job{number}") for number in range(3)]
    server.ship(parcels)
    after = [server.job(f"orders.job{number}") for number in range(3)]
    assert [_without_times(job) for job in after] == [_without_times(job) for job in before]


def test_answers_that_refuse_an_event_make_dead_letters(own: Server, stand_in: Marquez) -> None:
    refusals = {
        "orders.unreadable": (500, b'{"code": 400, "message": "Unable to process JSON"}'),
        "orders.invalid": (422, b'{"errors": ["x"]}'),
        "orders.bad": (400, HTML),
    }
    stand_in.hook = lambda event: refusals.get(event["job"]["name"])
    parcels = [own.delivery(1, job) for job in ("good", "unreadable", "invalid", "bad")]
    shipped = own.ship(parcels)
    assert shipped.counts == (1, 3, 0)
    assert sorted(letter.status or 0 for letter in shipped.letters) == [400, 422, 500]
    assert stand_in.posts == 4


def test_poison_that_looks_like_an_outage_is_told_by_asking_for_a_run(own: Server, stand_in: Marquez) -> None:
    """Nothing else is under way, so the server itself is asked; no event of ours but the real ones is posted."""
    stand_in.hook = lambda event: (500, HTML) if event["job"]["name"] == "orders.poison" else None
    shipped = own.ship([own.delivery(1, "poison"), own.delivery(2, "poison"), own.delivery(3, "good")])
    assert shipped.error is None
    assert shipped.counts == (1, 2, 0)
    assert {letter.reason for letter in shipped.letters} == {"HTTP 500 in 7 tries while the backend was well"}
    assert [event["job"]["name"] for event in stand_in.events] == ["orders.good"]


@pytest.mark.parametrize("jobs", [1, 2, 8])
def test_an_outage_with_its_aftermath_loses_and_dead_letters_nothing(own: Server, stand_in: Marquez, jobs: int) -> None:
    """The database is down for 1.5 s; for 1.5 s more every second answer is still the same page, of whatever event."""
    parcels = [own.delivery(number, f"job{number % jobs}") for number in range(160)]
    patience = Patience(base=0.01, cap=0.1, recovery=2.0)
    state = {"since": 0.0, "turn": 0}

    def hook(_: dict[str, Any]) -> tuple[int, bytes] | None:
        if stand_in.posts == 60:
            state["since"] = time.monotonic()
        passed = time.monotonic() - state["since"]
        stand_in.down = passed < 1.5
        state["turn"] += 1
        return (500, HTML) if stand_in.down or (passed < 3 and state["turn"] % 2) else None

    stand_in.hook = hook
    shipped = own.ship(parcels, patience)
    assert shipped.error is None
    assert shipped.letters == []
    stored = sorted(event["run"]["runId"] for event in stand_in.events)
    assert stored == sorted(parcel.event.task_run_id for parcel in parcels)


def test_an_outage_that_lasts_stops_the_exporter_and_dead_letters_nothing(own: Server, stand_in: Marquez) -> None:
    stand_in.down = True
    shipped = own.ship([own.delivery(number, f"job{number}") for number in range(6)], timeout={"giveUp": 1})
    assert str(shipped.error) == "HTTP 500: it is in trouble; nothing got through for 1 s, the next run tries again"
    assert shipped.letters == []
    assert stand_in.events == []


def test_an_unknown_outcome_is_read_back_when_asked_for(own: Server, stand_in: Marquez) -> None:
    parcels = [own.delivery(number) for number in range(4)]
    stand_in.reset_after_storing = 2
    shipped = own.ship(parcels, verifyUnknown=True)
    assert shipped.outputs == {"delivered": 4, "rejected": 0, "skipped": 0, "retried": 0}
    assert [event["run"]["runId"] for event in stand_in.events] == [parcel.event.task_run_id for parcel in parcels]


def test_without_it_the_event_is_sent_again(own: Server, stand_in: Marquez) -> None:
    stand_in.reset_after_storing = 1
    parcel = own.delivery()
    assert own.ship([parcel]).outputs["retried"] == 1
    assert [event["run"]["runId"] for event in stand_in.events] == [parcel.event.task_run_id] * 2


def _without_times(job: dict[str, Any]) -> dict[str, Any]:
    run = {name: job["latestRun"][name] for name in ("id", "state")}
    return {"inputs": job["inputs"], "outputs": job["outputs"], "latestRun": run}


def _quoted(text: str) -> str:
    return quote(text, safe="")
