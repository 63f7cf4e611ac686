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


async def late_commits(
    position: Position, trackers: Iterable[tuple[int, Tracker]], reader: Reader, resolver: Resolver
) -> AsyncIterator[tuple[int, Tracker, Prepared]]:
    """Return the late commits of all shards, each with its shard.

    All are written down in the position before the first is returned: it may go on, and they are not lost.
    """
    owed = []
    for number, tracker in trackers:
        keys = await asyncio.to_thread(reader.late, number, tracker.position, position)
        tracker.position.owed = set(keys)
        owed.append((number, tracker, keys))
    position.swept_to(reader.horizon)
    for number, tracker, keys in owed:
        for start in range(0, len(keys), AT_ONCE):
            part = keys[start : start + AT_ONCE]
            items = await asyncio.to_thread(reader.fetch, number, part)
            tracker.position.owed -= set(part).difference(item.key for item in items)
            for prepared in await resolver.prepare(items):
                yield number, tracker, prepared
