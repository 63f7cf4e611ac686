"""Finds late commits: events that landed behind the position after it had passed their place (`aws.md` 4.4)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from waybill.ship.position import Position
    from waybill.ship.reader import Reader
    from waybill.ship.resolve import Prepared, Resolver
    from waybill.ship.tracker import Tracker

AT_ONCE = 100
MOST_OWED = 2_000
"""Late commits that a position names at a time, so that its item stays far below 400 KB."""

Owed = list[tuple[int, "Tracker", list[str]]]
"""By shard, the sort keys of late commits."""


async def sweep(position: Position, trackers: Iterable[tuple[int, Tracker]], reader: Reader) -> tuple[Owed, bool]:
    """Look for late commits in all shards, and write them down in the position; tell whether these are all.

    Once written down they are not lost when it goes on. Where they are not all, it must not go on.
    """
    found: Owed = []
    room, all_found = MOST_OWED, True
    for number, tracker in trackers:
        keys = await asyncio.to_thread(reader.late, number, tracker.position, position)
        owed_before = tracker.position.owed
        keys.sort(key=lambda key: (key not in owed_before, key))
        taken = keys[: max(room, len(owed_before))]
        room, all_found = max(0, room - len(taken)), all_found and len(taken) == len(keys)
        tracker.position.owed = set(taken)
        found.append((number, tracker, sorted(taken)))
    if all_found:
        position.swept_to(reader.horizon)
    return found, all_found


async def prepared_late(owed: Owed, reader: Reader, resolver: Resolver) -> AsyncIterator[tuple[int, Tracker, Prepared]]:
    """Return late commits ready to be sent, each with its shard; those that have left the log are owed no more."""
    for number, tracker, keys in owed:
        for start in range(0, len(keys), AT_ONCE):
            part = keys[start : start + AT_ONCE]
            items = await asyncio.to_thread(reader.fetch, number, part)
            tracker.position.owed -= set(part).difference(item.key for item in items)
            for prepared in await resolver.prepare(items):
                yield number, tracker, prepared
