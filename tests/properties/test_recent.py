"""Whatever was passed and whatever landed late: the sweep tells one from the other, and its memory is bounded."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waybill.ids import uuid7, uuid7_floor, uuid7_millis
from waybill.ship.recent import WIDEST_SLICE, WINDOW_MILLIS, Recent, window_start

if TYPE_CHECKING:
    from collections.abc import Iterable

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)

shards = st.sampled_from((1, 4, 8, 9, 64, 65, 256))
moments = st.integers(0, 600_000).map(lambda millis: NOON - timedelta(milliseconds=millis))
keys = st.lists(moments.map(uuid7), max_size=60)
"""Sort keys of the last ten minutes."""


def filled(passed: Iterable[str], amount: int = 4) -> Recent:
    recent = Recent.of(amount)
    for key in passed:
        recent.add(key)
    return recent


@given(keys, st.lists(moments.map(uuid7), max_size=6), shards)
def test_late_commits_are_told_from_what_was_passed(passed: list[str], late: list[str], amount: int) -> None:
    recent = filled(passed, amount)

    assert recent.missing([*late, *passed]) == sorted(late)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1_500), st.integers(0, 3), shards)
def test_a_few_late_commits_are_told_also_in_a_second_full_of_events(count: int, few: int, amount: int) -> None:
    everything = [uuid7(NOON + timedelta(milliseconds=number % 1_000)) for number in range(count + few)]
    late = everything[:: max(1, len(everything) // few)][:few] if few else []
    recent = filled((key for key in everything if key not in late), min(amount, 64))

    assert recent.missing(everything) == sorted(late)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 400), st.integers(1, 98))
def test_a_whole_report_that_lands_late_is_told(others: int, events: int) -> None:
    passed = [uuid7(NOON + timedelta(milliseconds=number)) for number in range(others)]
    late = [uuid7(NOON + timedelta(milliseconds=200)) for _ in range(events)]

    assert filled(passed).missing([*passed, *late]) == sorted(late)


def test_where_it_cannot_be_told_nothing_is_lost() -> None:
    everything = [uuid7(NOON) for _ in range(4_000)]
    late = everything[::8]

    found = filled(key for key in everything if key not in late).missing(everything)

    assert set(late) <= set(found)


@given(keys, st.data(), shards)
def test_an_event_that_left_the_log_hides_no_late_commit(passed: list[str], data: st.DataObject, amount: int) -> None:
    recent = filled(passed, amount)
    gone = data.draw(st.sets(st.sampled_from(passed))) if passed else set()
    for key in gone:
        recent.remove(key)
    late = uuid7(NOON)

    assert recent.missing([key for key in [*passed, late] if key not in gone]) == [late]


@given(keys, keys, shards)
def test_it_is_the_same_after_a_round_through_json(passed: list[str], present: list[str], amount: int) -> None:
    recent = filled(passed, amount)
    again = Recent.from_json(json.loads(json.dumps(recent.to_json())))

    assert again.to_json() == recent.to_json()
    assert again.missing([*present, *passed]) == recent.missing([*present, *passed])


@given(st.integers(0, 1 << 47))
def test_the_window_begins_with_a_slice_and_ten_minutes_before_the_position_at_least(millis: int) -> None:
    position = uuid7_floor(datetime.fromtimestamp(millis % 4_000_000_000, UTC))
    start = uuid7_millis(window_start(position))

    assert start % WIDEST_SLICE == 0
    assert start == 0 or 600_000 < WINDOW_MILLIS <= uuid7_millis(position) - start < WINDOW_MILLIS + WIDEST_SLICE


@given(keys)
def test_what_lies_before_the_window_is_forgotten_and_what_lies_in_it_is_not(passed: list[str]) -> None:
    position = uuid7_floor(NOON + timedelta(minutes=5))
    start = window_start(position)
    recent = filled(passed)
    recent.forget_before(start)

    assert recent.to_json() == filled(key for key in passed if key >= start).to_json()
    assert recent.missing(key for key in passed if key >= start) == []


@pytest.mark.parametrize("amount", [1, 8, 64, 256])
def test_its_size_is_bounded_however_fast_the_log_grows(amount: int) -> None:
    recent = Recent.of(amount)
    for millis in range(0, 12 * 60_000, 12 if amount < 9 else 72):
        recent.add(uuid7(NOON + timedelta(milliseconds=millis)))

    assert amount * len(json.dumps(recent.to_json())) < 250_000
