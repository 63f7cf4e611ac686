"""Merging metadata, for whatever JSON comes (`kestra.md` 2.4)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from waybill.model.asset import merged_metadata

SCALARS = st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, width=16) | st.text("ab", max_size=2)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
)
KEYS = st.sampled_from(["owner", "system", "labels", "tags"])
STORED = st.dictionaries(KEYS, VALUES, max_size=4)
DECLARED = st.dictionaries(KEYS, st.none() | VALUES, max_size=4)


@given(STORED, DECLARED)
def test_declaring_the_same_again_changes_nothing(stored: dict[str, Any], declared: dict[str, Any]) -> None:
    once = merged_metadata(stored, declared)

    assert merged_metadata(once, declared) == once


@given(STORED, DECLARED)
def test_what_is_not_named_stays(stored: dict[str, Any], declared: dict[str, Any]) -> None:
    after = merged_metadata(stored, declared)

    assert {key: after[key] for key in stored.keys() - declared} == {
        key: stored[key] for key in stored.keys() - declared
    }
    assert after.keys() == (stored.keys() | declared) - {key for key, value in declared.items() if value is None}


@given(STORED, DECLARED, DECLARED)
def test_declarations_of_different_keys_can_come_in_any_order(
    stored: dict[str, Any], first: dict[str, Any], second: dict[str, Any]
) -> None:
    second = {key: value for key, value in second.items() if key not in first}

    there = merged_metadata(merged_metadata(stored, first), second)
    back = merged_metadata(merged_metadata(stored, second), first)

    assert there == back


@given(STORED, DECLARED)
def test_merging_leaves_its_arguments_alone(stored: dict[str, Any], declared: dict[str, Any]) -> None:
    before = (repr(stored), repr(declared))
    merged_metadata(stored, declared)

    assert (repr(stored), repr(declared)) == before


@given(st.lists(VALUES, max_size=5), st.lists(VALUES, max_size=5))
def test_a_list_keeps_what_it_has_in_its_order_and_gains_what_is_new(stored: list[Any], declared: list[Any]) -> None:
    after = merged_metadata({"tags": stored}, {"tags": declared})["tags"]

    assert after[: len(stored)] == stored
    assert all(repr(item) in map(repr, after) or item in after for item in declared)
