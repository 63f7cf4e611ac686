"""Ships to an exporter that answers event by event: jobs side by side, the events of a job one after the other.

What is read ahead is bounded, so memory does not grow with the backlog.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from waybill.errors import ExporterStopped, OutOfTime
from waybill.ship.checkpoints import TROUBLE, Checkpoints
from waybill.ship.jobs import Jobs, Parcel
from waybill.ship.late import prepared_late, sweep
from waybill.ship.ledger import Counts
from waybill.ship.together import together
from waybill.ship.tracker import Tracker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from waybill.export.ports import Deadline, StreamExporter
    from waybill.ship.checkpoints import Trouble
    from waybill.ship.ledger import Ledger
    from waybill.ship.position import Position
    from waybill.ship.reader import Reader
    from waybill.ship.resolve import Prepared, Resolver

MOST_READ_AHEAD = 1_200
"""Events that wait for their answer."""

MOST_OPEN = 2_400
"""Steps above the position, over all shards: ids answered there are stored with it, and an item holds 400 KB."""

LEAST_OPEN = 16
ANSWERS_PER_LOOK = 50
"""Those who wait for room look again after so many answers, or a quarter of a second."""

LEAST_SECONDS = 0.5
"""With less time than this left, no further event is begun."""


class Stream:
    """One exporter's way through the log, in one run.

    Args:
        position: where the exporter is; moved in place.
    """

    def __init__(
        self,
        exporter: StreamExporter,
        reader: Reader,
        resolver: Resolver,
        position: Position,
        deadline: Deadline,
        ledger: Ledger,
    ) -> None:
        self._exporter = exporter
        self._reader = reader
        self._resolver = resolver
        self.position = position
        self._deadline = deadline
        self._ledger = ledger
        self.counts = Counts()
        self._jobs = Jobs()
        self._read_to_end: list[Tracker] = []
        self._most_open = MOST_OPEN
        self._changed = asyncio.Event()
        self._checkpoints = Checkpoints(self._snapshot, ledger.save, self._stop)
        self._stopped: Trouble | None = None
        self._halted = False

    async def run(self) -> bool:
        """Ship until the horizon, the deadline or trouble; return whether the end of the log was reached.

        Raises:
            ExporterStopped, LeaseLost: the exporter, or the run, cannot go on. What was answered is kept.
        """
        async with self._at_work():
            complete = await self._read_all()
        if self._stopped is not None and not isinstance(self._stopped, OutOfTime):
            raise self._stopped
        return complete and self._stopped is None

    @property
    def reached(self) -> str:
        """The sort key up to which everything is done, now that the run has ended."""
        done = {id(tracker.position) for tracker in self._read_to_end if not tracker.open}
        left = (shard.key for shard in self.position.shards.values() if id(shard) not in done)
        return min(left, default=self._reader.horizon)

    @asynccontextmanager
    async def _at_work(self) -> AsyncIterator[None]:
        """Keep workers and checkpoints going; in the end store what was answered, whatever happened."""
        tasks = [asyncio.create_task(self._work()) for _ in range(self._exporter.in_flight)]
        tasks.append(asyncio.create_task(self._checkpoints.keep()))
        for task in tasks:
            task.add_done_callback(self._halt_if_broken)
        try:
            yield
        except BaseException:
            self._halt()
            raise
        finally:
            self._checkpoints.end()
            self._jobs.end(len(tasks))
            await asyncio.wait(tasks)
            await self._checkpoints.store()
            await together(tasks)

    async def _read_all(self) -> bool:
        """Read generation after generation; the next begins when all of this one is answered."""
        while True:
            before = {number: Tracker(shard) for number, shard in self.position.before.items()}
            trackers = {number: Tracker(shard) for number, shard in self.position.shards.items()}
            self._ledger.tally.add(0, before)
            self._ledger.tally.add(0, trackers)
            self._read_to_end.clear()
            self._most_open = max(LEAST_OPEN, MOST_OPEN // len(trackers))
            await self._send_late([*before.items(), *trackers.items()])
            await together((self._read(number, tracker) for number, tracker in trackers.items()), self._halt)
            await self._drained()
            if self._over():
                return False
            following = self._reader.next_generation(self.position)
            if following is None:
                return True
            self.position.generation, self.position.before = following.generation, following.before
            self.position.shards = following.shards

    async def _read(self, number: int, tracker: Tracker) -> None:
        """Read one shard from its position on."""
        if self._over():
            return
        async for step in self._reader.steps(number, tracker.position.key, self._reader.end_of(self.position)):
            for prepared in await self._resolver.prepare(step.items):
                if prepared.delivery is None:
                    await self._put_aside(prepared)
                self._admit(number, tracker, prepared)
                if self._crowded(tracker) and not await self._room(tracker):
                    return
            if step.border is not None:
                tracker.border(step.border)
            if self._over():
                return
        self._read_to_end.append(tracker)

    def _admit(self, number: int, tracker: Tracker, prepared: Prepared) -> None:
        """Hand an event to its job's queue, or pass over it."""
        if prepared.delivery is None or prepared.key in tracker.position.answered:
            tracker.add(prepared.key, passed=True)
        else:
            self._jobs.put(Parcel(prepared.delivery, number, tracker, tracker.add(prepared.key)))

    async def _send_late(self, trackers: Sequence[tuple[int, Tracker]]) -> None:
        """Send what was committed late before anything else."""
        all_found = False
        while not all_found and not self._over():
            owed, all_found = await sweep(self.position, trackers, self._reader)
            async for number, tracker, prepared in prepared_late(owed, self._reader, self._resolver):
                if prepared.delivery is None:
                    await self._put_aside(prepared)
                    tracker.late(prepared.key)
                    continue
                self._jobs.put(Parcel(prepared.delivery, number, tracker, None))
                if not await self._room(tracker):
                    return
            if not all_found:
                await self._drained()

    async def _put_aside(self, prepared: Prepared) -> None:
        if prepared.fault is not None:
            await asyncio.to_thread(self._ledger.park, prepared)
            self.counts.parked += 1

    def _crowded(self, tracker: Tracker) -> bool:
        return self._jobs.waiting >= MOST_READ_AHEAD or tracker.open >= self._most_open

    async def _room(self, tracker: Tracker) -> bool:
        """Wait while too much is read ahead; return whether there is any use in going on."""
        while self._crowded(tracker) and not self._over():
            await self._change()
        return not self._over()

    async def _work(self) -> None:
        """Deliver, job by job, until told to end."""
        while parcel := await self._jobs.next():
            if self._over():
                continue
            try:
                self._ledger.hold()
                await self._exporter.deliver(parcel.delivery)
            except TROUBLE as error:
                self._stop(error)
                continue
            self._answered(parcel)
            while self._checkpoints.full and not self._over():
                await self._checkpoints.room()

    def _answered(self, parcel: Parcel) -> None:
        key = parcel.delivery.key
        self._ledger.tally.known(parcel.number, key)
        self.position.last = max(self.position.last, key)
        if parcel.entry is None:
            self.counts.late_commits += 1
            parcel.tracker.late(key)
        else:
            parcel.tracker.done(parcel.entry)
        self._jobs.answered(parcel)
        self.counts.answered += 1
        self._checkpoints.answered()
        if not self._jobs.waiting or not self.counts.answered % ANSWERS_PER_LOOK:
            self._changed.set()

    def _stop(self, error: Trouble) -> None:
        if isinstance(error, ExporterStopped) and not self._deadline.remaining():
            error = OutOfTime(str(error))
        if self._stopped is None or isinstance(self._stopped, OutOfTime):
            self._stopped = error
        self._changed.set()

    def _halt(self) -> None:
        self._halted = True
        self._checkpoints.end()
        self._changed.set()

    def _halt_if_broken(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._halt()

    def _over(self) -> bool:
        if self._stopped is None and self._deadline.remaining() < LEAST_SECONDS:
            self._stop(OutOfTime("the run's time is over"))
        return self._halted or self._stopped is not None

    async def _drained(self) -> None:
        while self._jobs.waiting and not self._over():
            await self._change()

    async def _change(self) -> None:
        """Wait until something changed, and look at the clock now and then."""
        self._changed.clear()
        try:
            async with asyncio.timeout(0.25):
                await self._changed.wait()
        except TimeoutError:
            return

    def _snapshot(self) -> str:
        self.position.forget()
        return self.position.to_json()
