"""From a cron expression of five fields to EventBridge's of six, or the reason why there is none.

EventBridge counts days of the week from 1 = Sunday, wants a `?` in one of the two day fields, and has a field for the
year. Each field is read as the set of numbers that it means and written anew, so that what EventBridge would read
otherwise than cron (`0` as a day, `*/2`, `1-10/3`) cannot slip through.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_PART = re.compile(r"(?P<from>\*|\w+)(?:-(?P<to>\w+))?(?:/(?P<step>\d+))?")
_RATE = re.compile(r"rate\((?P<number>\d+) (?P<unit>minute|hour|day)s?\)")
_SHORTEST_RUN = 3


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of a cron expression: what it is called, its numbers, and the names that stand for them."""

    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()

    def numbers(self, text: str) -> list[int]:
        """Return the numbers that a field means, in order.

        Raises:
            ValueError: a part of it is none of `*`, a number, a name, a range or a step.
        """
        found: set[int] = set()
        for part in text.split(","):
            match = _PART.fullmatch(part)
            if match is None:
                raise ValueError(f"{part!r} in the {self.name} is not understood; use numbers, ranges and steps")
            found.update(self._range(part, match))
        return sorted(found)

    def _range(self, part: str, match: re.Match[str]) -> range:
        start = self.first if match["from"] == "*" else self._number(match["from"])
        if match["to"] is not None:
            end = self._number(match["to"])
        else:
            end = self.last if match["from"] == "*" or match["step"] else start
        step = int(match["step"] or 1)
        if start > end or step == 0:
            raise ValueError(f"{part!r} in the {self.name} names nothing")
        return range(start, end + 1, step)

    def _number(self, text: str) -> int:
        if text.upper() in self.names:
            return self.names.index(text.upper()) + self.first
        if not text.isdecimal() or not self.first <= int(text) <= self.last:
            raise ValueError(f"{text!r} in the {self.name} is not of {self.first}-{self.last}")
        return int(text)

    def written(self, numbers: Sequence[int]) -> str:
        """Return a field of EventBridge's that means these numbers."""
        if len(numbers) == self.last - self.first + 1:
            return "*"
        steps = {later - earlier for earlier, later in pairwise(numbers)}
        if len(numbers) >= _SHORTEST_RUN and len(steps) == 1:
            step = steps.pop()
            if step == 1:
                return f"{numbers[0]}-{numbers[-1]}"
            if numbers[-1] + step > self.last:
                return f"{numbers[0]}/{step}"
        return ",".join(map(str, numbers))


_MINUTE = _Field("minutes", 0, 59)
_HOUR = _Field("hours", 0, 23)
_DAY = _Field("days of the month", 1, 31)
_MONTH = _Field("months", 1, 12, _MONTHS)
_WEEKDAY = _Field("days of the week", 0, 7, _DAYS)


def eventbridge_expression(cron: str) -> str:
    """Return the EventBridge schedule expression, in UTC, that means the same as a cron expression.

    Args:
        cron: five fields; six when the first, the seconds, is 0; or a macro such as `@hourly`.

    Raises:
        ValueError: EventBridge cannot say it, or it means nothing. The message says why and what to do.
    """
    fields = MACROS.get(cron.strip(), cron).split()
    if len(fields) == len(("seconds", _MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)):
        if fields[0] != "0":
            raise ValueError(f"{cron!r} counts seconds, which EventBridge does not; make its first field 0")
        fields = fields[1:]
    if len(fields) != len((_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)):
        raise ValueError(f"{cron!r} has {len(fields)} fields; write minute, hour, day of month, month, day of week")
    minute, hour, day, month, weekday = fields
    days, weekdays = _DAY.numbers(day), sorted({number % 7 for number in _WEEKDAY.numbers(weekday)})
    if len(days) < _DAY.last and len(weekdays) < len(_DAYS):
        raise ValueError(f"{cron!r} names days of the month and of the week; make two triggers of it, one for each")
    written = (
        _MINUTE.written(_MINUTE.numbers(minute)),
        _HOUR.written(_HOUR.numbers(hour)),
        _DAY.written(days) if len(weekdays) == len(_DAYS) else "?",
        _MONTH.written(_MONTH.numbers(month)),
        "?" if len(weekdays) == len(_DAYS) else ",".join(_DAYS[number] for number in weekdays),
        "*",
    )
    return f"cron({' '.join(written)})"


def checked_rate(expression: str) -> str:
    """Return an EventBridge expression as it is; of a rate, EventBridge wants `1 minute` but `2 minutes`.

    Raises:
        ValueError: it is a rate that EventBridge does not take. The message has the right form.
    """
    if not expression.startswith("rate("):
        return expression
    match = _RATE.fullmatch(expression)
    number = int(match["number"]) if match else 0
    if match is None or number == 0:
        raise ValueError(f"{expression} is no rate; write rate(1 hour), or rate(15 minutes)")
    right = f"rate({number} {match['unit']}{'s' * (number > 1)})"
    if expression != right:
        raise ValueError(f"EventBridge does not take {expression}; write {right}")
    return right
