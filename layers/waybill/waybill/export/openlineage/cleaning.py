"""Makes any value one that every backend can store as JSON."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import orjson

from waybill.clock import iso

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_INTEGERS = range(-(2**63), 2**64)
"""What a JSON reader takes as an integer."""


def clean_text(text: str) -> str:
    """Replace NUL, which PostgreSQL's jsonb refuses, and lone surrogates, which are no Unicode text."""
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def clean(value: Any) -> Any:
    """Return a value of JSON's own types.

    Decimal becomes a number, a set a sorted list, bytes Base64, a time without zone UTC. What has no value (null, NaN,
    infinity) leaves its object, and is null in a list.
    """
    for kinds, cleaner in _CLEANERS:
        if isinstance(value, kinds):
            return cleaner(value)
    return clean_text(str(value))


def to_json(value: Any) -> bytes:
    """Write a value as JSON, cleaned where it needs to be."""
    try:
        text = orjson.dumps(value)
    except TypeError:
        return orjson.dumps(clean(value))
    return orjson.dumps(clean(value)) if b"\\u0000" in text else text


def _as_it_is(value: Any) -> Any:
    return value


def _integer(value: int) -> int | str:
    return value if value in _INTEGERS else str(value)


def _float(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _decimal(value: Decimal) -> int | float | str | None:
    if not value.is_finite():
        return None
    if abs(value) < _INTEGERS.stop and value == value.to_integral_value():
        return _integer(int(value))
    return float(value) if math.isfinite(float(value)) else str(value)


def _object(value: Mapping[Any, Any]) -> dict[str, Any]:
    pairs = ((clean_text(str(key)), clean(item)) for key, item in value.items())
    return {key: item for key, item in pairs if item is not None}


def _list(value: list[Any] | tuple[Any, ...]) -> list[Any]:
    return [clean(item) for item in value]


def _set(value: AbstractSet[Any]) -> list[Any]:
    return sorted(_list(list(value)), key=lambda item: (str(type(item)), str(item)))


def _bytes(value: bytes | bytearray | memoryview) -> str:
    return base64.b64encode(bytes(value)).decode()


def _time(value: datetime) -> str:
    return iso(value if value.tzinfo else value.replace(tzinfo=UTC))


_CLEANERS: tuple[tuple[Any, Any], ...] = (
    (str, clean_text),
    ((bool, type(None)), _as_it_is),
    (int, _integer),
    (Mapping, _object),
    ((list, tuple), _list),
    (float, _float),
    (Decimal, _decimal),
    (AbstractSet, _set),
    ((bytes, bytearray, memoryview), _bytes),
    (datetime, _time),
    (date, date.isoformat),
)
"""What becomes of a value by its type; the first that fits."""
