"""The settings of namespaces at the API (DESIGN 3, "Namespaces")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.catalog_client import ANALYST
from waybill.model.asset import TABLE

if TYPE_CHECKING:
    from tests.support.catalog_client import CatalogClient
    from tests.support.stack_in_memory import StackInMemory

ENGINEERS = "arn:aws:sts::000000000000:assumed-role/engineer/*"


def test_settings_are_replaced_whole_and_read_back(api: CatalogClient) -> None:
    settings = {"allowedNamespaces": ["company.platform"], "readers": ["*"], "writers": [ENGINEERS]}

    assert api.put("/namespaces/company.sales", settings).body == settings
    assert api.get("/namespaces/company.sales").body == settings
    assert api.put("/namespaces/company.sales", {"writers": [ENGINEERS]}).status == 200
    assert api.get("/namespaces/company.sales").body == {"writers": [ENGINEERS]}


def test_a_namespace_without_settings_is_open(api: CatalogClient) -> None:
    """Absent means open."""
    assert api.get("/namespaces/company.sales").body == {}


def test_faults_of_settings_are_named(api: CatalogClient) -> None:
    answer = api.put("/namespaces/company", {"allowedNamespaces": ["Company"], "readers": [" "], "writer": []})

    assert [fault.split(":")[0] for fault in answer.body["faults"]] == ["allowedNamespaces[0]", "readers[0]", "writer"]
    assert api.put("/namespaces/Company", {}).body["faults"][0].startswith("namespace: must start with a lower-case")


@pytest.fixture
def _closed(api: CatalogClient, stack: StackInMemory) -> None:
    """A namespace for engineers alone, an open one, and a Global asset."""
    api.put("/namespaces/company.finance", {"readers": [ENGINEERS], "writers": [ENGINEERS]})
    stack.write("ledger", namespace="company.finance.eu", owner="finance")
    stack.write("orders", namespace="company.sales", owner="finance")
    stack.write("countries", owner="finance")
    stack.record(
        namespace="company.finance.eu",
        assets={"inputs": [{"id": "ledger"}], "outputs": [{"id": "countries", "type": TABLE}]},
    )


@pytest.mark.usefixtures("_closed")
def test_search_and_get_hide_what_the_caller_may_not_read(api: CatalogClient, analyst: CatalogClient) -> None:
    """Row 38: children have the setting of their parent; a Global asset is never hidden."""
    assert api.get("/assets/search").ids == ["countries", "ledger", "orders"]
    for query in (
        {},
        {"page": "1"},
        {"sort": "updated:asc", "page": "1"},
        {"filters[metadata][EQUALS][owner]": "finance"},
    ):
        assert sorted(analyst.get("/assets/search", query).ids) == ["countries", "orders"]
    assert analyst.get("/assets/search", {"page": "1"}).body["total"] == 2
    assert analyst.get("/assets/search", {"filters[id][EQUALS]": "ledger"}).ids == []
    assert analyst.get("/assets/search", {"filters[namespace][PREFIX]": "company.finance"}).ids == []
    assert analyst.get("/assets", {"id": "ledger"}).ids == []
    assert api.get("/assets/ledger").status == 200
    assert analyst.get("/assets/ledger").status == 404


@pytest.mark.usefixtures("_closed")
def test_the_graph_leads_neither_to_nor_through_what_the_caller_may_not_read(
    api: CatalogClient, analyst: CatalogClient
) -> None:
    """Row 38."""
    assert api.get("/assets/countries/dependencies").body["upstream"] == ["ledger"]
    hidden = analyst.get("/assets/countries/dependencies").body
    assert (hidden["upstream"], [node["id"] for node in hidden["nodes"]]) == ([], ["countries", "load"])
    assert {node["namespace"] for node in hidden["nodes"]} == {None, "company.sales"}


@pytest.mark.usefixtures("_closed")
def test_runs_of_hidden_flows_and_of_hidden_assets_are_hidden(api: CatalogClient, analyst: CatalogClient) -> None:
    """Row 38."""
    for path in ("/assets/usages/search", "/assets/lineage-events/search"):
        assert {run["namespace"] for run in api.get(path).body["results"]} == {"company.sales", "company.finance.eu"}
        assert {run["namespace"] for run in analyst.get(path).body["results"]} == {"company.sales"}
        by_asset = {"filters[assetId][EQUALS]": "ledger"}
        assert len(api.get(path, by_asset).body["results"]) == 2
        assert analyst.get(path, by_asset).body["results"] == []


@pytest.mark.usefixtures("_closed")
def test_who_may_not_write_changes_nothing(analyst: CatalogClient, api: CatalogClient, stack: StackInMemory) -> None:
    """Row 38: 403, and the asset stays as it was."""
    api.put("/namespaces/company.finance", {"writers": [ENGINEERS]})
    before = stack.asset("ledger")
    refused = {
        "type": "forbidden",
        "title": "The namespace does not allow it",
        "status": 403,
        "detail": f"namespace company.finance.eu does not let {ANALYST} write; add it to its writers",
    }

    for answer in (
        analyst.put("/assets/ledger", {"owner": "x"}),
        analyst.put("/assets/ledger", {"namespace": "company.sales"}),
        analyst.put("/assets/orders", {"namespace": "company.finance.eu"}),
        analyst.post("/assets", {"id": "new", "type": TABLE, "namespace": "company.finance.eu"}),
        analyst.delete("/assets/ledger"),
        analyst.delete("/assets/by-ids", body=["orders", "ledger"]),
        analyst.post("/assets/ledger/lock", {}),
        analyst.delete("/assets/ledger/lock"),
        analyst.put("/namespaces/company.finance.eu", {}),
    ):
        assert (answer.status, answer.body) == (403, refused)
    found = analyst.delete("/assets/by-query", {"filters[metadata][EQUALS][owner]": "finance"}).body
    assert (found["count"], found["failed"]) == (2, [{"id": "ledger", "reason": refused["detail"]}])
    assert stack.asset("ledger") == before


def test_settings_hold_for_children_one_by_one(api: CatalogClient, analyst: CatalogClient) -> None:
    """A setting holds for the children that have none; a child with readers of its own keeps the writers above it."""
    api.put("/namespaces/company", {"readers": [ENGINEERS], "writers": [ENGINEERS]})
    api.put("/namespaces/company.open", {"readers": ["*"]})

    assert analyst.get("/namespaces/company.shut").status == 403
    assert analyst.get("/namespaces/company.open").status == 200
    assert analyst.put("/namespaces/company.open", {}).status == 403
    assert analyst.get("/namespaces/companyx").status == 200


def test_shipping_without_a_filter_needs_access_to_every_namespace(api: CatalogClient, stack: StackInMemory) -> None:
    """The first guide: "set one of these filters or allow the shipping namespace"."""
    api.put("/namespaces/company.finance", {"allowedNamespaces": ["company.sales"]})
    api.put("/namespaces/company.hr", {"allowedNamespaces": ["company"]})

    assert stack.namespaces.barring("company.platform") == ["company.finance"]
    assert stack.namespaces.barring("company.sales") == []
