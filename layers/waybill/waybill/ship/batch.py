"""Ships to an exporter whose events count only once a whole batch is committed: files.

The commit is the exporter's, and is found again by its start. So what a run committed that died before it stored the
position is taken over, not repeated.
"""

from __future__ import annotations

import asyncio
import heapq
from typing import TYPE_CHECKING

import orjson

from waybill.ship.ledger import Counts
from waybill.ship.position import Position
from waybill.ship.tracker import Tracker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from waybill.export.ports import BatchExporter, Deadline
    from waybill.ship.ledger import Ledger
    from waybill.ship.reader import Reader
    from waybill.ship.resolve import Prepared, Resolver

STEPS_PER_LOOK = 64
"""Events, or hours of a shard that hold none, between two looks at the clock."""

LEAST_SECONDS = 5.0
"""With less time than this left, the batch is closed and committed."""


class Batch:
    """One exporter's way through the log, in one run.

    Args:
        generation: of the state; a batch committed before a reset is not found after it.
        position: where the exporter is; replaced as batches are committed.

    Attributes:
        reached: the sort key up to which everything is done.
    """

    def __init__(
        self,
        exporter: BatchExporter,
        reader: Reader,
        resolver: Resolver,
        generation: str,
        position: Position,
        deadline: Deadline,
        ledger: Ledger,
    ) -> None:
        self._exporter = exporter
        self._reader = reader
        self._resolver = resolver
        self._generation = generation
        self.position = position
        self._deadline = deadline
        self._ledger = ledger
        self.counts = Counts()
        self._complete = self._full = False
        self.reached = position.lowest

    async def run(self) -> bool:
        """Ship until the horizon, the deadline or trouble; return whether the end of the log was reached.

        Raises:
            ExporterStopped, LeaseLost: the exporter, or the run, cannot go on. What was committed is kept.
        """
        return await asyncio.to_thread(self._run)

    def _run(self) -> bool:
        while (end := self._exporter.recover(self._start())) is not None:
            self._move_to(Position.from_json(end, "the manifest"))
        while True:
            self._one_batch()
            if self._full:
                continue
            following = self._reader.next_generation(self.position) if self._complete else None
            if following is None:
                return self._complete
            self._move_to(following)

    def _start(self) -> str:
        """Return the word that names the batch to come: the generation of the state, and all of the position."""
        return orjson.dumps([self._generation, self.position.to_json()]).decode()

    def _move_to(self, position: Position) -> None:
        position.forget()
        self.position = position
        self._ledger.save(position.to_json())

    def _one_batch(self) -> None:
        """Write what lies between the position and the horizon, commit it, move."""
        start = self._start()
        ahead = Position.from_json(self.position.to_json(), "the position")
        before = {number: Tracker(shard) for number, shard in ahead.before.items()}
        trackers = {number: Tracker(shard) for number, shard in ahead.shards.items()}
        written = fresh = 0
        try:
            for number, prepared in self._prepared(ahead, before, trackers):
                if prepared.delivery is None:
                    continue
                if not written:
                    self._exporter.begin(start)
                self._exporter.write(prepared.delivery)
                ahead.last = max(ahead.last, prepared.key)
                written += 1
                fresh += not self._ledger.tally.covered(number, prepared.key)
            end = committed = ahead.to_json()
            if written:
                self._ledger.hold()
                committed = self._exporter.commit(end)
        except BaseException:
            self._exporter.abandon()
            raise
        if committed != end:
            before, trackers, written, fresh = {}, {}, 0, 0
            ahead = Position.from_json(committed, "the manifest")
        if end != self.position.to_json():
            self._move_to(ahead)
        self.counts.answered += written
        self._ledger.tally.add(fresh, trackers)
        self._ledger.tally.add(0, before)

    def _prepared(
        self, ahead: Position, before: dict[int, Tracker], trackers: dict[int, Tracker]
    ) -> Iterator[tuple[int, Prepared]]:
        """Return what is to be written: late commits first, then the shards merged by key."""
        for number, tracker in [*before.items(), *trackers.items()]:
            keys = self._reader.late(number, tracker.position, ahead)
            for prepared in self._resolver.prepare_now(self._reader.fetch(number, keys)):
                self._passed(prepared)
                self.counts.late_commits += prepared.delivery is not None
                tracker.late(prepared.key)
                yield number, prepared
            tracker.position.owed.clear()
        ahead.swept_to(self._reader.horizon)
        shards = [self._shard(number, ahead, tracker) for number, tracker in trackers.items()]
        self._complete, self._full = True, False
        for count, (key, number, item) in enumerate(heapq.merge(*shards, key=lambda step: step[0]), 1):
            if item is None:
                trackers[number].border(key)
            else:
                self._passed(item)
                trackers[number].add(key, passed=True)
                self.reached = key
                yield number, item
            if count % STEPS_PER_LOOK == 0:
                self._full = self._exporter.full()
                if self._full or self._deadline.remaining() < LEAST_SECONDS:
                    self._complete = False
                    return

    def _shard(self, number: int, ahead: Position, tracker: Tracker) -> Iterator[tuple[str, int, Prepared | None]]:
        """Return the events of a shard, and the borders between its hours, by key."""
        for step in self._reader.read(number, tracker.position.key, self._reader.end_of(ahead)):
            for prepared in self._resolver.prepare_now(step.items):
                yield prepared.key, number, prepared
            if step.border is not None:
                yield step.border, number, None

    def _passed(self, prepared: Prepared) -> None:
        if prepared.fault is not None:
            self._ledger.park(prepared)
            self.counts.parked += 1
