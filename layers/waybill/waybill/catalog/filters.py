"""Filters of the lists: `filters[field][OPERATOR]=value` (`kestra.md` 7.1). Several must all hold."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from waybill.errors import InvalidRequest
from waybill.faults import unknown_property
from waybill.model.fields import parse_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_PARAMETER = re.compile(r"filters\[([^\]]*)\]\[([^\]]*)\](?:\[([^\]]*)\])?")
_METADATA = re.compile(r"metadata\[([^\]]+)\]")
_LONGEST_REGEX = 200

FUNCTION = ("id", "type", "namespace")
"""The parameters of `assets()`, besides `metadata[key]`."""


class Kind(StrEnum):
    """What a field holds."""

    TEXT = "text"
    TIME = "time"
    NUMBER = "number"
    FLAG = "flag"
    MAP = "map"
    WORDS = "words"


_EQUAL = ("EQUALS", "NOT_EQUALS")
_ORDER = ("GREATER_THAN", "LESS_THAN", "GREATER_THAN_OR_EQUAL_TO", "LESS_THAN_OR_EQUAL_TO")
_LISTS = ("IN", "NOT_IN")
_TEXTS = ("STARTS_WITH", "ENDS_WITH", "CONTAINS", "NOT_CONTAINS", "REGEX", "PREFIX")
_NULLS = ("IS_NULL", "IS_NOT_NULL")

OPERATORS: Mapping[Kind, tuple[str, ...]] = {
    Kind.TEXT: (*_EQUAL, *_ORDER, *_LISTS, *_TEXTS, *_NULLS),
    Kind.MAP: (*_EQUAL, *_ORDER, *_LISTS, *_TEXTS, *_NULLS),
    Kind.TIME: (*_EQUAL, *_ORDER),
    Kind.NUMBER: (*_EQUAL, *_ORDER, *_LISTS),
    Kind.FLAG: ("EQUALS",),
    Kind.WORDS: ("EQUALS",),
}
"""The operators that each kind of field takes."""

_NEGATIONS = {"NOT_EQUALS": "EQUALS", "NOT_IN": "IN", "NOT_CONTAINS": "CONTAINS", "IS_NOT_NULL": "IS_NULL"}

_TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "EQUALS": operator.eq,
    "GREATER_THAN": operator.gt,
    "LESS_THAN": operator.lt,
    "GREATER_THAN_OR_EQUAL_TO": operator.ge,
    "LESS_THAN_OR_EQUAL_TO": operator.le,
    "IN": lambda value, wanted: value in wanted,
    "STARTS_WITH": lambda value, wanted: value.startswith(wanted),
    "ENDS_WITH": lambda value, wanted: value.endswith(wanted),
    "CONTAINS": lambda value, wanted: wanted in value,
    "REGEX": lambda value, wanted: wanted.search(value) is not None,
    "PREFIX": lambda value, wanted: value == wanted or value.startswith(f"{wanted}."),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter.

    Attributes:
        key: of the map, for a field that is one.
        wanted: what the operator compares with.
    """

    field: str
    operator: str
    wanted: Any
    key: str = ""

    @property
    def texts(self) -> tuple[str, ...] | None:
        """The only texts that the field may have, or None when there are others."""
        if self.operator == "EQUALS":
            return (self.wanted,)
        return tuple(self.wanted) if self.operator == "IN" else None

    def holds(self, value: Any) -> bool:
        """Tell whether a value passes. Of several values one must; a missing one passes what says "not" alone."""
        if self.operator in _NEGATIONS:
            return not self._plainly(_NEGATIONS[self.operator], value)
        return self._plainly(self.operator, value)

    def _plainly(self, name: str, value: Any) -> bool:
        if name == "IS_NULL":
            return value is None
        if isinstance(value, list | tuple):
            return any(_TESTS[name](one, self.wanted) for one in value)
        return value is not None and _TESTS[name](value, self.wanted)


def parse_filters(pairs: Iterable[tuple[str, str]], fields: Mapping[str, Kind]) -> list[Condition]:
    """Read the filters among query parameters.

    Args:
        pairs: the parameters, decoded; those that are no filters are passed over.
        fields: the fields that the resource has.

    Raises:
        InvalidRequest: one line for each filter that cannot be read.
    """
    conditions: list[Condition] = []
    faults: list[str] = []
    for name, value in pairs:
        if not name.startswith("filters"):
            continue
        try:
            conditions.append(_condition(name, value, fields))
        except ValueError as error:
            faults.append(f"{name}: {error}")
    if faults:
        raise InvalidRequest(faults)
    return conditions


def named_conditions(pairs: Iterable[tuple[str, str]], others: Iterable[str]) -> list[Condition]:
    """Read the parameters of `assets()`: `id`, `type`, `namespace`, `metadata[key]`, each of which must be so, exactly.

    Args:
        pairs: the parameters, decoded.
        others: the parameters that are taken besides.

    Raises:
        InvalidRequest: one line for each parameter that is unknown.
    """
    conditions: list[Condition] = []
    faults: list[str] = []
    for name, value in pairs:
        key = _METADATA.fullmatch(name)
        if key:
            conditions.append(Condition("metadata", "EQUALS", value, key[1]))
        elif name in FUNCTION:
            conditions.append(Condition(name, "EQUALS", value))
        elif name not in others and not name.startswith("X-Amz-"):
            faults.append(f"{name}: {unknown_property(name, [*FUNCTION, 'metadata[key]', *others])}")
    if faults:
        raise InvalidRequest(faults)
    return conditions


def _condition(name: str, value: str, fields: Mapping[str, Kind]) -> Condition:
    match = _PARAMETER.fullmatch(name)
    if match is None:
        raise ValueError("must be written filters[field][OPERATOR]=value")
    field, operator_name, key = match.groups()
    if field not in fields:
        raise ValueError(unknown_property(field, list(fields)))
    kind = fields[field]
    if operator_name not in OPERATORS[kind]:
        raise ValueError(f"{field} takes no operator {operator_name}; it takes {', '.join(OPERATORS[kind])}")
    if (kind is Kind.MAP) != bool(key):
        form = f"filters[{field}][{operator_name}]" + ("[key]=value" if kind is Kind.MAP else "=value")
        raise ValueError(f"must be written {form}")
    if kind is Kind.WORDS:
        return Condition(field, "CONTAINS", value.casefold())
    return Condition(field, operator_name, _wanted(kind, operator_name, value), key or "")


def _wanted(kind: Kind, operator_name: str, value: str) -> Any:
    if operator_name in _LISTS:
        return tuple(_one(kind, part) for part in value.split(","))
    if operator_name == "REGEX":
        return _regex(value)
    return _one(kind, value)


def _one(kind: Kind, value: str) -> Any:
    if kind is Kind.TIME:
        return parse_instant(value)
    if kind is Kind.NUMBER:
        if not re.fullmatch(r"-?\d{1,18}", value, re.ASCII):
            raise ValueError("must be a whole number")
        return int(value)
    if kind is Kind.FLAG:
        if value not in ("true", "false"):
            raise ValueError("must be true or false")
        return value == "true"
    return value


def _regex(value: str) -> re.Pattern[str]:
    if len(value) > _LONGEST_REGEX:
        raise ValueError(f"is {len(value)} characters long; the most is {_LONGEST_REGEX}")
    try:
        return re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is no regular expression ({error})") from None
