"""Deletes from the log what every exporter of a task is done with (`delete: true`, DESIGN 4).

Each deletion is first written down with the positions, so one that was cut short is finished by the next run, and what
tells late commits never takes a deleted event for a shipped one that is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.errors import InvalidFlow
from waybill.ship.position import Position
from waybill.ship.reader import bucket_of
from waybill.ship.recent import window_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from waybill.export.ports import Deadline
    from waybill.ship.reader import Reader
    from waybill.ship.resolve import Resolver
    from waybill.store.keyvalue import Lease
    from waybill.store.log_reader import LogReader
    from waybill.store.states import States

LEAST_SECONDS = 3.0


def require_nobody_behind(states: States, lease: Lease, ours: Iterable[Position], path: str) -> None:
    """Refuse to delete while the position of another key is behind ours.

    Raises:
        InvalidFlow: naming each such key.
        InvalidOffset: what stands under another key is no position.
    """
    here = min(position.lowest for position in ours)
    behind = sorted({name for name, position in _others(states, lease) if position.lowest < here})
    if behind:
        names = ", ".join(behind)
        raise InvalidFlow(
            [f"{path}: {names} would lose what it has not shipped yet; let it ship first, or say force: true"]
        )


def lowest_of_others(states: States, lease: Lease) -> str | None:
    """Return the sort key up to which every other key is done, or None where there is no other."""
    return min((position.lowest for _, position in _others(states, lease)), default=None)


def _others(states: States, lease: Lease) -> Iterator[tuple[str, Position]]:
    for state in states.all():
        if (state.namespace, state.key) == (lease.namespace, lease.key):
            continue
        for exporter_id, body in state.positions.items():
            name = f"{state.namespace}/{state.key}"
            yield name, Position.from_json(body, f"{name} of {exporter_id}")


@dataclass(frozen=True, slots=True)
class Deletion:
    """The deletion of what a task's exporters are done with.

    Attributes:
        positions: of all exporters of the task, by exporter id.
        save: stores the position of an exporter.
        limit: the sort key beyond which another task still needs the log; None where none does.
    """

    log: LogReader
    reader: Reader
    resolver: Resolver
    positions: Mapping[str, Position]
    save: Callable[[str, Position], None]
    limit: str | None

    def finish(self) -> None:
        """Finish a deletion that was cut short."""
        keys = {key for position in self.positions.values() for key in position.deleting}
        if keys:
            self._delete(sorted(keys))

    def run(self, deadline: Deadline) -> int:
        """Delete what is delivered, put aside or skipped, as far as the time allows; return how many events."""
        deleted = 0
        for number in range(self.reader.most_shards):
            through = self._through(number)
            for step in self.reader.read(number, self._start(number, through), None):
                prepared = [item for item in self.resolver.prepare_now(step.items) if item.key <= through]
                late = self._late(number, through) if prepared else set()
                keys = [f"{number}/{item.key}" for item in prepared if item.delivery and item.key not in late]
                if keys:
                    self._delete(keys, number, prepared[-1].key)
                    deleted += len(keys)
                ended = (step.items and step.items[-1].key > through) or (step.border or "") >= through
                if ended or deadline.remaining() < LEAST_SECONDS:
                    break
        if deleted:
            self._written_down([])
        return deleted

    def _through(self, number: int) -> str:
        """Return the sort key up to which every exporter is done with a shard, and no other task needs it."""
        done = min(self.reader.done(position, number) for position in self.positions.values())
        return done if self.limit is None else min(done, self.limit)

    def _start(self, number: int, through: str) -> str:
        """Return where to go on; the minutes in which late commits may have landed since are looked at again."""
        begun = max(position.deleted.get(number, position.since) for position in self.positions.values())
        since = max(position.since for position in self.positions.values())
        return max(since, min(begun, window_start(through)))

    def _late(self, number: int, through: str) -> set[str]:
        """Return the events that landed behind a position and are not shipped: asked after the log was read."""
        return {
            key
            for position in self.positions.values()
            for sweep, shard in position.sweeps()
            if sweep == number
            for key in self.reader.late(number, shard, position)
            if key <= through
        }

    def _delete(self, keys: list[str], number: int | None = None, through: str = "") -> None:
        """Write the deletion down with every position, then do it. A key reads `<shard>/<sort key>`."""
        if number is not None:
            for position in self.positions.values():
                position.deleted[number] = through
        self._written_down(keys)
        pairs = [key.split("/") for key in keys]
        self.log.delete([(bucket_of(sort_key, int(shard)), sort_key) for shard, sort_key in pairs])

    def _written_down(self, keys: list[str]) -> None:
        for exporter_id, position in self.positions.items():
            for key in set(keys) - set(position.deleting):
                shard, sort_key = key.split("/")
                position.forget_event(int(shard), sort_key)
            position.deleting = keys
            self.save(exporter_id, position)
