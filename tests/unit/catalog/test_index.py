"""The index of metadata under writers that are late: no row of a living value is ever removed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from waybill.model.asset import TABLE, Asset, DeclaredAsset, merged
from waybill.store.catalog import Writer
from waybill.store.index import terms_of
from waybill.store.sorted_ids import walk

if TYPE_CHECKING:
    from tests.support.stack_in_memory import StackInMemory

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
TERM = "meta#owner=sales"
WRITER = Writer("USER#test")


def orders(**metadata: str) -> Asset:
    return merged(None, DeclaredAsset(id="orders", type=TABLE, metadata=metadata), NOW)


def found(stack: StackInMemory) -> list[str]:
    return list(walk(stack.assets.index.with_metadata("owner", "sales")))


def test_who_removes_a_value_late_leaves_the_row_of_who_gave_it_again(stack: StackInMemory) -> None:
    index = stack.assets.index
    index.add("orders", [TERM], version=7)

    index.remove("orders", [TERM], version=6)
    assert found(stack) == ["orders"]

    index.remove("orders", [TERM], version=7)
    assert found(stack) == []


def test_who_adds_a_value_late_does_not_make_the_row_older(stack: StackInMemory) -> None:
    index = stack.assets.index
    index.add("orders", [TERM], version=7)
    index.add("orders", [TERM], version=5)

    index.remove("orders", [TERM], version=6)

    assert found(stack) == ["orders"]


def test_who_comes_second_to_create_an_asset_puts_its_rows_once_more(stack: StackInMemory) -> None:
    """Its batch had no conditions, so it may have made rows older than they were."""
    for value in ("sales", "finance", "sales"):
        stored = stack.assets.load("orders")
        stack.assets.write("orders", stored, lambda _, value=value: orders(owner=value), WRITER)  # type: ignore[misc]
    late = orders(owner="sales")
    stack.assets.index.add_new([late])

    stack.assets.write("orders", None, lambda _: late, WRITER, indexed=True)
    stack.assets.index.remove("orders", [TERM], version=3)

    assert found(stack) == ["orders"]


def test_the_rows_of_an_asset_that_was_deleted_or_purged_are_gone(stack: StackInMemory) -> None:
    stack.write("orders", owner="sales")
    stack.delete("orders")

    assert found(stack) == []
    assert list(walk(stack.assets.index.in_namespace(None))) == []


def test_numbers_and_truth_values_are_indexed_as_json_writes_them_and_lists_not_at_all() -> None:
    asset = Asset(id="a", metadata={"rows": 12, "ratio": 0.5, "live": True, "tags": ["a"], "labels": {"a": "b"}})

    assert sorted(terms_of(asset)) == ["meta#live=true", "meta#ratio=0.5", "meta#rows=12"]
