"""The passing of time between two runs, from nothing to hours, with what happens on its own meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from waybill.errors import Conflict
from waybill.store.keyvalue import LEASE
from waybill.store.shards import hour_of, hour_start, next_hour

if TYPE_CHECKING:
    import random

    from tests.torture.clock import SharedClock
    from tests.torture.recorders import BetrayingWriter
    from waybill.store.shards import Shards

LEASE_SECONDS = LEASE.total_seconds() + 2.5
"""After so long, the lease of a run that was killed may be taken over."""


class Passing:
    """Lets time pass, with a stop at each request that is carried out late."""

    def __init__(self, clock: SharedClock, writer: BetrayingWriter, shards: Shards, rng: random.Random) -> None:
        self._clock = clock
        self._writer = writer
        self._shards = shards
        self._rng = rng

    def pause(self) -> None:
        """Let some time pass; change the number of shards now and then."""
        if self._rng.random() < 0.08:
            self._announce()
        choice = self._rng.random()
        if choice < 0.25:
            self.leap(self._rng.uniform(0, 8))
        elif choice < 0.8:
            self.leap(LEASE_SECONDS + self._rng.uniform(0, 90))
        elif choice < 0.9:
            self.leap(self._rng.uniform(120, 1_500))
        elif choice < 0.96:
            self.leap_to_border()
        else:
            self.leap(self._rng.uniform(3_600, 8_000))

    def leap(self, seconds: float) -> None:
        """Let so many seconds pass."""
        target = self._clock() + timedelta(seconds=seconds)
        while (due := self._writer.next_due()) is not None and due <= target:
            self._clock.turn_to(max(due, self._clock()))
            self._writer.carry_out_due()
        self._clock.turn_to(max(target, self._clock()))

    def leap_to_border(self) -> None:
        """Let time pass until right before the next hour."""
        border = hour_start(next_hour(hour_of(self._clock() + timedelta(seconds=1))))
        self.leap((border - self._clock()).total_seconds() - 0.5)

    def settle(self) -> None:
        """Let time pass until every late request is carried out."""
        while (due := self._writer.next_due()) is not None:
            self.leap((due - self._clock()).total_seconds() + 0.001)

    def _announce(self) -> None:
        try:
            self._shards.announce(self._rng.choice((1, 2, 3, 5, 8)))
        except Conflict:
            return
