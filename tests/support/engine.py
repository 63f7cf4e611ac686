"""The engine with everything around it in the memory of the test: recorders, a log, runs of one task, and a judge."""

from __future__ import annotations

import asyncio
import random
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tests.support.shipping import (
    NAMESPACE,
    RETENTION,
    CatalogInMemory,
    Died,
    TellingExporter,
    TurnedClock,
    lineage_event,
)
from tests.support.stores_in_memory import LogInMemory, Process, ShardsInMemory, TableInMemory
from tests.torture.judge import Figures, Judge
from tests.torture.receiver import Received
from tests.torture.recorders import Recorded
from waybill.clock import from_millis, iso
from waybill.errors import WaybillError
from waybill.ids import uuid7, uuid7_floor, uuid7_millis
from waybill.model.flow import parse_flow
from waybill.ship.flow import run_flow
from waybill.ship.position import Position
from waybill.ship.reader import hour_of_key
from waybill.ship.services import Services
from waybill.store.keyvalue import KeyValueStore
from waybill.store.shards import generation_at, shard_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from waybill.export.ports import Delivery

SETTLE = timedelta(seconds=6)
PATIENCE = 20.0
FLOW = parse_flow(
    {
        "id": "ship",
        "namespace": NAMESPACE,
        "tasks": [
            {
                "id": "ship_lineage",
                "type": "AssetShipper",
                "flowId": "load",
                "assetExporters": [{"id": "receiver", "type": "OpenLineageAssetExporter", "uri": "http://127.0.0.1:1"}],
            }
        ],
    }
)


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended: its task's answer, or why it failed, or neither when its process was killed."""

    answer: dict[str, Any] | None = None
    failure: str = ""


class Engine:
    """One task with one exporter, and all that happens to it."""

    def __init__(self) -> None:
        self.clock = TurnedClock()
        self.log = LogInMemory(random.Random(0))  # noqa: S311 - odd pages, the same again each time
        self.shards = ShardsInMemory(self.clock, [])
        self.table = TableInMemory()
        self.recorded: dict[str, Recorded] = {}
        self.figures = Figures()
        self.judge = Judge(self.recorded, self.figures)
        self._delayed: list[tuple[datetime, Recorded, str, str]] = []
        self._runs = 0
        self._end = ""

    def record(self, job: str, skew: float, offset: timedelta = timedelta(0), after: float | None = None) -> None:
        """Record an event by a clock that is wrong; with `after` it lands so many seconds later."""
        key = uuid7(self.clock.now + timedelta(seconds=skew) + offset)
        shards = generation_at(self.shards.found, hour_of_key(key)).shards
        event = lineage_event(job)
        recorded = Recorded(key, shard_of(f"{NAMESPACE}/{job}", shards), event.job, late=False)
        if after is None:
            self._land(recorded, event.task_run_id, event.to_body())
        else:
            due = self.clock.now + timedelta(seconds=after)
            self._delayed.append((due, recorded, event.task_run_id, event.to_body()))

    def wait_until(self, moment: datetime) -> None:
        """Let time pass, and what was delayed land."""
        self._delayed.sort(key=itemgetter(0))
        while self._delayed and self._delayed[0][0] <= moment:
            due, event, run_id, body = self._delayed.pop(0)
            self.clock.now = max(self.clock.now, due)
            self._land(event, run_id, body)
        self.clock.now = max(self.clock.now, moment)

    def ship(self, exporter: TellingExporter, process: Process | None = None) -> End:
        """Run the task, whatever becomes of it."""
        self._runs += 1
        services = self._services(exporter, process or Process(self.table))
        try:
            answer, _ = asyncio.run(run_flow(services, FLOW, 60, f"run-{self._runs}"))
        except Died:
            return End()
        except WaybillError as error:
            return End(failure=str(error))
        return End(answer["outputs"]["ship_lineage"])

    def run(self, exporter: TellingExporter, process: Process | None = None) -> End:
        """Run the task, and judge what it did."""
        horizon = uuid7_floor(self.clock.now - SETTLE)
        end = self.ship(exporter, process)
        self.take(exporter.deliveries)
        position = self.position()
        if end == End():
            self.judge.struck(position)
            return end
        self.judge.ended(position)
        assert "503" in end.failure or not end.failure, end  # no other failure is ours
        self._true(horizon, complete=end.answer is not None and end.answer["complete"])
        return end

    def position(self) -> Position | None:
        """Return the position that is stored."""
        body = self.table.position()
        return Position.from_json(body, "the stored position") if body else None

    def take(self, deliveries: Sequence[Delivery]) -> None:
        """Judge what was delivered by a run."""
        self.judge.take([Received(self._runs, delivery.event.task_run_id) for delivery in deliveries])

    def _true(self, horizon: str, *, complete: bool) -> None:
        """Make sure that what a run says and stores is so."""
        end = self.table.end_fetched_date()
        assert end >= self._end
        self._end = end
        waiting = [event for run_id, event in self.recorded.items() if event.shipped and not self._received(run_id)]
        if complete:
            assert not [event for event in waiting if event.key <= horizon]
        # Of several events of one millisecond the end may be the first.
        assert not [event for event in waiting if not event.late and _recorded_at(event) < end]

    def _received(self, run_id: str) -> bool:
        return run_id in self.judge.received

    def _land(self, event: Recorded, run_id: str, body: str) -> None:
        late = from_millis(uuid7_millis(event.key)) <= self.clock.now - SETTLE
        self.recorded[run_id] = Recorded(event.key, event.shard, event.job, late)
        self.log.put(f"{hour_of_key(event.key)}#{event.shard}", event.key, body)

    def _services(self, exporter: TellingExporter, process: Process) -> Services:
        parts: dict[str, Any] = {"log": self.log, "shards": self.shards, "states": None}
        return Services(
            **parts,
            key_values=KeyValueStore(process, self.table.name, RETENTION, self.clock),
            assets=CatalogInMemory(),
            barred=lambda *_: [],
            exporter=lambda *_: exporter,
            settle=SETTLE,
            clock=self.clock,
        )


class Frozen:
    """A run in a thread of its own, which stands still at a point until it is thawed.

    Args:
        write: before which write it stands still; None for at an event.
        events: at which event.
    """

    def __init__(self, engine: Engine, write: int | None, events: int) -> None:
        self._write = write
        self._events = events
        self._arrived = threading.Event()
        self._thawed = threading.Event()
        self.stood_still = False
        self.exporter = TellingExporter(before=self._at_event)
        self.end = End()
        self._engine = engine
        self._thread = threading.Thread(target=self._ship)
        self._thread.start()
        assert self._arrived.wait(PATIENCE)

    def thaw(self) -> None:
        """Let it go on to its end."""
        self._thawed.set()
        self._thread.join(PATIENCE)

    def _ship(self) -> None:
        try:
            self.end = self._engine.ship(self.exporter, Process(self._engine.table, self._at_write))
        finally:
            self._arrived.set()

    def _at_write(self, number: int) -> None:
        if number == self._write:
            self._stand_still()

    async def _at_event(self, _: Delivery) -> None:
        if self._write is None and len(self.exporter.keys) == self._events and not self.stood_still:
            self._stand_still()

    def _stand_still(self) -> None:
        self.stood_still = True
        self._arrived.set()
        assert self._thawed.wait(PATIENCE)


def _recorded_at(event: Recorded) -> str:
    return iso(from_millis(uuid7_millis(event.key)))
