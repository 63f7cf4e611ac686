"""Turns what pydantic says of a bad document into the lines that a user reads."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pydantic import ValidationError


_OBJECT, _LIST = "must be a JSON object", "must be a JSON list"
_SAID = {
    "missing": "is required",
    "union_tag_not_found": "is required",
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "dict_type": _OBJECT,
    "dataclass_type": _OBJECT,
    "tuple_type": _LIST,
    "list_type": _LIST,
}

_ALIKE = 0.45
"""How alike two names must be for one to be meant by the other."""

_DEEPEST = 100
"""Levels of objects and lists in a document. What reads and writes JSON further on ends at 200, some of it sooner."""

_SHOWN = 5
"""Steps of the path to what is too deep."""


def path_of(location: Iterable[str | int]) -> str:
    """Write a location as `assets.outputs[1].id`."""
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path


def unknown_property(name: str, known: Sequence[str]) -> str:
    """Say that a property is unknown, and name the nearest known one or all of them."""
    nearest = get_close_matches(name, known, n=1, cutoff=_ALIKE)
    if not known:
        return "unknown property; leave it out"
    advice = f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(sorted(known))}"
    return f"unknown property; {advice}"


def unstorable(document: Any) -> list[str]:
    """Return one line for each value of a document that Python reads as JSON and no store takes."""
    try:
        written = orjson.dumps(document)
    except TypeError:
        pass
    else:
        # Most documents have fewer objects and lists than they might have levels, and need no closer look.
        if written.count(b"{") + written.count(b"[") <= _DEEPEST:
            return []
    return list(
        dict.fromkeys(f"{path_of(location) or 'document'}: {fault}" for location, fault in _unstorable(document))
    )


def _unstorable(document: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    todo: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while todo:
        location, value = todo.pop()
        if len(location) >= _DEEPEST and isinstance(value, (dict, list)):
            yield location[:_SHOWN], f"is nested more than {_DEEPEST} levels deep"
        elif isinstance(value, dict):
            todo += [(location, key) for key in value]
            todo += [((*location, key), item) for key, item in value.items()]
        elif isinstance(value, list):
            todo += [((*location, position), item) for position, item in enumerate(value)]
        elif isinstance(value, str) and value != value.encode(errors="replace").decode():
            yield location, "holds half of a surrogate pair, which is no text"
        elif isinstance(value, int) and not -(2**63) <= value < 2**64:
            yield location, "is a number of more than 64 bits; write it as text"


def fault_lines(
    error: ValidationError, known: dict[str, Sequence[str]] | None = None, within: tuple[str | int, ...] = ()
) -> list[str]:
    """Return one line per fault, in the order of the document.

    Args:
        error: what pydantic raised.
        known: the known properties by the path of their parent with list positions taken out
            (`tasks[].assetExporters[]`, and `:` with the class or type where a union has several, `.*` for any key),
            to name the nearest one.
        within: where in the document the part stands that was validated.
    """
    return lines_of(error.errors(include_url=False), known or {}, within)


def lines_of(faults: Sequence[Any], known: dict[str, Sequence[str]], within: tuple[str | int, ...] = ()) -> list[str]:
    """Return one line for each of the faults that pydantic found, as `fault_lines` does."""
    return [_line(fault, known, within) for fault in faults if not _follows_from_another(fault, faults)]


def _follows_from_another(fault: Any, faults: Sequence[Any]) -> bool:
    """A list is also too short when its items were refused; that is no fault of its own."""
    depth = len(fault["loc"])
    return fault["type"] == "too_short" and any(
        len(other["loc"]) > depth and other["loc"][:depth] == fault["loc"] for other in faults
    )


def _line(fault: Any, known: dict[str, Sequence[str]], within: tuple[str | int, ...]) -> str:
    location = _without_tags((*within, *fault["loc"]))
    if fault["type"].startswith("union_tag"):
        location = [*location, "type"]
    return f"{path_of(location) or 'document'}: {_message(fault, location, known)}"


def _without_tags(location: Sequence[str | int]) -> list[str | int]:
    """Leave out the steps that pydantic adds for the member of a union: a class in a list, the type of an `auth`."""
    return [
        step
        for before, step in zip((None, *location), location, strict=False)
        if not (isinstance(step, str) and (before == "auth" or (isinstance(before, int) and step[:1].isupper())))
    ]


def _pattern(location: Sequence[str | int]) -> str:
    """Write a location with list positions taken out."""
    return path_of("*" if isinstance(step, int) else step for step in location).replace(".*", "[]")


def _message(fault: Any, location: Sequence[str | int], known: dict[str, Sequence[str]]) -> str:
    kind = fault["type"]
    if kind in _SAID:
        return _SAID[kind]
    if kind == "too_short":
        return f"needs at least {fault['ctx']['min_length']}"
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        parent, keyed = _pattern(location[:-1]), f"{_pattern(location[:-2])}.*"
        member = fault["loc"][-2] if len(fault["loc"]) > 1 else ""
        names = known.get(f"{parent}:{member}") or known.get(parent) or known.get(keyed, ())
        return unknown_property(str(location[-1]), names)
    if kind == "value_error":
        return str(fault["ctx"]["error"])
    message = str(fault["msg"]).replace("Input should be", "must be", 1)
    return message[:1].lower() + message[1:]
