"""What was passed lately: tells a late commit from an event that was shipped, in bounded space.

A write that DynamoDB commits long after its client gave up lands behind the position. The sweep reads the last minutes
before the position again and asks here which ids are new. Time is cut into slices and each slice into cells, by a hash
of the id. A cell keeps how many ids it was given and the XOR of their hashes. From what stands in the log now, that
tells the few that it was not given: those, so many of them, whose hashes make up the difference.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import blake2b
from itertools import combinations
from math import comb
from struct import Struct
from typing import TYPE_CHECKING, Any

from waybill.clock import from_millis
from waybill.ids import uuid7_floor, uuid7_millis

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

WINDOW_MILLIS = 11 * 60_000
"""Late commits are looked for over the last 10 minutes; the rest is for clocks."""

WIDEST_SLICE = 60_000
MOST_SOLVED = 56
"""Ids of a cell whose hashes, of 64 bits, are independent as good as always: any number of them can be told."""

MOST_TRIED = 300_000
"""Combinations tried in a fuller cell before it is sent again whole rather than any of it lost."""

_CELL = Struct(">BiQ")
_FEW, _MANY = 8, 64


class Recent:
    """The ids of one shard that were passed within the window before the position.

    Args:
        slice_millis: how long a slice is.
        cells: of a slice; a power of two.
    """

    def __init__(self, slice_millis: int = 10_000, cells: int = 16) -> None:
        self._millis = slice_millis
        self._cells = cells
        self._slices: dict[int, dict[int, tuple[int, int]]] = {}
        self._start = ""

    @classmethod
    def of(cls, shards: int) -> Recent:
        """Return an empty one; it is the coarser the more shards there are, for all stand in one item."""
        if shards <= _FEW:
            return cls()
        return cls(WIDEST_SLICE, 16 if shards <= _MANY else 2)

    def add(self, key: str) -> None:
        """Count an id that was passed, unless it lies before what is kept."""
        if key >= self._start:
            self._count(key, 1)

    def remove(self, key: str) -> None:
        """Forget an id that was passed and has left the log."""
        if uuid7_millis(key) // self._millis in self._slices:
            self._count(key, -1)

    def forget_before(self, start: str) -> None:
        """Drop the slices that lie before a sort key, the start of a window."""
        self._start = start
        oldest = uuid7_millis(start) // self._millis
        for number in [number for number in self._slices if number < oldest]:
            del self._slices[number]

    def missing(self, present: Iterable[str]) -> list[str]:
        """Return those of the ids present in the log, in the window before the position, that were not passed.

        Where that cannot be told, those of a cell count as not passed, from now on too.
        """
        by_cell: dict[tuple[int, int], dict[int, str]] = {}
        for key in present:
            mark = _hash(key)
            by_cell.setdefault((uuid7_millis(key) // self._millis, mark % self._cells), {})[mark] = key
        found: list[str] = []
        for (number, cell), keys in by_cell.items():
            count, xor = self._slices.get(number, {}).get(cell, (0, 0))
            others = _others(list(keys), count, xor)
            if others is None:
                # All are sent again, and counted anew as they are: else the next sweep would not know them either.
                self._slices[number][cell] = (0, 0)
            found += [keys[mark] for mark in keys if others is None or mark in others]
        return sorted(found)

    def _count(self, key: str, step: int) -> None:
        mark = _hash(key)
        cells = self._slices.setdefault(uuid7_millis(key) // self._millis, {})
        count, xor = cells.get(mark % self._cells, (0, 0))
        cells[mark % self._cells] = count + step, xor ^ mark

    def to_json(self) -> list[Any]:
        """Return the slices as JSON: `[milliseconds, cells, {number: the cells that were given any, packed}]`."""
        packed = {
            str(number): b64encode(b"".join(_CELL.pack(cell, *found) for cell, found in sorted(cells.items()))).decode()
            for number, cells in sorted(self._slices.items())
        }
        return [self._millis, self._cells, packed]

    @classmethod
    def from_json(cls, said: Sequence[Any]) -> Recent:
        """Read what `to_json` wrote.

        Raises:
            ValueError, TypeError: it is something else.
        """
        millis, cells, slices = said
        recent = cls(int(millis), int(cells))
        for number, packed in slices.items():
            unpacked = _CELL.iter_unpack(b64decode(packed, validate=True))
            recent._slices[int(number)] = {cell: (count, xor) for cell, count, xor in unpacked}
        return recent


def window_start(position: str) -> str:
    """Return the least sort key of the window before a position: the start of a slice, so that slices are whole."""
    start = max(0, uuid7_millis(position) - WINDOW_MILLIS)
    return uuid7_floor(from_millis(start // WIDEST_SLICE * WIDEST_SLICE))


def _hash(key: str) -> int:
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big")


def _others(marks: Sequence[int], count: int, xor: int) -> Collection[int] | None:
    """Return the marks but for those, so many of them, whose XOR is given; None where that cannot be told."""
    others = len(marks) - count
    if others < 0:
        return None
    if others <= count:
        return _with_xor(marks, others, xor ^ _xor_of(marks))
    given = _with_xor(marks, count, xor)
    return None if given is None else set(marks).difference(given)


def _with_xor(marks: Sequence[int], amount: int, xor: int) -> Sequence[int] | None:
    """Find those marks, so many of them, whose XOR it is, or None."""
    if amount == 0:
        return None if xor else ()
    solved = _solved(marks, xor) if len(marks) <= MOST_SOLVED else None
    if solved is not None and len(solved) == amount:
        return solved
    return _tried(marks, amount, xor)


def _solved(marks: Sequence[int], xor: int) -> Sequence[int] | None:
    """Solve the linear equations over bits; None where there is no solution, or more than one."""
    rows: dict[int, tuple[int, int]] = {}
    for number, mark in enumerate(marks):
        left, chosen = _reduced(mark, 1 << number, rows)
        if not left:
            return None
        rows[left.bit_length()] = left, chosen
    left, chosen = _reduced(xor, 0, rows)
    return None if left else [mark for number, mark in enumerate(marks) if chosen >> number & 1]


def _reduced(mark: int, chosen: int, rows: dict[int, tuple[int, int]]) -> tuple[int, int]:
    while mark and (row := rows.get(mark.bit_length())):
        mark, chosen = mark ^ row[0], chosen ^ row[1]
    return mark, chosen


def _tried(marks: Sequence[int], amount: int, xor: int) -> Sequence[int] | None:
    """Try combinations; the halves of a solution meet in the middle: one is looked up among all of its size."""
    if comb(len(marks), amount - amount // 2) > MOST_TRIED:
        return None
    halves: dict[int, tuple[int, ...]] = {}
    for half in combinations(marks, amount // 2):
        halves[_xor_of(half)] = half
    for half in combinations(marks, amount - amount // 2):
        other = halves.get(_xor_of(half) ^ xor)
        if other is not None and not set(half).intersection(other):
            return (*half, *other)
    return None


def _xor_of(marks: Iterable[int]) -> int:
    xor = 0
    for mark in marks:
        xor ^= mark
    return xor
