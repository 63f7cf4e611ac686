"""Where files go: templates of keys, with dates in the patterns of Java's DateTimeFormatter (DESIGN 4)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from waybill.clock import iso

_EXPRESSION = re.compile(r"\{\{(.*?)\}\}")
_DATE = re.compile(r"""\s*(execution\.startDate|event\.created)\s*\|\s*date\(\s*(?:'([^']*)'|"([^"]*)")\s*\)\s*""")
_EXPRESSIONS = (
    "{{ execution.startDate | date('yyyy-MM-dd') }} for the start of the run "
    "or {{ event.created | date('yyyy-MM-dd') }} for the recording time"
)
_TOKEN = re.compile(r"'(?P<literal>(?:[^']|'')*)'|(?P<letters>([A-Za-z])\3*)|(?P<other>[^A-Za-z']+)")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f]")
_ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)
"""Shows what a template becomes: dates have no letter that a key must not have, but the text in patterns may."""

Formatter = Callable[[datetime], str]

_FIELDS: dict[str, tuple[str, int]] = {
    "y": ("%Y", 4), "u": ("%Y", 4), "M": ("%m", 7), "L": ("%m", 7), "d": ("%d", 10), "D": ("%j", 10), "H": ("%H", 13),
    "h": ("%I", 13), "a": ("%p", 13), "m": ("%M", 16), "s": ("%S", 19), "S": ("%f", 32),
}  # fmt: skip
"""Pattern letter: the directive of strftime, and how much of an ISO 8601 time decides it, in characters."""

_NAMES = {("M", 3): "%b", ("M", 4): "%B", ("L", 3): "%b", ("L", 4): "%B"}
_WIDTHS = {"y": (2, 4), "u": (2, 4), "M": (1, 2), "L": (1, 2), "D": (1, 3), "a": (1,), "S": tuple(range(1, 10))}


@dataclass(frozen=True, slots=True)
class DatePattern:
    """A date pattern of Java's DateTimeFormatter, in UTC and English.

    Attributes:
        precision: how many characters of an ISO 8601 time decide the result.
    """

    formatters: tuple[Formatter, ...]
    precision: int

    def format(self, moment: datetime) -> str:
        """Write an instant by the pattern."""
        return "".join(formatter(moment) for formatter in self.formatters)


def parse_pattern(text: str) -> DatePattern:
    """Read a date pattern such as `yyyy-MM-dd` or `yyyy/MM/dd/HH`.

    Raises:
        ValueError: naming the part that is not known.
    """
    formatters: list[Formatter] = []
    precision = 0
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise ValueError(f"the date pattern {text!r} has a quote that is not closed")
        position = token.end()
        if letters := token["letters"]:
            formatters.append(_field(letters))
            precision = max(precision, _FIELDS[letters[0]][1])
        else:
            formatters.append(_literal(token["other"] or (token["literal"] or "'").replace("''", "'")))
    if not precision:
        raise ValueError("a date pattern needs at least one field, such as yyyy-MM-dd")
    return DatePattern(tuple(formatters), precision)


def _literal(text: str) -> Formatter:
    return lambda _: text


def _strftime(directive: str) -> Formatter:
    return lambda moment: moment.strftime(directive)


def _field(letters: str) -> Formatter:
    letter, width = letters[0], len(letters)
    if (letter, width) in _NAMES:
        return _strftime(_NAMES[letter, width])
    if letter not in _FIELDS or width not in _WIDTHS.get(letter, (1, 2)):
        raise ValueError(f"the date pattern has {letters!r}, which is not known; use {' '.join(_KNOWN)}")
    directive = _FIELDS[letter][0]
    if letter == "S":
        return lambda moment: moment.strftime(directive).ljust(9, "0")[:width]
    if letter in "yu":
        return lambda moment: f"{moment.year:04d}"[-width:]
    if letter == "a":
        return _strftime(directive)
    return lambda moment: moment.strftime(directive).lstrip("0").rjust(width, "0")


_KNOWN = ("yyyy", "yy", "MM", "MMM", "dd", "DDD", "HH", "hh", "a", "mm", "ss", "SSS")


@dataclass(frozen=True)
class KeyTemplate:
    """The template of a folder's key: text, and dates of the run's start or the event's recording time.

    Attributes:
        parts: each a text, or the source of a date (`execution.startDate`, `event.created`) and its pattern.
    """

    parts: tuple[str | tuple[str, DatePattern], ...]

    @cached_property
    def root(self) -> str:
        """The folder that every key of the template lies in, with a slash at its end, or an empty text."""
        first = self.parts[0] if self.parts and isinstance(self.parts[0], str) else ""
        return f"{first}/" if first and len(self.parts) == 1 else first[: first.rfind("/") + 1]

    @cached_property
    def precision(self) -> int:
        """How many characters of an event's recording time decide its folder; 0: none."""
        dated = [part for part in self.parts if not isinstance(part, str)]
        return max((pattern.precision for source, pattern in dated if source == "event.created"), default=0)

    def folder(self, started: datetime, created: datetime) -> str:
        """Return the folder of an event with a slash at its end, or an empty text."""
        folder = self.text(started, created).strip("/")
        return f"{folder}/" if folder else ""

    def text(self, started: datetime, created: datetime) -> str:
        """Return the template with its dates put in."""
        moments = {"execution.startDate": started, "event.created": created}
        return "".join(part if isinstance(part, str) else part[1].format(moments[part[0]]) for part in self.parts)


def parse_key(text: str) -> KeyTemplate:
    """Read the template of a key.

    Raises:
        ValueError: naming the part that is not known, and what there is.
    """
    parts: list[str | tuple[str, DatePattern]] = []
    for position, piece in enumerate(_EXPRESSION.split(text.strip("/"))):
        if position % 2:
            parts.append(_date(piece))
        elif piece:
            parts.append(_plain(piece))
    template = KeyTemplate(tuple(parts))
    steps = template.text(_ANY_TIME, _ANY_TIME).split("/")
    if _FORBIDDEN.search(text) or not all(steps):
        raise ValueError("must not hold control characters or empty steps")
    if any(step.startswith((".", "_")) for step in steps):
        raise ValueError("must not hold steps that begin with . or _, which Athena, Hive and Spark leave out")
    return template


def _date(expression: str) -> tuple[str, DatePattern]:
    match = _DATE.fullmatch(expression)
    if match is None:
        raise ValueError(f"{{{{{expression}}}}} is not known; use {_EXPRESSIONS}")
    return match[1], parse_pattern(match[2] if match[2] is not None else match[3])


def _plain(text: str) -> str:
    for wrong in ("{{", "}}", "{%", "%}"):
        if wrong in text:
            raise ValueError(f"has {wrong} without its other half; an expression is written {{{{ … }}}}")
    return text


PARTITIONS = {
    "none": "",
    "month": "month={{ event.created | date('yyyy-MM') }}",
    "day": "dt={{ event.created | date('yyyy-MM-dd') }}",
    "hour": "dt={{ event.created | date('yyyy-MM-dd') }}/hour={{ event.created | date('HH') }}",
}
"""The Hive partitions of each `partitioning`, by the recording time in UTC."""


def name_time(started: datetime) -> str:
    """Write the start of a run as file names hold it: `20261201T090000Z`."""
    return re.sub(r"[-:]|\.\d+", "", iso(started))
