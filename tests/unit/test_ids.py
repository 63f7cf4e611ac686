"""Identifiers."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from waybill.clock import from_millis, iso, to_millis
from waybill.ids import as_uuid, derived_uuid7, slugify, uuid7, uuid7_floor, uuid7_millis

MOMENT = datetime(2026, 12, 1, 9, 30, 0, 250_000, tzinfo=UTC)
INSTANTS = st.integers(min_value=0, max_value=4_000_000_000_000).map(from_millis)


@given(INSTANTS)
def test_a_uuid7_holds_its_millisecond(moment: datetime) -> None:
    made = uuid.UUID(uuid7(moment))

    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert uuid7_millis(str(made)) == to_millis(moment)


def test_within_a_millisecond_later_ids_are_greater() -> None:
    made = [uuid7(MOMENT) for _ in range(10_000)]

    assert made == sorted(set(made))


@given(INSTANTS, INSTANTS)
def test_ids_of_a_later_millisecond_are_greater_and_the_floor_lies_between(one: datetime, other: datetime) -> None:
    earlier, later = sorted((one, other))

    assert uuid7_floor(later) <= uuid7(later)
    if to_millis(earlier) < to_millis(later):
        assert uuid7(earlier) < uuid7_floor(later)


def test_a_derived_uuid7_is_the_same_each_time_and_differs_by_text_and_instant() -> None:
    assert derived_uuid7(MOMENT, "run-1") == derived_uuid7(MOMENT, "run-1")
    assert len({derived_uuid7(MOMENT, "a", "b"), derived_uuid7(MOMENT, "ab"), derived_uuid7(MOMENT, "a\x1fb", "")}) == 3
    assert uuid7_millis(derived_uuid7(MOMENT + timedelta(milliseconds=1), "run-1")) == to_millis(MOMENT) + 1


def test_a_uuid_is_written_in_lower_case_with_dashes_and_nothing_else_is_one() -> None:
    assert as_uuid("797A0DFB-8E6F-4E8B-8269-FDAAB4565E86") == "797a0dfb-8e6f-4e8b-8269-fdaab4565e86"
    assert as_uuid("797a0dfb8e6f4e8b8269fdaab4565e86") is None
    assert as_uuid("797a0dfb-8e6f-4e8b-8269-fdaab4565e86.seed") is None


def test_slugify_makes_an_id_of_user_input() -> None:
    assert slugify("  Zürich: Q3 Report (final).xlsx ") == "zurich-q3-report-final-xlsx"


def test_times_are_written_in_utc_ending_in_z() -> None:
    assert iso(datetime.fromisoformat("2026-12-01T10:30:00+01:00")) == "2026-12-01T09:30:00.000Z"
    assert iso(MOMENT.replace(microsecond=1)) == "2026-12-01T09:30:00.000001Z"
