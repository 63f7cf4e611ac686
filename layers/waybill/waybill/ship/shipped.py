"""What of the log an exporter has behind it, by its position: for those who check what it made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waybill.ids import uuid7_floor
from waybill.ship.filters import Filters
from waybill.ship.position import Position
from waybill.ship.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from waybill.export.ports import Run
    from waybill.model.event import LineageEvent
    from waybill.model.flow import AssetShipper
    from waybill.ship.services import Services


def shipped_by(services: Services, run: Run, task: AssetShipper, exporter_id: str) -> Iterator[LineageEvent] | None:
    """Return the events that an exporter of a task has behind it.

    None where filters on assets decided which those are: they asked for assets as they were at that moment.

    Raises:
        InvalidOffset: what is stored is no position.
    """
    filters = Filters.of(task)
    if filters.on_assets:
        return None
    reader = Reader(services.log, services.shards.generations(), uuid7_floor(services.clock()))
    positions = [
        Position.from_json(state.positions[exporter_id], f"{run.namespace} {run.state_key} of {exporter_id}")
        for state in services.states.all()
        if (state.namespace, state.key) == (run.namespace, run.state_key) and exporter_id in state.positions
    ]
    return (event for position in positions for event in shipped(reader, position, filters))


def shipped(reader: Reader, position: Position, filters: Filters) -> Iterator[LineageEvent]:
    """Return the events that are behind a position and pass the filters on events, shard by shard.

    Those committed late, which the next run will find, are not among them, nor those that cannot be read.
    """
    answered = {key for _, shard in position.sweeps() for key in shard.answered}
    late = {key for number, shard in position.sweeps() for key in reader.late(number, shard, position)}
    for number in range(reader.most_shards):
        done = reader.done(position, number)
        for step in reader.read(number, position.since, None):
            for item in step.items:
                if item.key not in late and (item.key <= done or item.key in answered):
                    event = item.event()
                    if not isinstance(event, str) and filters.takes(event):
                        yield event
