"""The position of one exporter in the log: how far each shard is done, and what is done above it.

A position is a sort key: everything in the shard up to it is answered or passed over by the filters. It moves only to a
key that a consistent read returned, or to the border of an hour that is closed and was read to its end (`aws.md` 4.3).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

from waybill.clock import from_millis
from waybill.ids import as_uuid, long_uuid, short_uuid, uuid7_millis
from waybill.ship.recent import Recent, window_start
from waybill.store.shards import FIRST, hour_of, hour_start
from waybill.store.state_items import no_position

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class ShardPosition:
    """How far one shard is done.

    Attributes:
        key: everything up to this sort key is done.
        answered: what is answered above it.
        owed: late commits, found behind it and not answered yet.
        recent: what was passed in the minutes before it.
    """

    key: str
    answered: set[str] = field(default_factory=set)
    owed: set[str] = field(default_factory=set)
    recent: Recent = field(default_factory=Recent)

    def to_json(self) -> dict[str, Any]:
        """Return the shard's position as JSON."""
        said = {"key": self.key, "answered": sorted(map(short_uuid, self.answered)), "recent": self.recent.to_json()}
        return said | {"owed": sorted(self.owed)} if self.owed else said

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> ShardPosition:
        """Read what `to_json` returned."""
        answered = set(map(long_uuid, said["answered"]))
        owed = set(map(_key, said.get("owed", ())))
        return cls(_key(said["key"]), answered, owed, Recent.from_json(said["recent"]))


@dataclass(slots=True)
class Position:
    """How far one exporter is done.

    Attributes:
        since: where it started, a sort key: nothing before it is ever sent.
        generation: the start of the generation of shards it reads.
        shards: by number of the shard.
        last: the greatest sort key that was answered, "" before the first.
        before: the shards of the generation before, as long as a late commit may land in them.
        swept: the horizon of the run that last looked for late commits, "" before the first.
        deleted: how far each shard's shipped events were deleted from the log.
        deleting: a deletion under way, each event as `<shard>/<sort key>`.
    """

    since: str
    generation: str
    shards: dict[int, ShardPosition]
    last: str = ""
    before: dict[int, ShardPosition] = field(default_factory=dict)
    swept: str = ""
    deleted: dict[int, str] = field(default_factory=dict)
    deleting: list[str] = field(default_factory=list)

    def to_json(self) -> str:
        """Write the position as one JSON string."""
        document: dict[str, Any] = {
            "since": self.since,
            "generation": self.generation,
            "last": self.last,
            "swept": self.swept,
            "shards": {str(number): shard.to_json() for number, shard in self.shards.items()},
        }
        if self.before:
            document["before"] = {str(number): shard.to_json() for number, shard in self.before.items()}
        if self.deleted or self.deleting:
            deleted = {str(number): key for number, key in self.deleted.items()}
            document |= {"deleted": deleted, "deleting": self.deleting}
        return orjson.dumps(document).decode()

    @property
    def lowest(self) -> str:
        """The sort key up to which every shard is done."""
        return min(shard.key for shard in self.shards.values())

    @property
    def progress(self) -> tuple[str, list[tuple[str, int]]]:
        """What differs when the position has moved."""
        return self.generation, [(shard.key, len(shard.answered)) for shard in self.shards.values()]

    @property
    def oldest_late(self) -> str:
        """The sort key before which no late commit is looked for: the last sweep came minutes after it."""
        return max(self.since, window_start(self.swept)) if self.swept else self.since

    def sweeps(self) -> list[tuple[int, ShardPosition]]:
        """Return the shards in which late commits are looked for, by number."""
        return [*self.before.items(), *self.shards.items()]

    def swept_to(self, horizon: str) -> None:
        """Note a sweep; one by a clock that is behind does not count: what it would look for again is forgotten."""
        self.swept = max(self.swept, horizon)
        self.forget()

    def forget(self) -> None:
        """Drop what no sweep will ask for again."""
        oldest = self.oldest_late
        for _, shard in self.sweeps():
            shard.recent.forget_before(max(oldest, window_start(shard.key)))
        self.before = {n: shard for n, shard in self.before.items() if shard.owed or shard.key > oldest}

    def forget_event(self, number: int, key: str) -> None:
        """Forget an event that has left the log, so that late commits beside it are still told."""
        for shards in (self.before, self.shards):
            if number in shards and key <= shards[number].key:
                shards[number].recent.remove(key)
                return

    def following(self, start: str, border: str, shards: Iterable[int]) -> Position:
        """Return the position at the border where another generation of shards begins."""
        return replace(self, generation=start, shards=_begun(border, list(shards)), before=self.shards)

    @classmethod
    def start(cls, since: str, generation: str, shards: Iterable[int]) -> Position:
        """Return the position of an exporter that has done nothing since a sort key."""
        return cls(since, generation, _begun(since, list(shards)))

    @classmethod
    def from_json(cls, text: str, name: str) -> Position:
        """Read what `to_json` wrote.

        Raises:
            InvalidOffset: the text is no position.
        """
        try:
            return cls._of(orjson.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, struct.error) as error:
            raise no_position(name) from error

    @classmethod
    def _of(cls, said: dict[str, Any]) -> Position:
        if not said["shards"]:
            raise ValueError("no shards")
        return cls(
            _key(said["since"]),
            _generation(said["generation"]),
            _shards(said["shards"]),
            _key_or_none(said["last"]),
            _shards(said.get("before", {})),
            _key_or_none(said.get("swept", "")),
            {int(number): _key(key) for number, key in said.get("deleted", {}).items()},
            list(map(_place, said.get("deleting", ()))),
        )


def _begun(key: str, numbers: list[int]) -> dict[int, ShardPosition]:
    return {number: ShardPosition(key, recent=Recent.of(len(numbers))) for number in numbers}


def _key(said: str) -> str:
    """Take a sort key, one with an instant in it that there is."""
    if as_uuid(said) != said:
        raise ValueError(said)
    from_millis(uuid7_millis(said))
    return said


def _key_or_none(said: str) -> str:
    return said if said == "" else _key(said)


def _generation(said: str) -> str:
    if said != FIRST and hour_of(hour_start(said)) != said:
        raise ValueError(said)
    return said


def _place(said: str) -> str:
    """Take an event of a deletion, `<shard>/<sort key>`."""
    number, _, key = said.partition("/")
    return f"{int(number)}/{_key(key)}"


def _shards(said: dict[str, Any]) -> dict[int, ShardPosition]:
    return {int(number): ShardPosition.from_json(shard) for number, shard in said.items()}
