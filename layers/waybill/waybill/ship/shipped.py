"""What of the log an exporter has behind it, by its position: for those who check what it made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waybill.model.event import event_from_body

if TYPE_CHECKING:
    from collections.abc import Iterator

    from waybill.model.event import LineageEvent
    from waybill.ship.filters import Filters
    from waybill.ship.position import Position
    from waybill.ship.reader import Reader


def shipped(reader: Reader, position: Position, filters: Filters) -> Iterator[LineageEvent]:
    """Return the events that are behind a position and pass the filters on events, shard by shard.

    Those committed late, which the next run will find, are not among them, nor those that cannot be read. Filters on
    assets ask for assets as they were when the event was shipped, so they are not applied.
    """
    answered = {key for _, shard in position.sweeps() for key in shard.answered}
    late = {key for number, shard in position.sweeps() for key in reader.late(number, shard, position)}
    for number in range(reader.most_shards):
        done = reader.done(position, number)
        for step in reader.read(number, position.since, None):
            for item in step.items:
                if item.fault is None and item.key not in late and (item.key <= done or item.key in answered):
                    event = _readable(item.key, item.body)
                    if event is not None and filters.takes(event):
                        yield event


def _readable(key: str, body: str | bytes) -> LineageEvent | None:
    try:
        return event_from_body(key, body)
    except (ValueError, KeyError, TypeError):
        return None
