"""Recorders, the log, the engine and the clock as a machine that does anything in any order: nothing is ever lost."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from threading import Thread
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.support.engine import SETTLE, End, Engine, Frozen
from tests.support.shipping import Died, TellingExporter
from tests.support.stores_in_memory import Process
from waybill.errors import ExporterStopped
from waybill.store.keyvalue import LEASE
from waybill.store.shards import Generation, hour_start

if TYPE_CHECKING:
    from waybill.export.ports import Delivery

SKEW = 2.0
LATEST = 570.0
ACQUIRING, CLAIMING = 1, 2
"""The numbers of a run's first writes."""

jobs = st.tuples(st.sampled_from(("load", "load", "load", "other")), st.integers(0, 3)).map(
    lambda parts: f"{parts[0]}.task_{parts[1]}"
)
skews = st.floats(-SKEW, SKEW)


class Shipping(RuleBasedStateMachine):
    """The world of one task with one exporter."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = Engine()

    @initialize(shards=st.sampled_from((1, 2, 4)))
    def begin(self, shards: int) -> None:
        self.engine.shards.found.append(Generation("0000", shards, "2026-12-01T11"))

    @rule(job=jobs, count=st.integers(1, 12), skew=skews, coarse=st.booleans())
    def record(self, job: str, count: int, skew: float, coarse: bool) -> None:
        """A recorder with a wrong clock writes the events of a report, all of one instant when its clock is coarse."""
        for number in range(count):
            self.engine.record(job, skew, timedelta(0) if coarse else timedelta(milliseconds=number))

    @rule(count=st.integers(1, 4), skew=skews)
    def record_many_jobs(self, count: int, skew: float) -> None:
        for number in range(4 * count):
            self.engine.record(f"load.task_{number % 4}", skew, timedelta(milliseconds=number))

    @rule(job=jobs, count=st.integers(1, 5), skew=skews, after=st.floats(0, LATEST))
    def record_late(self, job: str, count: int, skew: float, after: float) -> None:
        """A request is carried out long after its recorder has given up."""
        for _ in range(count):
            self.engine.record(job, skew, after=after)

    @rule(job=jobs, ahead=st.floats(0, SKEW), behind=st.floats(0.2, SKEW))
    def record_by_clocks_that_are_apart(self, job: str, ahead: float, behind: float) -> None:
        """A run comes between two recorders of one job, of which the second says that it was the first."""
        self.engine.record(job, ahead)
        self.wait(ahead + 0.1)
        self.engine.run(TellingExporter())
        self.engine.record(job, -behind)

    @rule(seconds=st.one_of(st.floats(0, 8), st.floats(60, 200), st.floats(600, 5_000)))
    def wait(self, seconds: float) -> None:
        self.engine.wait_until(self.engine.clock.now + timedelta(seconds=seconds))

    @rule(shards=st.integers(1, 6))
    def announce(self, shards: int) -> None:
        self.engine.shards.announce(shards)

    @rule(seconds=st.sampled_from((0.0, 8.0, 61.0, 400.0)), slow=st.booleans())
    def run(self, seconds: float, slow: bool) -> None:
        self.wait(seconds)
        self.engine.run(TellingExporter(before=slowly if slow else None))

    @rule(write=st.integers(1, 6))
    def run_that_is_killed_at_a_write(self, write: int) -> None:
        def kill(number: int) -> None:
            process.dead = number == write

        process = Process(self.engine.table, kill)
        self.wait(LEASE.total_seconds() + 1)
        self.engine.run(TellingExporter(), process)

    @rule(events=st.integers(0, 15), answered=st.booleans())
    def run_that_is_killed_at_an_event(self, events: int, answered: bool) -> None:
        """The process is gone when an event is on its way: it has arrived, or has not."""
        self.wait(LEASE.total_seconds() + 1)
        exporter, process = TellingExporter(), Process(self.engine.table)

        async def kill(delivery: Delivery) -> None:
            if len(exporter.keys) >= events:
                if answered:
                    exporter.deliveries.append(delivery)
                process.dead = True
            if process.dead:
                raise Died

        exporter.before = kill
        self.engine.run(exporter, process)

    @rule(events=st.integers(0, 15))
    def run_whose_exporter_stops(self, events: int) -> None:
        exporter = TellingExporter()

        async def stop(_: Delivery) -> None:
            if len(exporter.keys) >= events:
                raise ExporterStopped("503")

        exporter.before = stop
        self.engine.run(exporter)

    @rule(times=st.integers(2, 3), seconds=st.sampled_from((61.0, 400.0, 700.0)))
    def runs_whose_exporter_is_down(self, times: int, seconds: float) -> None:
        for _ in range(times):
            self.wait(seconds)
            self.engine.run(TellingExporter(down=True))

    @rule(events=st.integers(0, 6), count=st.integers(1, 4))
    def run_whose_exporter_stops_at_one_job(self, events: int, count: int) -> None:
        """The other jobs go on while one waits for its answer, which is that the exporter cannot go on."""
        self.record_many_jobs(count, 0.0)
        self.wait(10.0)
        exporter = TellingExporter()
        held: list[str] = []

        async def stop(delivery: Delivery) -> None:
            if not held and len(exporter.keys) >= events:
                held.append(delivery.event.job)
            if delivery.event.job in held:
                await asyncio.sleep(0.02)
                raise ExporterStopped("503")

        exporter.before = stop
        self.engine.run(exporter)

    @rule(events=st.integers(0, 6), count=st.integers(1, 4))
    def run_while_another_one_ships(self, events: int, count: int) -> None:
        self.record_many_jobs(count, 0.0)
        self.wait(LEASE.total_seconds() + 1)
        exporter, second = TellingExporter(), TellingExporter()
        ends: list[End] = []

        async def try_to_run(_: Delivery) -> None:
            if len(exporter.keys) == events and not ends:
                thread = Thread(target=lambda: ends.append(self.engine.ship(second)))
                thread.start()
                thread.join()

        exporter.before = try_to_run
        self.engine.run(exporter)
        assert second.keys == []
        assert [end.answer is not None and "busy" in end.answer for end in ends] == [True] * len(ends)

    @rule(
        write=st.sampled_from((None, None, ACQUIRING, CLAIMING, CLAIMING, CLAIMING + 1)),
        events=st.integers(0, 6),
        thawed_at=st.sampled_from((None, 0, 3)),
        count=st.integers(1, 4),
    )
    def run_that_is_frozen_until_another_took_over(
        self, write: int | None, events: int, thawed_at: int | None, count: int
    ) -> None:
        """It goes on while the other one ships, or after that. What was on its way arrives, and nothing else."""
        self.record_many_jobs(count, 0.0)
        self.wait(LEASE.total_seconds() + 1)
        frozen = Frozen(self.engine, write, events)
        before = len(frozen.exporter.deliveries)
        self.engine.take(frozen.exporter.deliveries[:before])
        self.engine.judge.struck(self.engine.position())
        self.record_many_jobs(count, 0.0)
        self.wait(LEASE.total_seconds() + 1)
        exporter = TellingExporter()

        async def thaw(_: Delivery) -> None:
            if len(exporter.keys) == thawed_at:
                frozen.thaw()

        exporter.before = thaw
        try:
            self.engine.run(exporter)
        finally:
            frozen.thaw()
        with self.engine.judge.lenient(1):
            self.engine.take(frozen.exporter.deliveries[before:])
        self.engine.judge.ended(self.engine.position())

    @rule(
        shards=st.integers(1, 6),
        job=jobs,
        count=st.integers(1, 4),
        before=st.floats(5, 300),
        late=st.floats(20, 250),
        events=st.integers(0, 4),
        down=st.booleans(),
    )
    def change_of_shards_with_late_commits(
        self, shards: int, job: str, count: int, before: float, late: float, events: int, down: bool
    ) -> None:
        """What was recorded before the change lands after a run has gone past it, maybe while the exporter is down."""
        self.announce(shards)
        start = hour_start(self.engine.shards.found[-1].start)
        if start - timedelta(seconds=before) < self.engine.clock.now:
            return
        self.engine.wait_until(start - timedelta(seconds=before))
        self.record_many_jobs(count, 0.0)
        self.record_late(job, count, 0.0, before + late)
        self.engine.wait_until(start + SETTLE + timedelta(seconds=1))
        self.run(0.0, slow=True)
        self.wait(late)
        if down:
            self.runs_whose_exporter_is_down(2, 700.0)
        self.run_whose_exporter_stops(events)

    def teardown(self) -> None:
        """Ship what is left, and count."""
        if not self.engine.shards.found:
            return
        for _ in range(2):
            self.wait(LATEST + LEASE.total_seconds() + 10)
            self.engine.run(TellingExporter())
        self.engine.judge.finish()
        figures = self.engine.figures
        assert (figures.lost, figures.repeated_other, figures.out_of_order, figures.faults) == (0, 0, 0, [])


async def slowly(_: Delivery) -> None:
    await asyncio.sleep(0.001)


TestShipping = Shipping.TestCase
TestShipping.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
