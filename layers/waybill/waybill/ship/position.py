"""The position of one exporter in the log: how far each shard is done, and what is done above it.

A position is a sort key: everything in the shard up to it is answered or passed over by the filters. It moves only to a
key that a consistent read returned, or to the border of an hour that is closed and was read to its end (`aws.md` 4.3).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from waybill.errors import InvalidOffset
from waybill.ship.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class ShardPosition:
    """How far one shard is done.

    Attributes:
        key: everything up to this sort key is done.
        answered: what is answered above it.
        recent: what was passed in the minutes before it.
    """

    key: str
    answered: set[str] = field(default_factory=set)
    recent: Recent = field(default_factory=Recent)


@dataclass(slots=True)
class Position:
    """How far one exporter is done.

    Attributes:
        since: where it started, a sort key: nothing before it is ever sent.
        generation: the start of the generation of shards it reads.
        shards: by number of the shard.
        last: the greatest sort key that was answered, "" before the first.
        deleted: how far each shard's shipped events were deleted from the log.
        deleting: a deletion under way, each event as `<shard>/<sort key>`.
    """

    since: str
    generation: str
    shards: dict[int, ShardPosition]
    last: str = ""
    deleted: dict[int, str] = field(default_factory=dict)
    deleting: list[str] = field(default_factory=list)

    def to_json(self) -> str:
        """Write the position as one JSON string."""
        shards = {
            str(number): {"key": shard.key, "answered": sorted(shard.answered), "recent": shard.recent.to_json()}
            for number, shard in self.shards.items()
        }
        document = {"since": self.since, "generation": self.generation, "last": self.last, "shards": shards}
        if self.deleted or self.deleting:
            deleted = {str(number): key for number, key in self.deleted.items()}
            document |= {"deleted": deleted, "deleting": self.deleting}
        return orjson.dumps(document).decode()

    @property
    def lowest(self) -> str:
        """The sort key up to which every shard is done."""
        return min(shard.key for shard in self.shards.values())

    @classmethod
    def start(cls, since: str, generation: str, shards: Iterable[int]) -> Position:
        """Return the position of an exporter that has done nothing since a sort key."""
        return cls(since, generation, {number: ShardPosition(since) for number in shards})

    @classmethod
    def from_json(cls, text: str, name: str) -> Position:
        """Read what `to_json` wrote.

        Raises:
            InvalidOffset: the text is no position.
        """
        try:
            said: dict[str, Any] = orjson.loads(text)
            shards = {
                int(number): ShardPosition(shard["key"], set(shard["answered"]), Recent.from_json(shard["recent"]))
                for number, shard in said["shards"].items()
            }
            deleted = {int(number): key for number, key in said.get("deleted", {}).items()}
            return cls(said["since"], said["generation"], shards, said["last"], deleted, said.get("deleting", []))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidOffset(f"{name}: holds no position; delete it to start again from lookbackPeriod") from error


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
        self.position.answered.add(entry.key)
        self._advance()

    def late(self, key: str) -> None:
        """Take the answer to an event that was committed behind the position."""
        self._late.add(key)
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
