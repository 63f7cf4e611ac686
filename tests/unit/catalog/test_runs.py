"""Usages and lineage events: found by asset, flow and time, and deleted (`kestra.md` 1.5, 1.6, 7.1)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from waybill.ids import uuid7
from waybill.model.asset import TABLE, AssetRef
from waybill.model.event import LineageEvent
from waybill.store.aws import client
from waybill.store.hours import Hours
from waybill.store.shards import hour_of

if TYPE_CHECKING:
    from tests.support.catalog_client import CatalogClient
    from tests.support.stack_in_memory import StackInMemory

USAGES, EVENTS = "/assets/usages/search", "/assets/lineage-events/search"


@pytest.fixture(autouse=True)
def _runs(stack: StackInMemory) -> None:
    """A run that loads, one that failed, and one of another flow."""
    both = {"inputs": [{"id": "shop"}], "outputs": [{"id": "orders", "type": TABLE}]}
    stack.record(taskRunId="r1", flowRevision=3, assets=both)
    stack.record(taskRunId="r2", state="FAILED", assets=both)
    stack.record(taskRunId="r3", flowId="report", namespace="company.bi", assets={"inputs": [{"id": "orders"}]})


def found(api: CatalogClient, path: str, **filters: str) -> list[str]:
    query = {f"filters[{name.replace('__', '][')}]": value for name, value in filters.items()}
    answer = api.get(path, query)
    assert answer.status == 200, answer.body
    return [result["taskRunId"] for result in answer.body["results"]]


def test_a_run_leaves_one_usage_for_each_asset_newest_first(api: CatalogClient) -> None:
    """Row 31."""
    results = api.get(USAGES).body["results"]

    assert [(usage["taskRunId"], usage["direction"], usage["assetId"]) for usage in results] == [
        ("r3", "READ", "orders"),
        ("r2", "WRITE", "orders"),
        ("r2", "READ", "shop"),
        ("r1", "WRITE", "orders"),
        ("r1", "READ", "shop"),
    ]
    assert results[3] == {
        "assetId": "orders",
        "direction": "WRITE",
        "namespace": "company.sales",
        "flowId": "load",
        "flowRevision": 3,
        "executionId": "execution-1",
        "taskId": "customers",
        "taskRunId": "r1",
        "created": results[3]["created"],
        "eventId": api.get(EVENTS).body["results"][2]["id"],
    }


@pytest.mark.parametrize(
    ("filters", "usages", "events"),
    [
        ({"assetId__EQUALS": "shop"}, ["r2", "r1"], ["r2", "r1"]),
        ({"assetId__IN": "orders,shop"}, ["r3", "r2", "r2", "r1", "r1"], ["r3", "r2", "r1"]),
        ({"assetId__EQUALS": "none"}, [], []),
        ({"assetId__STARTS_WITH": "sh"}, ["r2", "r1"], ["r2", "r1"]),
        ({"namespace__EQUALS": "company.bi"}, ["r3"], ["r3"]),
        ({"namespace__PREFIX": "company"}, ["r3", "r2", "r2", "r1", "r1"], ["r3", "r2", "r1"]),
        ({"flowId__EQUALS": "report", "assetId__EQUALS": "orders"}, ["r3"], ["r3"]),
        ({"taskRunId__IN": "r1,r3", "assetId__EQUALS": "orders"}, ["r3", "r1"], ["r3", "r1"]),
        ({"flowRevision__EQUALS": "3"}, ["r1", "r1"], ["r1"]),
        ({"created__GREATER_THAN": "2999-01-01T00:00:00Z"}, [], []),
        ({"created__LESS_THAN": "2026-01-01T00:00:00Z"}, [], []),
        ({"q__EQUALS": "REPORT"}, ["r3"], ["r3"]),
    ],
)
def test_runs_are_found_by_asset_flow_and_time(
    api: CatalogClient, filters: dict[str, str], usages: list[str], events: list[str]
) -> None:
    assert found(api, USAGES, **filters) == usages
    assert found(api, EVENTS, **filters) == events


def test_what_only_one_of_them_knows(api: CatalogClient) -> None:
    """Row 30: an event has a state; row 31: a usage has a direction."""
    assert found(api, EVENTS, state__EQUALS="FAILED") == ["r2"]
    assert found(api, USAGES, direction__EQUALS="READ", assetId__EQUALS="orders") == ["r3"]
    assert api.get(USAGES, {"filters[state][EQUALS]": "FAILED"}).status == 400


@pytest.mark.parametrize("path", [USAGES, EVENTS])
@pytest.mark.parametrize("filters", [{}, {"filters[assetId][IN]": "orders,shop"}])
def test_a_walk_by_token_gives_everything_once(api: CatalogClient, path: str, filters: dict[str, str]) -> None:
    whole = api.get(path, filters).body["results"]
    seen: list[dict[str, Any]] = []
    query = filters | {"size": "1"}
    while (answer := api.get(path, query).body)["nextToken"]:
        seen += answer["results"]
        query["nextToken"] = answer["nextToken"]

    assert seen + answer["results"] == whole
    assert answer["total"] == len(whole)


def test_pages_by_number_have_an_exact_total(api: CatalogClient) -> None:
    last = api.get(EVENTS, {"page": "2", "size": "2"}).body

    assert ([event["taskRunId"] for event in last["results"]], last["total"]) == (["r1"], 3)
    first = api.get(EVENTS, {"sort": "created:asc", "size": "1"}).body
    assert [event["taskRunId"] for event in first["results"]] == ["r1"]


def test_usages_are_deleted_for_good_and_the_events_stay(api: CatalogClient, stack: StackInMemory) -> None:
    answer = api.delete("/assets/usages/by-query", {"filters[assetId][EQUALS]": "orders"})

    assert answer.body == {"count": 3, "failed": [], "complete": True}
    assert found(api, USAGES) == ["r2", "r1"]
    assert len(stack.events()) == 3


def test_events_are_deleted_for_good_and_the_usages_stay(api: CatalogClient, stack: StackInMemory) -> None:
    answer = api.delete("/assets/lineage-events/by-query", {"filters[state][EQUALS]": "FAILED"})

    assert answer.body == {"count": 1, "failed": [], "complete": True}
    assert [event.task_run_id for event in stack.events()] == ["r1", "r3"]
    assert found(api, USAGES, assetId__EQUALS="shop") == ["r2", "r1"]
    assert api.get("/assets/orders/dependencies").body["upstream"] == ["shop"]


@pytest.mark.parametrize("path", ["/assets/usages/by-query", "/assets/lineage-events/by-query"])
def test_without_filters_nothing_is_deleted(api: CatalogClient, path: str) -> None:
    assert api.delete(path).status == 400
    assert len(api.get(USAGES).body["results"]) == 5


def test_events_of_past_hours_are_found_in_their_order(api: CatalogClient, stack: StackInMemory) -> None:
    """Across hours and shards, with stretches in which nothing ran."""
    now = datetime.now(UTC)
    for hours in (1, 30, 31):
        put_event(stack, now - timedelta(hours=hours), f"old-{hours}")
    bounds = {"created__GREATER_THAN_OR_EQUAL_TO": (now - timedelta(hours=30, minutes=30)).isoformat()}

    assert found(api, EVENTS) == ["r3", "r2", "r1", "old-1", "old-30", "old-31"]
    assert found(api, EVENTS, **bounds) == ["r3", "r2", "r1", "old-1", "old-30"]


def put_event(stack: StackInMemory, moment: datetime, run: str) -> None:
    """Put an event into the log as if it had been recorded then."""
    event = LineageEvent(
        id=run,
        namespace="company.sales",
        flow_id="load",
        execution_id="e",
        task_id="t",
        task_run_id=run,
        state="SUCCESS",
        start_date="2026-12-01T09:00:00.000Z",
        end_date="2026-12-01T09:00:00.000Z",
        inputs=(AssetRef("shop"),),
    )
    item = {"bucket": {"S": f"{hour_of(moment)}#2"}, "id": {"S": uuid7(moment)}, "body": {"S": event.to_body()}}
    stack.dynamodb.put_item(TableName=stack.settings.lineage_table, Item=item)
    Hours(stack.dynamodb, stack.settings.catalog_table, timedelta(days=400)).add([hour_of(moment)])


def test_an_event_whose_body_is_gone_is_passed_over(api: CatalogClient, stack: StackInMemory) -> None:
    table = stack.settings.lineage_table
    dynamodb = client("dynamodb")
    (newest, *_) = sorted(
        (item for item in dynamodb.scan(TableName=table)["Items"] if "body" in item),
        key=lambda item: item["id"]["S"],
        reverse=True,
    )
    del newest["body"]
    dynamodb.put_item(TableName=table, Item=newest | {"object": {"S": "events/gone.json"}})

    assert found(api, EVENTS) == ["r2", "r1"]
    assert found(api, EVENTS, assetId__EQUALS="orders") == ["r2", "r1"]
