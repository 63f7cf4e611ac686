"""The engine's stores in the memory of the test, with the same promises: fences, conditions, order of the log."""

from __future__ import annotations

import uuid
from bisect import bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tests.support.shipping import Died
from waybill.errors import LeaseLost
from waybill.store.keyvalue import LEASE, Busy, Lease
from waybill.store.log_reader import LogItem, LogPage
from waybill.store.shards import Generation, hour_of, next_hour

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from datetime import datetime


class LogInMemory:
    """A log whose pages are as short as chance has them, or empty with more behind them."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng
        self._keys: dict[str, list[str]] = defaultdict(list)
        self._bodies: dict[str, str] = {}

    def put(self, bucket: str, key: str, body: str) -> None:
        """Append an event."""
        insort(self._keys[bucket], key)
        self._bodies[key] = body

    def page(self, bucket: str, after: str, until: str, limit: int = 400) -> LogPage:
        keys = list(self.keys(bucket, after, until))
        if self._rng is not None:
            limit = self._rng.randint(0, 4)
        more = (keys[limit - 1] if limit else after) if len(keys) > limit else None
        return LogPage([LogItem(key, self._bodies[key]) for key in keys[:limit]], more)

    def keys(self, bucket: str, after: str, until: str) -> Iterator[str]:
        keys = self._keys[bucket]
        return iter(keys[bisect_right(keys, after) : bisect_right(keys, until)])

    def get(self, bucket: str, key: str) -> LogItem | None:
        return LogItem(key, self._bodies[key]) if key in self._keys[bucket] else None


@dataclass
class ShardsInMemory:
    """The generations of a log."""

    clock: Callable[[], datetime]
    found: list[Generation]

    def generations(self) -> list[Generation]:
        return list(self.found)

    def announce(self, shards: int) -> None:
        start = next_hour(next_hour(hour_of(self.clock())))
        if all(generation.start < start for generation in self.found):
            self.found.append(Generation(start, shards))


@dataclass
class KeyValuesInMemory:
    """The state of one task, and the position of its exporters.

    Attributes:
        dead: the process is gone: whatever it still does raises `Died`.
        dies_at: the number of the write at which it goes.
    """

    clock: Callable[[], datetime]
    dead: bool = False
    dies_at: int | None = None
    writes: int = 0
    state: dict[str, Any] = field(default_factory=dict)
    positions: dict[str, tuple[int, str | None]] = field(default_factory=dict)

    def acquire(self, namespace: str, key: str, flow_id: str, task_id: str, owner: str) -> Lease | Busy:  # noqa: ARG002
        self._live()
        now, state = self.clock(), self.state
        if "until" in state and state["until"] >= now:
            return Busy(state["owner"], state["until"])
        state.setdefault("generation", uuid.uuid4().hex)
        state |= {"owner": owner, "until": now + LEASE, "fence": state.get("fence", 0) + 1}
        return Lease(namespace, key, state["generation"], owner, state["fence"], state["until"], state.get("end"))

    def renew(self, lease: Lease) -> Lease:
        self._live()
        self._hold(lease)
        self.state["until"] = self.clock() + LEASE
        return replace(lease, until=self.state["until"])

    def release(self, lease: Lease, end_fetched_date: str | None) -> None:
        self._live()
        self._hold(lease)
        del self.state["until"]
        self.state["end"] = end_fetched_date

    def claim_position(self, lease: Lease, exporter_id: str) -> str | None:
        self._live()
        fence, body = self.positions.get(exporter_id, (0, None))
        if fence >= lease.fence:
            raise LeaseLost(exporter_id)
        self.positions[exporter_id] = lease.fence, body
        return body

    def put_position(self, lease: Lease, exporter_id: str, body: str) -> None:
        self._live()
        if self.positions[exporter_id][0] != lease.fence:
            raise LeaseLost(exporter_id)
        self.positions[exporter_id] = lease.fence, body

    def park(self, lease: Lease, exporter_id: str, event_key: str, reason: str) -> None:
        raise AssertionError((lease, exporter_id, event_key, reason))

    def _hold(self, lease: Lease) -> None:
        if self.state["fence"] != lease.fence:
            raise LeaseLost(lease.key)

    def _live(self) -> None:
        self.writes += 1
        self.dead |= self.writes == self.dies_at
        if self.dead:
            raise Died
