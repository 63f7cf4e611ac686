"""Recorders, the log, the engine and the clock as a machine that does anything in any order: nothing is ever lost."""

from __future__ import annotations

import asyncio
import random
from datetime import datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.support.shipping import NAMESPACE, CatalogInMemory, Died, TellingExporter, TurnedClock, lineage_event
from tests.support.stores_in_memory import KeyValuesInMemory, LogInMemory, ShardsInMemory
from tests.torture.judge import Figures, Judge
from tests.torture.receiver import Received
from tests.torture.recorders import Recorded
from waybill.clock import from_millis
from waybill.errors import ExporterStopped, WaybillError
from waybill.ids import uuid7, uuid7_millis
from waybill.model.flow import parse_flow
from waybill.ship.flow import run_flow
from waybill.ship.position import Position
from waybill.ship.reader import hour_of_key
from waybill.ship.services import Services
from waybill.store.keyvalue import LEASE
from waybill.store.shards import Generation, generation_at, shard_of

if TYPE_CHECKING:
    from waybill.export.ports import Delivery

SETTLE = timedelta(seconds=6)
SKEW = 2.0
LATEST = 570.0
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

jobs = st.tuples(st.sampled_from(("load", "load", "load", "other")), st.integers(0, 3)).map(
    lambda parts: f"{parts[0]}.task_{parts[1]}"
)


class Shipping(RuleBasedStateMachine):
    """The world of one task with one exporter."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = TurnedClock()
        self.log = LogInMemory(random.Random(0))  # noqa: S311 - odd pages, the same again each time
        self.shards = ShardsInMemory(self.clock, [])
        self.values = KeyValuesInMemory(self.clock)
        self.recorded: dict[str, Recorded] = {}
        self.delayed: list[tuple[datetime, Recorded, str, str]] = []
        self.figures = Figures()
        self.judge = Judge(self.recorded, self.figures)
        self.runs = 0

    @initialize(shards=st.sampled_from((1, 2, 4)))
    def begin(self, shards: int) -> None:
        self.shards.found.append(Generation("0000", shards, "2026-12-01T11"))

    @rule(job=jobs, count=st.integers(1, 12), skew=st.floats(-SKEW, SKEW), coarse=st.booleans())
    def record(self, job: str, count: int, skew: float, coarse: bool) -> None:
        """A recorder with a wrong clock writes the events of a report, all of one instant when its clock is coarse."""
        for number in range(count):
            self._write(job, skew, timedelta(0) if coarse else timedelta(milliseconds=number))

    @rule(job=jobs, count=st.integers(1, 5), skew=st.floats(-SKEW, SKEW), after=st.floats(0, LATEST))
    def record_late(self, job: str, count: int, skew: float, after: float) -> None:
        """A request is carried out long after its recorder has given up."""
        for _ in range(count):
            self._write(job, skew, timedelta(0), after)

    @rule(seconds=st.one_of(st.floats(0, 8), st.floats(60, 200), st.floats(600, 5_000)))
    def wait(self, seconds: float) -> None:
        target = self.clock.now + timedelta(seconds=seconds)
        self.delayed.sort(key=itemgetter(0))
        while self.delayed and self.delayed[0][0] <= target:
            due, event, run_id, body = self.delayed.pop(0)
            self.clock.now = max(self.clock.now, due)
            self._land(event, run_id, body)
        self.clock.now = target

    @rule(shards=st.integers(1, 6))
    def announce(self, shards: int) -> None:
        self.shards.announce(shards)

    @rule(seconds=st.sampled_from((0.0, 8.0, 61.0, 400.0)))
    def run(self, seconds: float) -> None:
        self.wait(seconds)
        self._run(TellingExporter())

    @rule(write=st.integers(3, 8))
    def run_that_is_killed_at_a_write(self, write: int) -> None:
        self.wait(LEASE.total_seconds() + 1)
        self.values.dies_at = self.values.writes + write
        self._run(TellingExporter())
        self.values.dies_at = None

    @rule(events=st.integers(0, 15), answered=st.booleans())
    def run_that_is_killed_at_an_event(self, events: int, answered: bool) -> None:
        """The process is gone when an event is on its way: it has arrived, or has not."""
        self.wait(LEASE.total_seconds() + 1)
        exporter = TellingExporter()

        async def kill(delivery: Delivery) -> None:
            if len(exporter.keys) >= events:
                if answered:
                    exporter.deliveries.append(delivery)
                self.values.dead = True
            if self.values.dead:
                raise Died

        exporter.before = kill
        self._run(exporter)

    @rule(events=st.integers(0, 15))
    def run_whose_exporter_stops(self, events: int) -> None:
        exporter = TellingExporter()

        async def stop(_: Delivery) -> None:
            if len(exporter.keys) >= events:
                raise ExporterStopped("503")

        exporter.before = stop
        self._run(exporter)

    def teardown(self) -> None:
        """Ship what is left, and count."""
        if not self.shards.found:
            return
        for _ in range(2):
            self.wait(LATEST + LEASE.total_seconds() + 10)
            self._run(TellingExporter())
        self.judge.finish()
        figures = self.figures
        assert (figures.lost, figures.repeated_other, figures.out_of_order, figures.faults) == (0, 0, 0, [])

    def _write(self, job: str, skew: float, offset: timedelta, after: float | None = None) -> None:
        key = uuid7(self.clock.now + timedelta(seconds=skew) + offset)
        hour = hour_of_key(key)
        shard = shard_of(f"{NAMESPACE}/{job}", generation_at(self.shards.found, hour).shards)
        event = lineage_event(job)
        recorded = Recorded(key, shard, event.job, late=False)
        if after is None:
            self._land(recorded, event.task_run_id, event.to_body())
        else:
            due = self.clock.now + timedelta(seconds=after)
            self.delayed.append((due, recorded, event.task_run_id, event.to_body()))

    def _land(self, event: Recorded, run_id: str, body: str) -> None:
        late = from_millis(uuid7_millis(event.key)) <= self.clock.now - SETTLE
        self.recorded[run_id] = Recorded(event.key, event.shard, event.job, late)
        self.log.put(f"{hour_of_key(event.key)}#{event.shard}", event.key, body)

    def _run(self, exporter: TellingExporter) -> None:
        self.runs += 1
        died = False
        try:
            asyncio.run(run_flow(self._services(exporter), FLOW, 60, f"run-{self.runs}"))
        except Died:
            died = True
        except WaybillError as error:
            assert "503" in str(error), error  # noqa: PT017 - no other failure is ours
        self.values.dead = False
        self.judge.take([Received(self.runs, delivery.event.task_run_id) for delivery in exporter.deliveries])
        body = self.values.positions.get("receiver", (0, None))[1]
        position = Position.from_json(body, "the stored position") if body else None
        if died:
            self.judge.struck(position)
        else:
            self.judge.ended(position)

    def _services(self, exporter: TellingExporter) -> Services:
        parts: dict[str, Any] = {"key_values": self.values, "log": self.log, "shards": self.shards, "states": None}
        return Services(
            **parts,
            assets=CatalogInMemory(),
            barred=lambda *_: [],
            exporter=lambda *_: exporter,
            settle=SETTLE,
            clock=self.clock,
        )


TestShipping = Shipping.TestCase
TestShipping.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
