"""Text of Amazon Ion, one value a line (https://amazon-ion.github.io/ion-docs/docs/spec.html).

Written by hand because lines are joined from pieces that are kept: strings of JSON are strings of Ion, and times of
ours are timestamps of Ion. Tests read every kind of value back with `amazon.ion`; in the layer it would bring numpy along.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from waybill.model.asset import Asset

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = frozenset(("null", "true", "false", "nan"))
_TIMES = frozenset(("startDate", "endDate", "executionStartDate", "created", "updated", "timestamp"))
"""Our own properties that hold an instant. Metadata is left as it is: what looks like a time there is text."""


def ion_value(value: Any) -> str:
    """Write a value of JSON as Ion. A number with a fraction is a float of Ion, as in JSON, not a decimal."""
    if isinstance(value, str):
        return orjson.dumps(value).decode()
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        text = repr(value)
        return text if "e" in text else f"{text}e0"
    if isinstance(value, dict):
        return f"{{{','.join([f'{ion_name(name)}:{ion_value(item)}' for name, item in value.items()])}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join([ion_value(item) for item in value])}]"
    return str(value)


def ion_name(name: str) -> str:
    """Write the name of a field: bare where Ion lets it be."""
    return name if _IDENTIFIER.fullmatch(name) and name not in _KEYWORDS else orjson.dumps(name).decode()


def ion_fields(words: dict[str, Any]) -> str:
    """Write the fields of a document of ours, without the braces; its times are timestamps."""
    return ",".join([f"{name}:{words[name] if name in _TIMES else ion_value(words[name])}" for name in words])


def ion_asset(asset: Asset) -> str:
    """Write an asset."""
    return f"{{{ion_fields(json.loads(asset.to_json()))}}}"
