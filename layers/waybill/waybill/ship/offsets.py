"""What people see and set of the positions: how far each task is, what waits, who holds the lease."""

from __future__ import annotations

import uuid
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.clock import from_millis
from waybill.errors import InvalidDocument, InvalidOffset
from waybill.ids import uuid7_floor, uuid7_millis
from waybill.ship.position import Position
from waybill.ship.reader import Reader, hour_of_key
from waybill.ship.services import services_of
from waybill.ship.task import state_key
from waybill.store.keyvalue import Busy
from waybill.store.offsets import Offset
from waybill.store.shards import next_hour

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from waybill.model.flow import Flow
    from waybill.settings import Settings
    from waybill.ship.position import ShardPosition
    from waybill.ship.services import Services
    from waybill.store.states import State


@dataclass(frozen=True, slots=True)
class ExporterOffset:
    """How far one exporter is.

    Attributes:
        through: the recording time up to which every shard is done.
        waiting: how many events stand in the log above its position, filters not considered; None where not counted.
        oldest: when the first of those that wait was recorded; None where none waits, or none was counted.
    """

    id: str
    through: datetime
    waiting: int | None
    oldest: datetime | None


@dataclass(frozen=True, slots=True)
class TaskOffset:
    """How far one task is, and who ships it at the moment.

    Attributes:
        faults: what of it cannot be read, and how to go on.
    """

    namespace: str
    key: str
    end_fetched_date: str | None
    owner: str | None
    until: datetime | None
    exporters: tuple[ExporterOffset, ...]
    faults: tuple[str, ...] = ()


class Offsets:
    """The offsets of every task of a stack."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @classmethod
    def of(cls, settings: Settings) -> Offsets:
        """Return the offsets of a stack."""
        return cls(services_of(settings))

    def all(self, *, count: bool) -> list[TaskOffset]:
        """Return every task's offset; with `count` the log above the positions is read."""
        return [self._offset(state, count=count) for state in self._services.states.all()]

    def reset(self, namespace: str, key: str) -> None:
        """Delete a task's offset: its next run starts again from lookbackPeriod.

        Raises:
            InvalidDocument: no task has shipped under the key.
        """
        self._state(namespace, key)
        self._services.states.delete(namespace, key)
        if self._services.offsets is not None:
            self._services.offsets.delete(namespace, key)

    def set(self, namespace: str, key: str, moment: datetime, flow: Flow | None = None) -> None:
        """Make a task ship what was recorded since an instant, to every exporter it has.

        Args:
            namespace: of the flow.
            key: of the task's state.
            moment: the instant.
            flow: the task's flow; with it, a task and exporters that have not shipped yet are begun.

        Raises:
            InvalidDocument: no task has shipped under the key, and no flow is given; or the flow has no such task.
        """
        exporters = self._begun(namespace, key, flow) if flow else []
        state = self._state(namespace, key, "; with --flow FILE a task that has not run yet is begun")
        generation = uuid.uuid4().hex
        start = self._reader().start(uuid7_floor(moment)).to_json()
        positions = dict.fromkeys([*state.positions, *exporters], start)
        if not positions:
            raise InvalidDocument([f"{namespace} {key}: no exporter of the task has a position yet; give --flow FILE"])
        self._services.states.begin(namespace, key, generation, positions)
        if self._services.offsets is not None:
            self._services.offsets.put(namespace, key, Offset(generation, None))

    def _begun(self, namespace: str, key: str, flow: Flow) -> list[str]:
        """Make the state of a flow's task, unless there is one, and return the ids of the task's exporters."""
        tasks = {state_key(flow, task): task for task in flow.shippers}
        task = tasks.get(key)
        if task is None or flow.namespace != namespace:
            known = ", ".join(f"{flow.namespace} {each}" for each in tasks)
            raise InvalidDocument([f"{namespace} {key}: is the key of no task of the flow; it has {known}"])
        lease = self._services.key_values.acquire(namespace, key, flow.id, task.id, "waybill offsets set")
        if not isinstance(lease, Busy):
            self._services.key_values.release(lease, lease.end_fetched_date)
        return [exporter.id for exporter in task.asset_exporters]

    def _state(self, namespace: str, key: str, advice: str = "") -> State:
        states = self._services.states.all()
        for state in states:
            if (state.namespace, state.key) == (namespace, key):
                return state
        known = ", ".join(f"{state.namespace} {state.key}" for state in states) or "none"
        raise InvalidDocument([f"{namespace} {key}: no task has shipped under this key; known are {known}{advice}"])

    def _reader(self) -> Reader:
        horizon = uuid7_floor(self._services.clock())
        return Reader(self._services.log, self._services.shards.generations(), horizon)

    def _offset(self, state: State, *, count: bool) -> TaskOffset:
        exporters = []
        faults = [] if state.fault is None else [state.fault]
        for exporter_id, body in state.positions.items():
            try:
                position = Position.from_json(body, f"{state.namespace} {state.key} of {exporter_id}")
            except InvalidOffset as error:
                faults.append(str(error))
                continue
            waiting, oldest = self._waiting(position) if count else (None, None)
            exporters.append(ExporterOffset(exporter_id, _recorded(position.lowest), waiting, oldest))
        held = state.until is not None and state.until > self._services.clock()
        return TaskOffset(
            state.namespace,
            state.key,
            state.end_fetched_date,
            state.owner if held else None,
            state.until if held else None,
            tuple(exporters),
            tuple(faults),
        )

    def _waiting(self, position: Position) -> tuple[int, datetime | None]:
        """Count the events above a position in every generation of shards from its own on, and date the oldest."""
        reader = self._reader()
        waiting, oldest = 0, reader.horizon
        following: Position | None = deepcopy(position)  # which moves, while the exporter's own stays where it is
        while following is not None:
            until = min(reader.end_of(following) or reader.horizon, reader.horizon)
            for number, shard in following.shards.items():
                for key in self._keys_above(number, shard, until):
                    waiting += 1
                    oldest = min(oldest, key)
                shard.key = until
            following = reader.next_generation(following)
        return waiting, _recorded(oldest) if waiting else None

    def _keys_above(self, number: int, shard: ShardPosition, until: str) -> Iterator[str]:
        hour = hour_of_key(shard.key)
        while hour <= hour_of_key(until):
            for key in self._services.log.keys(f"{hour}#{number}", shard.key, until):
                if key not in shard.answered:
                    yield key
            hour = next_hour(hour)


def _recorded(key: str) -> datetime:
    return from_millis(uuid7_millis(key))
