"""Ships to an exporter that answers event by event: jobs side by side, the events of a job one after the other.

What is read ahead is bounded, so memory does not grow with the backlog. Positions are stored while the run goes on, so
that a kill repeats no more than what was in flight.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.errors import ExporterStopped, OutOfTime, WaybillError
from waybill.ship.ledger import Counts
from waybill.ship.position import Position, Tracker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from waybill.export.ports import Deadline, Delivery, StreamExporter
    from waybill.ship.ledger import Ledger
    from waybill.ship.reader import Reader
    from waybill.ship.resolve import Prepared, Resolver

MOST_READ_AHEAD = 1_200
ANSWERS_PER_CHECKPOINT = 200
SECONDS_PER_CHECKPOINT = 1.0
LEAST_SECONDS = 0.5
"""With less time than this left, no further event is begun."""


@dataclass(slots=True)
class _Parcel:
    """A delivery on its way, and what to do with the answer."""

    delivery: Delivery
    answered: Callable[[], None]


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
        self._trackers: dict[int, Tracker] = {}
        self._jobs: dict[str, deque[_Parcel]] = {}
        self._ready: asyncio.Queue[str] = asyncio.Queue()
        self._waiting = 0
        self._unsaved = 0
        self._changed = asyncio.Event()
        self._saved = asyncio.Event()
        self._stopped: WaybillError | None = None
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

    @asynccontextmanager
    async def _at_work(self) -> AsyncIterator[None]:
        """Keep workers and the checkpoint going; in the end store what was answered, whatever happened."""
        workers = [asyncio.create_task(self._work()) for _ in range(self._exporter.in_flight)]
        checkpoints = asyncio.create_task(self._checkpoints())
        try:
            yield
        except BaseException:
            self._halted = True
            raise
        finally:
            for _ in workers:
                self._ready.put_nowait("")
            await asyncio.gather(*workers)
            checkpoints.cancel()
            await asyncio.gather(checkpoints, return_exceptions=True)
            await self._checkpoint()

    async def _read_all(self) -> bool:
        """Read generation after generation; the next begins when all of this one is answered."""
        while True:
            self._trackers = {number: Tracker(shard) for number, shard in self.position.shards.items()}
            self._ledger.tally.add(0, self._trackers)
            await asyncio.gather(*(self._read(number) for number in self._trackers))
            await self._drained()
            if self._over():
                return False
            following = self._reader.next_generation(self.position)
            if following is None:
                return True
            await self._checkpoint()
            self.position.generation, self.position.shards = following.generation, following.shards

    async def _read(self, number: int) -> None:
        """Read one shard: first what was committed late, then from the position on."""
        tracker = self._trackers[number]
        late = await asyncio.to_thread(self._reader.late, number, tracker.position, self.position.since)
        for prepared in await self._resolver.prepare(late):
            await self._admit(number, prepared, late=True)
        async for step in self._reader.steps(number, tracker.position.key, self._reader.end_of(self.position)):
            for prepared in await self._resolver.prepare(step.items):
                if self._over():
                    return
                await self._admit(number, prepared)
            if step.border is not None:
                tracker.border(step.border)
            if self._over():
                return

    async def _admit(self, number: int, prepared: Prepared, *, late: bool = False) -> None:
        """Hand an event to its job's queue, or pass over it; wait while too much is read ahead."""
        tracker = self._trackers[number]
        if late:
            self.counts.late_commits += prepared.delivery is not None
        elif prepared.key in tracker.position.answered:
            tracker.add(prepared.key, passed=True)
            return
        if prepared.fault is not None:
            await asyncio.to_thread(self._ledger.park, prepared)
            self.counts.parked += 1
        if prepared.delivery is None:
            tracker.late(prepared.key) if late else tracker.add(prepared.key, passed=True)
            self._changed.set()
            return
        entry = None if late else tracker.add(prepared.key)

        def answered() -> None:
            self._ledger.tally.known(number, prepared.key)
            self.position.last = max(self.position.last, prepared.key)
            tracker.late(prepared.key) if entry is None else tracker.done(entry)

        self._enqueue(_Parcel(prepared.delivery, answered))
        while self._waiting >= MOST_READ_AHEAD and not self._over():
            await self._freed()

    def _enqueue(self, parcel: _Parcel) -> None:
        job = parcel.delivery.event.job
        queue = self._jobs.get(job)
        if queue is None:
            self._jobs[job] = deque((parcel,))
            self._ready.put_nowait(job)
        else:
            queue.append(parcel)
        self._waiting += 1

    async def _work(self) -> None:
        """Deliver, job by job, until told to end."""
        while job := await self._ready.get():
            if self._over():
                self._changed.set()
                continue
            queue = self._jobs[job]
            try:
                self._ledger.hold()
                await self._exporter.deliver(queue[0].delivery)
            except WaybillError as error:
                self._stop(error)
                continue
            self._answered(job, queue)
            if self._unsaved >= 2 * ANSWERS_PER_CHECKPOINT and not self._over():
                self._saved.clear()
                await self._saved.wait()

    def _answered(self, job: str, queue: deque[_Parcel]) -> None:
        queue.popleft().answered()
        if queue:
            self._ready.put_nowait(job)
        else:
            del self._jobs[job]
        self._waiting -= 1
        self._unsaved += 1
        self.counts.answered += 1
        if self._waiting < MOST_READ_AHEAD or self._unsaved >= ANSWERS_PER_CHECKPOINT:
            self._changed.set()

    def _stop(self, error: WaybillError) -> None:
        if isinstance(error, ExporterStopped) and not self._deadline.remaining():
            error = OutOfTime(str(error))
        if self._stopped is None or isinstance(self._stopped, OutOfTime):
            self._stopped = error
        self._changed.set()
        self._saved.set()

    def _over(self) -> bool:
        if self._stopped is None and self._deadline.remaining() < LEAST_SECONDS:
            self._stop(OutOfTime("the run's time is over"))
        return self._halted or self._stopped is not None

    async def _drained(self) -> None:
        while self._waiting and not self._over():
            await self._freed()

    async def _freed(self) -> None:
        """Wait until something changed, and look at the clock now and then."""
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), timeout=0.25)
        except TimeoutError:
            return

    async def _checkpoints(self) -> None:
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            await asyncio.sleep(0.02)
            due = self._unsaved >= ANSWERS_PER_CHECKPOINT or loop.time() - last >= SECONDS_PER_CHECKPOINT
            if due and self._unsaved:
                last = loop.time()
                try:
                    await self._checkpoint()
                except WaybillError as error:
                    self._stop(error)
                    return

    async def _checkpoint(self) -> None:
        """Store the position as it is now; what is answered meanwhile comes with the next one."""
        unsaved = self._unsaved
        for shard in self.position.shards.values():
            shard.recent.forget_before(shard.key)
        await asyncio.to_thread(self._ledger.save, self.position.to_json())
        self._unsaved -= unsaved
        self._saved.set()
