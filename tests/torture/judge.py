"""Judges what was received against what stands in the log, and repeats against the position that was stored."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.torture.receiver import Received
from waybill.ids import uuid7_floor
from waybill.ship.recent import window_start
from waybill.store.shards import hour_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.torture.recorders import Recorded
    from waybill.ship.position import Position, ShardPosition


@dataclass
class Figures:
    """What came of it.

    Attributes:
        repeated_in_flight: repeats of what a killed run had sent and not stored yet.
        repeated_other: repeats that nothing excuses.
        most_in_flight: the most events that were sent and not stored at a kill.
        late_commits: events that landed behind the settle window.
        faults: what must never be, in words.
    """

    runs: int = 0
    kills: int = 0
    events: int = 0
    lost: int = 0
    repeated_in_flight: int = 0
    repeated_other: int = 0
    most_in_flight: int = 0
    out_of_order: int = 0
    late_commits: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        """Add what came of another part."""
        self.most_in_flight = max(self.most_in_flight, other.most_in_flight)
        self.faults += other.faults
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


_SUMS = (
    "runs",
    "kills",
    "events",
    "lost",
    "repeated_in_flight",
    "repeated_other",
    "out_of_order",
    "late_commits",
)


class Judge:
    """Follows the receptions of one episode, run by run.

    Args:
        recorded: what stands in the log, by run id; grows while the episode goes on.
    """

    def __init__(self, recorded: Mapping[str, Recorded], figures: Figures) -> None:
        self._recorded = recorded
        self._figures = figures
        self._newest: dict[str, str] = {}
        self.received: set[str] = set()
        self.uncovered: set[str] = set()
        self._latest: set[str] = set()
        self._leniency = 0

    @contextmanager
    def lenient(self, most: int) -> Iterator[None]:
        """Judge the receptions of a run that was thawed: what it had on its way may have been sent by others since."""
        self._leniency = most
        try:
            yield
        finally:
            self._leniency = 0

    def take(self, received: Sequence[Received]) -> None:
        """Judge what was received since the last time: new events by their order, others as repeats."""
        seen: Counter[Received] = Counter()
        self._latest = {one.run_id for one in received}
        for one in received:
            event = self._recorded.get(one.run_id)
            if event is None or not event.shipped:
                self._figures.faults.append(f"received {one}, which is not for it: {event}")
                continue
            seen[one] += 1
            if one.run_id not in self.received:
                self.received.add(one.run_id)
                self._in_order(event)
            elif seen[one] == 1 and one.run_id in self.uncovered:
                self._figures.repeated_in_flight += 1
            elif seen[one] == 1 and self._leniency:
                self._leniency -= 1
                self._figures.repeated_in_flight += 1
            else:
                self._figures.repeated_other += 1
                self._figures.faults.append(f"{one} is a repeat of {event} that nothing excuses")

    def take_files(self, run_ids: Sequence[str]) -> None:
        """Judge the lines of all files: each event once, in order."""
        self.take([Received(0, run_id) for run_id in run_ids])

    def struck(self, position: Position | None) -> int:
        """A run was killed or frozen: what was sent and not stored may come again. Return how many of them it sent.

        Runs that are killed one after the other before they store anything may each send others of what lies ahead.
        """
        self._asked: dict[int, set[str]] = {}
        self.uncovered = {run_id for run_id in self.received if not self._covered(position, run_id)}
        return len(self.uncovered & self._latest)

    def ended(self, position: Position | None) -> None:
        """A run came to its end: what was received must be stored, but for what an earlier one had left in flight."""
        before = self.uncovered
        self.struck(position)
        if self.uncovered - before:
            self._figures.faults.append(f"{len(self.uncovered - before)} answers were not stored at the end of a run")

    def finish(self) -> None:
        """The last run has ended."""
        shipped = {run_id for run_id, event in self._recorded.items() if event.shipped}
        self._figures.events += len(shipped)
        self._figures.lost += len(shipped - self.received)
        self._figures.late_commits += sum(self._recorded[run_id].late for run_id in shipped)

    def _in_order(self, event: Recorded) -> None:
        if not event.late:
            self._figures.out_of_order += event.key < self._newest.get(event.job, "")
            self._newest[event.job] = max(event.key, self._newest.get(event.job, ""))

    def _covered(self, position: Position | None, run_id: str) -> bool:
        """Tell whether a stored position says that an event was answered."""
        if position is None:
            return False
        event = self._recorded[run_id]
        begun = generation_start(position)
        if event.key < begun and not event.late:
            return True
        shard = (position.before if event.key < begun else position.shards).get(event.shard)
        if shard is None:
            return event.key < begun and event.key < position.oldest_late
        if event.key > shard.key:
            return event.key in shard.answered
        return event.key not in shard.owed and event.key not in self._missing(position, shard, event.shard)

    def _missing(self, position: Position, shard: ShardPosition, number: int) -> set[str]:
        """Return the late commits of a shard that its position does not know."""
        if id(shard) not in self._asked:
            oldest = max(position.oldest_late, window_start(shard.key))
            if shard is position.shards.get(number):
                oldest = max(oldest, generation_start(position))
            events = self._recorded.values()
            present = [event.key for event in events if event.shard == number and oldest < event.key <= shard.key]
            self._asked[id(shard)] = set(shard.recent.missing(present))
        return self._asked[id(shard)]


def generation_start(position: Position) -> str:
    """Return the sort key at which a position's generation begins, "" for the first."""
    return "" if position.generation == "0000" else uuid7_floor(hour_start(position.generation))
