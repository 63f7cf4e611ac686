"""What was passed lately: tells a late commit from an event that was shipped, in bounded space.

A write that DynamoDB commits long after its client gave up lands behind the position. The sweep reads the last minutes
before the position again and asks here which ids are new. Time is cut into slices. A slice of few ids keeps them; a
fuller one keeps their count and their XOR, from which a few missing ids can still be told exactly.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from waybill.clock import from_millis
from waybill.ids import long_uuid, short_uuid, uuid7_floor, uuid7_millis

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WINDOW_MILLIS = 11 * 60_000
SLICE_MILLIS = 10_000
MOST_KEPT = 4
_MOST_TRIED = 2_000_000
"""Combinations tried before a slice is sent again whole rather than any of it lost."""


class Slice:
    """The ids passed within one slice of time."""

    __slots__ = ("count", "ids", "xor")

    def __init__(self, count: int = 0, xor: int = 0, ids: set[str] | None = None) -> None:
        self.count = count
        self.xor = xor
        self.ids: set[str] | None = set() if ids is None and not count else ids

    def add(self, key: str) -> None:
        """Count an id that was passed."""
        self.count += 1
        self.xor ^= _number(key)
        if self.ids is not None:
            self.ids.add(key)
            if len(self.ids) > MOST_KEPT:
                self.ids = None

    def remove(self, key: str) -> None:
        """Forget an id that was passed and has left the log."""
        if self.ids is None:
            self.count -= 1
            self.xor ^= _number(key)
        elif key in self.ids:
            self.ids.discard(key)
            self.count -= 1
            self.xor ^= _number(key)

    def missing(self, present: Sequence[str]) -> list[str]:
        """Return those of the ids present in the log that were not passed."""
        if self.ids is not None:
            return [key for key in present if key not in self.ids]
        xor = self.xor
        for key in present:
            xor ^= _number(key)
        return _with_xor(present, len(present) - self.count, xor)


def _with_xor(present: Sequence[str], amount: int, xor: int) -> list[str]:
    """Find the ids, as many as `amount`, whose XOR is `xor`: with 74 random bits each, they are the ones."""
    if amount == 0 and xor == 0:
        return []
    by_number = {_number(key): key for key in present}
    tried = 0
    if amount > 0:
        for others in combinations(by_number, amount - 1):
            tried += 1
            last = xor
            for number in others:
                last ^= number
            if last in by_number and last not in others:
                return sorted(by_number[number] for number in (*others, last))
            if tried >= _MOST_TRIED:
                break
    return list(present)


def _number(key: str) -> int:
    return int(key.replace("-", ""), 16)


class Recent:
    """The ids of one shard that were passed within the window before the position."""

    def __init__(self) -> None:
        self._slices: dict[int, Slice] = {}
        self._start = ""

    def add(self, key: str) -> None:
        """Count an id that was passed, unless it lies before what is kept."""
        if key < self._start:
            return
        number = uuid7_millis(key) // SLICE_MILLIS
        slice_ = self._slices.get(number)
        if slice_ is None:
            slice_ = self._slices[number] = Slice()
        slice_.add(key)

    def remove(self, key: str) -> None:
        """Forget an id that has left the log."""
        slice_ = self._slices.get(uuid7_millis(key) // SLICE_MILLIS)
        if slice_ is not None:
            slice_.remove(key)

    def forget_before(self, start: str) -> None:
        """Drop the slices that lie before a sort key, the start of a window."""
        self._start = start
        oldest = uuid7_millis(start) // SLICE_MILLIS
        for number in [number for number in self._slices if number < oldest]:
            del self._slices[number]

    def missing(self, present: Iterable[str]) -> list[str]:
        """Return those of the ids present in the log, in the window before the position, that were not passed."""
        by_slice: dict[int, list[str]] = {}
        for key in present:
            by_slice.setdefault(uuid7_millis(key) // SLICE_MILLIS, []).append(key)
        empty = Slice()
        return [
            key for number, keys in sorted(by_slice.items()) for key in self._slices.get(number, empty).missing(keys)
        ]

    def to_json(self) -> list[list[Any]]:
        """Return the slices as JSON: `[number, [ids]]` or `[number, count, xor]`."""
        return [
            [number, slice_.count, f"{slice_.xor:x}"]
            if slice_.ids is None
            else [number, sorted(map(short_uuid, slice_.ids))]
            for number, slice_ in self._slices.items()
        ]

    @classmethod
    def from_json(cls, slices: Sequence[Sequence[Any]]) -> Recent:
        """Read what `to_json` wrote."""
        recent = cls()
        for number, *rest in slices:
            if isinstance(rest[0], list):
                for key in rest[0]:
                    recent.add(long_uuid(key))
            else:
                recent._slices[number] = Slice(rest[0], int(rest[1], 16))
        return recent


def window_start(position: str) -> str:
    """Return the least sort key of the window before a position: the start of a slice, so that slices are whole."""
    return uuid7_floor(from_millis(max(0, uuid7_millis(position) - WINDOW_MILLIS) // SLICE_MILLIS * SLICE_MILLIS))
