"""Reads the shards of the log, from a position to the horizon, and looks again at the minutes before the position."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.clock import from_millis
from waybill.ids import uuid7_floor, uuid7_millis
from waybill.ship.position import Position, ShardPosition
from waybill.ship.recent import window_start
from waybill.store.log_reader import LogItem, LogPage, LogReader
from waybill.store.shards import Generation, hour_of, hour_start, next_hour

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence


MOST_READ = 4_000
"""Events in the pages that all shards are asked for at once."""

LEAST_PAGE = 50


@dataclass(frozen=True, slots=True)
class Step:
    """What one read gives: events in order, and the border that may be passed once they are done."""

    items: list[LogItem]
    border: str | None = None


@dataclass(frozen=True, slots=True)
class _Ask:
    """What to read next of a shard."""

    hour: str
    after: str

    def answer(self, page: LogPage, until: str) -> tuple[Step, _Ask | None]:
        """Return what a page gives, and what to read after it."""
        if page.more is not None:
            return Step(page.items), _Ask(self.hour, page.more)
        following = next_hour(self.hour)
        border = _border(following)
        if border <= until:
            return Step(page.items, border), _Ask(following, border)
        return Step(page.items), None


class Reader:
    """Reads up to a horizon: no event that might still get an elder neighbour is ever seen.

    Args:
        horizon: the sort key that no read passes; now minus the settle window, at the start of the run.
        generations: of the number of shards, oldest first.
    """

    def __init__(self, log: LogReader, generations: list[Generation], horizon: str) -> None:
        self._log = log
        self._generations = generations
        self.horizon = horizon
        self._page_items = max(LEAST_PAGE, MOST_READ // self.most_shards)

    def start(self, since: str) -> Position:
        """Return the position of an exporter that starts at a sort key, or where the log itself begins."""
        begun = self._generations[0].begun
        if begun:
            since = max(since, _border(begun))
        hour = hour_of_key(since)
        generation = max(
            (found for found in self._generations if found.start <= hour),
            key=lambda found: found.start,
            default=self._generations[0],
        )
        return Position.start(since, generation.start, range(generation.shards))

    def end_of(self, position: Position) -> str | None:
        """Return the border at which the position's generation ends, or None where it is the newest."""
        later = self._after(position)
        return _border(later.start) if later else None

    @property
    def most_shards(self) -> int:
        """The greatest number of shards that the log ever had."""
        return max(generation.shards for generation in self._generations)

    def done(self, position: Position, number: int) -> str:
        """Return the sort key up to which a shard is done, be it of an earlier generation."""
        if number in position.shards:
            return position.shards[number].key
        return position.since if position.generation == self._generations[0].start else _border(position.generation)

    def next_generation(self, position: Position) -> Position | None:
        """Return the position at the start of the next generation, once this one was read to its end and is closed."""
        later, border = self._after(position), self.end_of(position)
        if later is None or border is None or border > self.horizon or position.lowest < border:
            return None
        return position.following(later.start, border, range(later.shards))

    def read(self, number: int, after: str, end: str | None) -> Iterator[Step]:
        """Read a shard from a position to the horizon or the end of its generation."""
        until = self.horizon if end is None else min(self.horizon, end)
        asked: _Ask | None = _Ask(hour_of_key(after), after)
        while asked is not None:
            step, asked = asked.answer(self._page(asked, number, until), until)
            yield step

    async def steps(self, number: int, after: str, end: str | None) -> AsyncIterator[Step]:
        """Do as `read` does, in threads and one page ahead of need."""
        until = self.horizon if end is None else min(self.horizon, end)
        asked = _Ask(hour_of_key(after), after)
        ahead = asyncio.create_task(asyncio.to_thread(self._page, asked, number, until))
        while True:
            step, following = asked.answer(await ahead, until)
            if following is not None:
                ahead = asyncio.create_task(asyncio.to_thread(self._page, following, number, until))
            yield step
            if following is None:
                return
            asked = following

    def _page(self, asked: _Ask, number: int, until: str) -> LogPage:
        if asked.after >= until:
            return LogPage([], None)
        return self._log.page(f"{asked.hour}#{number}", asked.after, until, self._page_items)

    def late(self, number: int, shard: ShardPosition, position: Position) -> list[str]:
        """Return the events of a position's shard that were committed behind it after it had passed their place.

        Those that an earlier run found, and could not bring to an answer, are among them.
        """
        oldest = max(position.oldest_late, window_start(shard.key))
        if position.shards.get(number) is shard and position.generation != self._generations[0].start:
            oldest = max(oldest, _border(position.generation))
        present: list[str] = []
        hour = hour_of_key(oldest)
        while max(oldest, _border(hour)) < shard.key:
            present += self._log.keys(f"{hour}#{number}", oldest, shard.key)
            hour = next_hour(hour)
        return sorted(shard.owed.union(shard.recent.missing(present)))

    def fetch(self, number: int, keys: Sequence[str]) -> list[LogItem]:
        """Return events by their sort keys; those that have left the log are left out."""
        found = [self._log.get(bucket_of(key, number), key) for key in keys]
        return [item for item in found if item is not None]

    def _after(self, position: Position) -> Generation | None:
        return next((found for found in self._generations if found.start > position.generation), None)


def _border(hour: str) -> str:
    return uuid7_floor(hour_start(hour))


def hour_of_key(key: str) -> str:
    """Return the hour, and so the bucket, of a sort key."""
    return hour_of(from_millis(uuid7_millis(key)))


def bucket_of(key: str, shard: int) -> str:
    """Return the bucket of a sort key in a shard."""
    return f"{hour_of_key(key)}#{shard}"
