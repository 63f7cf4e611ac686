"""Whatever an event and its assets say, JSON and Ion say the same of it, each on one line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from amazon.ion import simpleion
from amazon.ion.core import IonType
from hypothesis import given
from hypothesis import strategies as st

from tests.support.shipping import NOON, lineage_event
from waybill.clock import iso
from waybill.export.files.lines import ion_lines, json_lines
from waybill.export.ports import Delivery
from waybill.model.asset import Asset

TIMES = {"startDate", "endDate", "executionStartDate", "created", "updated", "timestamp"}

words = st.text(st.characters(codec="utf-8"))
numbers = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
moments = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
assets = st.builds(
    Asset,
    id=words,
    type=words,
    namespace=st.none() | words,
    description=st.none() | words,
    metadata=st.dictionaries(words, values, max_size=4),
    created=st.none() | moments,
    updated=st.none() | moments,
)
deliveries = st.builds(
    lambda message, labels, moment, inputs, outputs: Delivery(
        "key",
        lineage_event(error={"message": message}, labels=labels, end_date=iso(moment), created=iso(NOON)),
        tuple(inputs),
        tuple(outputs),
    ),
    words,
    st.dictionaries(words, words, max_size=3),
    moments,
    st.lists(assets, max_size=2),
    st.lists(assets, max_size=2),
)


def plain(value: Any) -> Any:
    """Turn a value of Ion into the value of JSON that says the same."""
    kind = getattr(value, "ion_type", None)
    if value is None or kind is IonType.NULL:
        return None
    if isinstance(value, bool) or kind is IonType.BOOL:
        return bool(value)
    if isinstance(value, datetime):
        return iso(value.replace(tzinfo=UTC))
    if isinstance(value, (Decimal, float)):
        return float(value)
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return int(value) if isinstance(value, int) else str(value)


@given(deliveries)
def test_json_and_ion_say_the_same(delivery: Delivery) -> None:
    as_json, as_ion = json_lines()(delivery), ion_lines()(delivery)

    assert as_json.count(b"\n") == as_ion.count(b"\n") == 1
    assert plain(simpleion.loads(as_ion)) == json.loads(as_json)


@given(deliveries)
def test_times_of_ours_are_timestamps_and_those_of_metadata_are_not(delivery: Delivery) -> None:
    event: Any = simpleion.loads(ion_lines()(delivery))

    for document in (event, *event["inputs"], *event["outputs"]):
        for name in TIMES & set(document):
            assert document[name].ion_type is IonType.TIMESTAMP
