"""Whatever an asset holds, what is sent is JSON that every backend can store."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill.export.openlineage.cleaning import clean, to_json


@pytest.mark.parametrize(
    ("dirty", "cleaned"),
    [
        (Decimal(5), 5),
        (Decimal("1.50"), 1.5),
        (Decimal("1E+400"), "1E+400"),
        (Decimal("NaN"), None),
        ({"b", "a"}, ["a", "b"]),
        (frozenset({2, 1}), [1, 2]),
        (b"\x00\xff", "AP8="),
        (bytearray(b"x"), "eA=="),
        (float("nan"), None),
        (float("inf"), None),
        (True, True),
        (2**70, str(2**70)),
        ("a\x00b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
        ("snow ☃ 😀", "snow ☃ 😀"),
        ({"a": None, "b": float("nan"), "c": [None, 1]}, {"c": [None, 1]}),
        ({1: "x", "a\x00": 1}, {"1": "x", "a\ufffd": 1}),
        ((1, 2), [1, 2]),
        (datetime(2026, 7, 1, 9, tzinfo=timezone(timedelta(hours=2))), "2026-07-01T07:00:00.000Z"),
        (datetime(2026, 7, 1, 9), "2026-07-01T09:00:00.000Z"),  # noqa: DTZ001 - a time without zone is the case
        (datetime(2026, 7, 1, 9, tzinfo=UTC), "2026-07-01T09:00:00.000Z"),
        (date(2026, 7, 1), "2026-07-01"),
        (complex(1, 2), "(1+2j)"),
    ],
)
def test_a_value_becomes_what_json_can_say(dirty: Any, cleaned: Any) -> None:
    assert clean(dirty) == cleaned
    assert type(clean(dirty)) is type(cleaned)


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.decimals(), st.text(), st.binary(), st.datetimes(),
    st.text(st.characters(codec=None, categories=("Cs", "Cc"))),
)  # fmt: skip
anything = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner)
)


@given(anything)
def test_anything_becomes_strict_json_without_nul(value: Any) -> None:
    text = to_json({"value": clean(value)}).decode()
    assert json.loads(text, parse_constant=pytest.fail) is not None
    assert "\\u0000" not in text
    assert clean(clean(value)) == clean(value)
