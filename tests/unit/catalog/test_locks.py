"""Locks (`kestra.md` 6.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.catalog_client import ANALYST, ENGINEER

if TYPE_CHECKING:
    from tests.support.catalog_client import CatalogClient
    from tests.support.stack_in_memory import StackInMemory


@pytest.fixture(autouse=True)
def _orders(stack: StackInMemory) -> None:
    stack.write("lake.orders", owner="sales")


def test_a_lock_says_who_holds_the_asset_until_when(api: CatalogClient) -> None:
    """Rows 71 and 72."""
    lock = api.post("/assets/lake.orders/lock", {"ttl": "PT5M"}).body

    assert lock == {
        "lockedUntil": lock["lockedUntil"],
        "acquiredAt": lock["acquiredAt"],
        "username": ENGINEER,
        "ownerType": "USER",
    }
    assert api.get("/assets/lake.orders").body["lock"] == lock


def test_the_lock_of_an_execution_names_it(api: CatalogClient) -> None:
    """Row 71."""
    body = {"executionId": "e1", "flowId": "load", "flowNamespace": "company.sales", "taskRunId": "r1"}
    lock = api.post("/assets/lake.orders/lock", body).body

    assert (lock["ownerType"], lock["executionId"], lock["flowId"]) == ("EXECUTION", "e1", "load")


def test_while_it_holds_nobody_else_writes(api: CatalogClient, analyst: CatalogClient, stack: StackInMemory) -> None:
    """Rows 72 and 73: 423 with a problem that names the holder and the end."""
    until = api.post("/assets/lake.orders/lock", {"ttl": "PT5M"}).body["lockedUntil"]
    before = stack.asset("lake.orders")

    for answer in (
        analyst.put("/assets/lake.orders", {"owner": "x"}),
        analyst.delete("/assets/lake.orders"),
        analyst.delete("/assets/by-ids", body=["lake.orders"]),
        analyst.post("/assets/lake.orders/lock", {"ttl": "PT1H"}),
    ):
        assert (answer.status, answer.body) == (
            423,
            {
                "type": "resource-leased",
                "title": "Somebody holds the asset",
                "status": 423,
                "detail": f"lake.orders is locked by {ENGINEER} until {until}",
            },
        )
    for purge in ("true", "false"):
        found = analyst.delete("/assets/by-query", {"filters[id][EQUALS]": "lake.orders", "purge": purge}).body
        assert (found["count"], [failed["id"] for failed in found["failed"]]) == (0, ["lake.orders"])
    assert stack.write("lake.orders", owner="y")["state"] == "WARNING"
    assert stack.asset("lake.orders") == before


def test_its_owner_may_write(api: CatalogClient) -> None:
    """Row 72."""
    api.post("/assets/lake.orders/lock", {"ttl": "PT5M"})

    assert api.put("/assets/lake.orders", {"owner": "x"}).body["metadata"] == {"owner": "x"}


def test_the_same_owner_extends_it(api: CatalogClient) -> None:
    """Row 71."""
    first = api.post("/assets/lake.orders/lock", {"ttl": "PT5M"}).body
    second = api.post("/assets/lake.orders/lock", {"ttl": "PT1H"}).body

    assert first["lockedUntil"] < second["lockedUntil"]
    assert api.get("/assets/lake.orders").body["lock"] == second


def test_an_execution_gives_back_its_own_lock_alone_and_may_always_ask(api: CatalogClient) -> None:
    """Row 71."""
    api.post("/assets/lake.orders/lock", {"executionId": "e1"})

    assert api.delete("/assets/lake.orders/lock", {"executionId": "e2"}).status == 204
    assert "lock" in api.get("/assets/lake.orders").body
    assert api.delete("/assets/lake.orders/lock", {"executionId": "e1"}).status == 204
    assert "lock" not in api.get("/assets/lake.orders").body
    assert api.delete("/assets/lake.orders/lock", {"executionId": "e1"}).status == 204


def test_unlocking_without_an_execution_is_forced(api: CatalogClient, analyst: CatalogClient) -> None:
    """Row 72."""
    api.post("/assets/lake.orders/lock", {"executionId": "e1"})

    assert analyst.delete("/assets/lake.orders/lock").status == 204
    assert analyst.post("/assets/lake.orders/lock", {}).body["username"] == ANALYST


@pytest.mark.parametrize("ttl", ["PT0S", "P8D", "5 minutes", "P99999999999D"])
def test_a_lock_lasts_a_week_at_most(api: CatalogClient, ttl: str) -> None:
    answer = api.post("/assets/lake.orders/lock", {"ttl": ttl})

    assert (answer.status, answer.body["faults"][0].split(":")[0]) == (400, "ttl")


def test_locked_assets_can_be_searched_for(api: CatalogClient, stack: StackInMemory) -> None:
    """Row 74."""
    stack.write("lake.payments")
    api.post("/assets/lake.orders/lock", {})

    assert api.get("/assets/search", {"filters[locked][EQUALS]": "true"}).ids == ["lake.orders"]
    assert api.get("/assets/search", {"filters[locked][EQUALS]": "false"}).ids == ["lake.payments"]
    api.delete("/assets/lake.orders/lock")
    assert api.get("/assets/search", {"filters[locked][EQUALS]": "true"}).ids == []
