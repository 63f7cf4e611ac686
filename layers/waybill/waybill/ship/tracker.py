"""Moves the position of a shard as answers come in."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill.ship.position import ShardPosition


class Entry:
    """One step of a shard: an event on its way, or the border of an hour that was read to its end."""

    __slots__ = ("border", "done", "key")

    def __init__(self, key: str, *, done: bool = False, border: bool = False) -> None:
        self.key = key
        self.done = done
        self.border = border


class Tracker:
    """Moves the position of one shard as answers come in, in whatever order.

    Entries are added in the order of the log; the position moves over the done ones at the head.
    """

    def __init__(self, position: ShardPosition) -> None:
        self.position = position
        self._started = position.key
        self._answered_before = frozenset(position.answered)
        self._late: set[str] = set()
        self._entries: deque[Entry] = deque()

    @property
    def open(self) -> int:
        """How many steps are remembered because one before them is not done."""
        return len(self._entries)

    def add(self, key: str, *, passed: bool = False) -> Entry:
        """Add the next event of the shard; `passed` when nobody is to answer for it."""
        entry = Entry(key, done=passed)
        self._entries.append(entry)
        if passed:
            self._advance()
        return entry

    def border(self, key: str) -> None:
        """Add the border of an hour that is closed and was read to its end."""
        self._entries.append(Entry(key, done=True, border=True))
        self._advance()

    def done(self, entry: Entry) -> None:
        """Take the answer to an event."""
        entry.done = True
        if entry is self._entries[0]:
            self._advance()
        else:
            self.position.answered.add(entry.key)

    def late(self, key: str) -> None:
        """Take the answer to an event that was committed behind the position."""
        self._late.add(key)
        self.position.owed.discard(key)
        self.position.recent.add(key)

    def covers(self, key: str) -> bool:
        """Tell whether this run has answered an event of the shard."""
        if key in self._answered_before:
            return False
        return self._started < key <= self.position.key or key in self.position.answered or key in self._late

    def _advance(self) -> None:
        position, entries = self.position, self._entries
        while entries and entries[0].done:
            entry = entries.popleft()
            position.key = entry.key
            if not entry.border:
                position.answered.discard(entry.key)
                position.recent.add(entry.key)
