"""Assets by hand: create, get, change, delete (`kestra.md` 6.3, 6.5, 7.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from waybill.model.asset import EXTERNAL, TABLE

if TYPE_CHECKING:
    from tests.support.catalog_client import CatalogClient
    from tests.support.stack_in_memory import StackInMemory

NAMESPACE = "must start with a lower-case letter or digit and hold only lower-case letters, digits and . _ -"
NOT_FOUND = {
    "type": "not-found",
    "title": "There is no such asset",
    "status": 404,
    "detail": "there is no asset lake.orders",
}


def times(answer: Any) -> dict[str, Any]:
    return {"created": answer.body["created"], "updated": answer.body["updated"]}


def test_set_creates_an_asset_and_records_no_lineage(api: CatalogClient, stack: StackInMemory) -> None:
    """Row 64."""
    created = api.post("/assets", {"id": "lake.orders", "type": TABLE, "namespace": "company", "owner": "sales"})

    assert (created.status, created.body) == (
        200,
        {
            "id": "lake.orders",
            "type": TABLE,
            "namespace": "company",
            "metadata": {"owner": "sales"},
            "deleted": False,
            **times(created),
        },
    )
    assert api.get("/assets/lake.orders").body == created.body
    assert (stack.events(), stack.uses()) == ([], [])


def test_set_fails_when_the_asset_exists_and_leaves_it_as_it_was(api: CatalogClient, stack: StackInMemory) -> None:
    """Row 64: a taken id is 409."""
    stack.write("lake.orders", owner="sales")
    before = stack.asset("lake.orders")

    answer = api.post("/assets", {"id": "lake.orders", "type": "Other", "owner": "finance"})

    assert answer.status == 409
    assert answer.body["detail"] == "there is an asset lake.orders already; change it with PUT /assets/lake.orders"
    assert stack.asset("lake.orders") == before


def test_a_body_that_is_no_asset_is_refused_with_every_fault(api: CatalogClient, stack: StackInMemory) -> None:
    answer = api.post("/assets", {"id": ":", "namespace": "Company", "metadata": [], "displayName": 3})

    assert (answer.status, answer.body["faults"]) == (
        400,
        [
            "id: must start with a letter or digit and hold only letters, digits and . _ : -",
            "type: is required",
            f"namespace: {NAMESPACE}",
            "displayName: must be a valid string",
            "metadata: must be a JSON object",
        ],
    )
    assert stack.items(stack.settings.catalog_table) == []


@pytest.mark.parametrize("body", ["", "{", "[1]", "null", "[" * 5000])
def test_a_body_that_is_no_json_object_is_refused(api: CatalogClient, body: str) -> None:
    assert api.ask("POST", "/assets", body=body).status == 400


def test_an_update_follows_the_rule_of_outputs(api: CatalogClient, stack: StackInMemory) -> None:
    """Rows 20 and 21."""
    stack.write("lake.orders", namespace="company", owner="sales", system="s3")

    answer = api.put("/assets/lake.orders", {"description": "Orders.", "metadata": {"system": None}})

    assert answer.body == {
        "id": "lake.orders",
        "type": TABLE,
        "namespace": "company",
        "description": "Orders.",
        "metadata": {"owner": "sales"},
        "deleted": False,
        **times(answer),
    }
    assert api.get("/assets/lake.orders").body == answer.body


def test_a_namespace_of_null_makes_an_asset_global(api: CatalogClient, stack: StackInMemory) -> None:
    """`kestra.md` 2.4: through the API alone."""
    stack.write("lake.orders", namespace="company")

    assert "namespace" not in api.put("/assets/lake.orders", {"namespace": None}).body
    assert stack.asset("lake.orders").namespace is None


def test_an_update_upgrades_a_placeholder(api: CatalogClient, stack: StackInMemory) -> None:
    """Row 23."""
    stack.record(assets={"inputs": [{"id": "lake.orders"}]})

    assert api.put("/assets/lake.orders", {"owner": "sales"}).body["type"] == EXTERNAL
    assert api.put("/assets/lake.orders", {"type": TABLE}).body["type"] == TABLE
    assert api.put("/assets/lake.orders", {"type": EXTERNAL}).body["type"] == TABLE


def test_an_asset_keeps_its_id(api: CatalogClient, stack: StackInMemory) -> None:
    stack.write("lake.orders")

    answer = api.put("/assets/lake.orders", {"id": "lake.payments"})

    assert answer.body["faults"] == ["id: must be that of the path, lake.orders; an asset keeps its id"]


def test_an_unknown_id_is_404(api: CatalogClient) -> None:
    for answer in (
        api.get("/assets/lake.orders"),
        api.put("/assets/lake.orders", {"owner": "sales"}),
        api.delete("/assets/lake.orders"),
        api.get("/assets/lake.orders/dependencies"),
        api.post("/assets/lake.orders/lock", {}),
        api.delete("/assets/lake.orders/lock"),
    ):
        assert (answer.status, answer.body) == (404, NOT_FOUND)


def test_a_deleted_asset_is_hidden_but_can_be_read_back(api: CatalogClient, stack: StackInMemory) -> None:
    """Rows 66 and 75."""
    stack.write("lake.orders", owner="sales")

    assert api.delete("/assets/lake.orders").status == 204

    assert api.get("/assets/lake.orders").body == NOT_FOUND
    assert api.get("/assets/search").ids == []
    assert api.get("/assets", {"metadata[owner]": "sales"}).ids == []
    back = api.get("/assets/lake.orders", {"allowDeleted": "true"})
    assert (back.status, back.body["deleted"], back.body["metadata"]) == (200, True, {"owner": "sales"})
    assert api.delete("/assets/lake.orders").status == 404


def test_deleting_keeps_events_and_usages(api: CatalogClient, stack: StackInMemory) -> None:
    """`kestra.md` 2.5."""
    stack.write("lake.orders")
    api.delete("/assets/lake.orders")

    assert (len(stack.events()), stack.uses()) == (1, [("lake.orders", "W")])


def test_a_write_revives_a_deleted_asset(api: CatalogClient, stack: StackInMemory) -> None:
    stack.write("lake.orders", owner="sales")
    api.delete("/assets/lake.orders")

    assert api.post("/assets", {"id": "lake.orders", "type": TABLE}).body["metadata"] == {"owner": "sales"}
    assert api.get("/assets", {"metadata[owner]": "sales"}).ids == ["lake.orders"]


def test_ids_are_deleted_all_or_none(api: CatalogClient, stack: StackInMemory) -> None:
    """Row 76."""
    stack.write("a")
    stack.write("b")

    refused = api.delete("/assets/by-ids", body=["a", "c", "b", "d"])
    assert (refused.status, refused.body["faults"]) == (400, ["[1]: there is no asset c", "[3]: there is no asset d"])
    assert api.get("/assets/search").ids == ["a", "b"]

    assert api.delete("/assets/by-ids", body=["a", "b", "a"]).body == {"count": 2, "failed": [], "complete": True}
    assert api.get("/assets/search").ids == []


def test_what_a_query_finds_is_deleted(api: CatalogClient, stack: StackInMemory) -> None:
    """Row 76: softly."""
    for asset_id, owner in (("a", "sales"), ("b", "sales"), ("c", "finance")):
        stack.write(asset_id, owner=owner)

    answer = api.delete("/assets/by-query", {"filters[metadata][EQUALS][owner]": "sales"})

    assert answer.body == {"count": 2, "failed": [], "complete": True}
    assert api.get("/assets/search").ids == ["c"]
    assert api.get("/assets/a", {"allowDeleted": "true"}).status == 200


def test_a_query_without_filters_deletes_nothing(api: CatalogClient, stack: StackInMemory) -> None:
    stack.write("a")

    answer = api.delete("/assets/by-query")

    assert answer.body["faults"] == ["filters[field][OPERATOR]: at least one is required; nothing was deleted"]
    assert api.get("/assets/search").ids == ["a"]


def test_a_purged_asset_leaves_nothing_but_its_id(api: CatalogClient, stack: StackInMemory) -> None:
    """Rows 75 and 76: the shipper learns from the id that the asset is gone, for as long as the log may name it."""
    stack.write("lake.orders", owner="sales", namespace="company")

    answer = api.delete("/assets/by-query", {"filters[id][EQUALS]": "lake.orders", "purge": "true"})

    assert answer.body == {"count": 1, "failed": [], "complete": True}
    assert api.get("/assets/lake.orders", {"allowDeleted": "true"}).status == 404
    (item,) = [item for item in stack.items(stack.settings.catalog_table) if item["sk"]["S"] == "asset"]
    assert sorted(item) == ["expires", "id", "pk", "purged", "sk", "version"]
    assert stack.asset("lake.orders").deleted


def test_what_was_deleted_can_be_purged_by_its_id_and_comes_back_as_new(
    api: CatalogClient, stack: StackInMemory
) -> None:
    stack.write("lake.orders", owner="sales")
    api.delete("/assets/lake.orders")
    by_id = {"filters[id][IN]": "lake.orders,other", "purge": "true"}

    assert api.delete("/assets/by-query", by_id).body["count"] == 1
    assert stack.write("lake.orders")["assets"]["created"] == ["lake.orders"]
    assert stack.asset("lake.orders").metadata == {}


def test_an_input_that_was_purged_gets_a_placeholder_again(api: CatalogClient, stack: StackInMemory) -> None:
    """Row 17."""
    stack.write("lake.orders")
    api.delete("/assets/by-query", {"filters[id][EQUALS]": "lake.orders", "purge": "true"})

    answer = stack.record(assets={"inputs": [{"id": "lake.orders"}]})

    assert answer["assets"]["created"] == ["lake.orders"]
    assert stack.asset("lake.orders").type == EXTERNAL


def test_a_path_that_does_not_exist_is_said_to_be_none(api: CatalogClient) -> None:
    assert api.get("/asset").body["detail"] == "GET /openapi.json lists the paths"
