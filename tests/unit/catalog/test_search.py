"""Finding assets: filters, operators, pages, and the `assets()` function (`kestra.md` 6.4, 6.7, 7.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from waybill.model.asset import EXTERNAL, TABLE, VM

if TYPE_CHECKING:
    from tests.support.catalog_client import CatalogClient
    from tests.support.stack_in_memory import StackInMemory


@pytest.fixture(autouse=True)
def _warehouse(stack: StackInMemory) -> None:
    """Four assets, in the order of their ids."""
    stack.write("lake.orders", namespace="company.sales", owner="sales", rows=12, displayName="Orders of the lake")
    stack.write("lake.payments", namespace="company.sales.eu", owner="finance", live=True)
    stack.write("shared.countries", environment="prod", description="All *countries*.")
    stack.write("vm-web-01", type=VM, namespace="other", owner="ops")


def found(api: CatalogClient, **filters: Any) -> list[str]:
    """Search by `type__EQUALS=…`; a third part is a key of metadata."""
    query = {}
    for name, value in filters.items():
        field, *rest = name.split("__")
        query[f"filters[{field}]" + "".join(f"[{part}]" for part in rest)] = value
    answer = api.get("/assets/search", query)
    assert answer.status == 200, answer.body
    return answer.ids


ALL = ["lake.orders", "lake.payments", "shared.countries", "vm-web-01"]


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, ALL),
        ({"type__EQUALS": VM}, ["vm-web-01"]),
        ({"type__NOT_EQUALS": VM}, ALL[:3]),
        ({"type__IN": f"{VM},{EXTERNAL}"}, ["vm-web-01"]),
        ({"type__NOT_IN": f"{VM},{EXTERNAL}"}, ALL[:3]),
        ({"id__EQUALS": "lake.orders"}, ["lake.orders"]),
        ({"id__IN": "vm-web-01,lake.orders,none"}, ["lake.orders", "vm-web-01"]),
        ({"id__STARTS_WITH": "lake."}, ALL[:2]),
        ({"id__ENDS_WITH": "01"}, ["vm-web-01"]),
        ({"id__CONTAINS": "count"}, ["shared.countries"]),
        ({"id__NOT_CONTAINS": "lake"}, ALL[2:]),
        ({"id__REGEX": r"^lake\.o"}, ["lake.orders"]),
        ({"id__GREATER_THAN": "lake.payments"}, ALL[2:]),
        ({"id__LESS_THAN_OR_EQUAL_TO": "lake.payments"}, ALL[:2]),
        ({"namespace__EQUALS": "company.sales"}, ["lake.orders"]),
        ({"namespace__PREFIX": "company.sales"}, ALL[:2]),
        ({"namespace__STARTS_WITH": "company"}, ALL[:2]),
        ({"namespace__IN": "company.sales.eu,other"}, ["lake.payments", "vm-web-01"]),
        ({"namespace__IS_NULL": ""}, ["shared.countries"]),
        ({"namespace__EQUALS": ""}, []),
        ({"namespace__EQUALS": "-"}, []),
        ({"namespace__NOT_EQUALS": "other"}, ALL[:3]),
        ({"metadata__EQUALS__owner": "sales"}, ["lake.orders"]),
        ({"metadata__IN__owner": "sales,ops"}, ["lake.orders", "vm-web-01"]),
        ({"metadata__NOT_EQUALS__owner": "sales"}, ALL[1:]),
        ({"metadata__IS_NULL__owner": ""}, ["shared.countries"]),
        ({"metadata__IS_NOT_NULL__environment": ""}, ["shared.countries"]),
        ({"metadata__EQUALS__rows": "12"}, ["lake.orders"]),
        ({"metadata__EQUALS__live": "true"}, ["lake.payments"]),
        ({"metadata__EQUALS__owner": "sales", "namespace__EQUALS": "company.sales"}, ["lake.orders"]),
        ({"metadata__EQUALS__owner": "sales", "namespace__EQUALS": "other"}, []),
        ({"displayName__CONTAINS": "lake"}, ["lake.orders"]),
        ({"q__EQUALS": "COUNTRIES"}, ["shared.countries"]),
        ({"updated__GREATER_THAN": "2026-01-01T00:00:00Z"}, ALL),
        ({"created__LESS_THAN_OR_EQUAL_TO": "2026-01-01T00:00:00+01:00"}, []),
    ],
)
def test_filters_must_all_hold(api: CatalogClient, filters: dict[str, str], ids: list[str]) -> None:
    """Rows 9 and 65, and the operators of `kestra.md` 7.1."""
    assert found(api, **filters) == ids


def test_freshness_can_be_asked_for(api: CatalogClient, stack: StackInMemory) -> None:
    """Row 24: `updated` is the clock."""
    moment = api.get("/assets/vm-web-01").body["updated"]
    stack.write("lake.orders")

    assert found(api, updated__LESS_THAN_OR_EQUAL_TO=moment) == ALL[1:]


def test_filters_that_cannot_be_read_are_named_each(api: CatalogClient) -> None:
    query = {
        "filters[typ][EQUALS]": "x",
        "filters[id][LIKE]": "x",
        "filters[updated][GREATER_THAN]": "yesterday",
        "filters[metadata][EQUALS]": "x",
        "filters[id][REGEX]": "(",
        "filters[locked][EQUALS]": "yes",
        "pages": "2",
    }
    faults = api.get("/assets/search", query).body["faults"]

    assert [fault.split(": ")[0] for fault in faults] == ["pages", *list(query)[:-1]]
    assert faults[0] == "pages: unknown property; did you mean page?"
    assert faults[1] == "filters[typ][EQUALS]: unknown property; did you mean type?"
    assert faults[3] == "filters[updated][GREATER_THAN]: must be an ISO 8601 time such as 2026-12-01T09:00:00Z"
    assert faults[4] == "filters[metadata][EQUALS]: must be written filters[metadata][EQUALS][key]=value"


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ({"page": "0"}, "page: must be a whole number from 1 to 1000000"),
        ({"size": "1001"}, "size: must be a whole number from 1 to 1000"),
        ({"sort": "owner:asc"}, "sort: must be field:asc or field:desc of "),
        ({"nextToken": "x"}, "nextToken: must be what the page before gave"),
        ({"nextToken": "WyJhIiwxXQ", "page": "2"}, "nextToken: goes without page and sort"),
    ],
)
def test_a_page_that_cannot_be_had_is_refused(api: CatalogClient, query: dict[str, str], fault: str) -> None:
    answer = api.get("/assets/search", query)

    assert answer.status == 400
    assert answer.body["faults"][0].startswith(fault)


def test_pages_by_number_have_an_exact_total(api: CatalogClient) -> None:
    """`kestra.md` 7.1: page from 1."""
    pages = [api.get("/assets/search", {"page": page, "size": 3}).body for page in (1, 2, 3)]

    assert [[asset["id"] for asset in page["results"]] for page in pages] == [ALL[:3], ALL[3:], []]
    assert [page["total"] for page in pages] == [4, 4, 4]


def test_a_walk_by_token_gives_everything_once_and_a_total_at_its_end(api: CatalogClient) -> None:
    seen, query = [], {"size": "2"}
    while True:
        answer = api.get("/assets/search", query)
        seen += answer.ids
        if answer.body["nextToken"] is None:
            break
        assert answer.body["total"] is None
        query["nextToken"] = answer.body["nextToken"]

    assert (seen, answer.body["total"]) == (ALL, 4)


@pytest.mark.parametrize(
    ("sort", "ids"),
    [
        ("id:desc", ALL[::-1]),
        ("updated:desc", ALL[::-1]),
        ("namespace:asc", ["lake.orders", "lake.payments", "vm-web-01", "shared.countries"]),
        ("type", ["lake.orders", "lake.payments", "shared.countries", "vm-web-01"]),
    ],
)
def test_lists_can_be_sorted(api: CatalogClient, sort: str, ids: list[str]) -> None:
    answer = api.get("/assets/search", {"sort": sort})

    assert (answer.ids, answer.body["total"]) == (ids, 4)


def test_an_asset_that_changed_is_found_by_what_it_is_now(api: CatalogClient, stack: StackInMemory) -> None:
    stack.write("lake.orders", owner="finance", namespace="other")

    assert found(api, metadata__EQUALS__owner="sales") == []
    assert found(api, metadata__EQUALS__owner="finance") == ["lake.orders", "lake.payments"]
    assert found(api, namespace__EQUALS="company.sales") == []
    assert found(api, namespace__EQUALS="other") == ["lake.orders", "vm-web-01"]


def test_a_long_value_is_found_like_any_other(api: CatalogClient, stack: StackInMemory) -> None:
    stack.write("lake.long", note="n" * 5000)

    assert found(api, metadata__EQUALS__note="n" * 5000) == ["lake.long"]


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        ({"metadata[owner]": "sales"}, ["lake.orders"]),
        ({"type": VM, "namespace": "other"}, ["vm-web-01"]),
        ({"id": "lake.orders"}, ["lake.orders"]),
        ({"id": "lake"}, []),
        ({"type": TABLE, "metadata[owner]": "ops"}, []),
        ({}, ALL),
    ],
)
def test_the_assets_function_matches_exactly(api: CatalogClient, arguments: dict[str, str], ids: list[str]) -> None:
    """Row 69."""
    assert api.get("/assets", arguments).ids == ids


def test_children_are_found_by_the_id_of_their_parent_in_metadata(api: CatalogClient, stack: StackInMemory) -> None:
    """Row 89: `assets(metadata={"vm": "vm-web-01"})`."""
    for number in (1, 2):
        stack.write(f"ip-10.0.0.{number}", type="company.infra.Ip", vm="vm-web-01")

    assert api.get("/assets", {"metadata[vm]": "vm-web-01"}).ids == ["ip-10.0.0.1", "ip-10.0.0.2"]


def test_an_unknown_argument_of_the_assets_function_is_named(api: CatalogClient) -> None:
    assert api.get("/assets", {"typ": VM}).body["faults"] == ["typ: unknown property; did you mean type?"]
