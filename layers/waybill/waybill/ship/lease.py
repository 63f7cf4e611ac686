"""Holds the lease of a task while it ships."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from waybill.errors import LeaseLost
from waybill.store.keyvalue import LEASE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import datetime

    from waybill.store.keyvalue import KeyValueStore, Lease
    from waybill.store.offsets import Offset, ParameterOffsets

SECONDS_PER_RENEWAL = LEASE.total_seconds() / 4


class HeldLease:
    """A lease that is renewed as long as the run lives.

    A process that was frozen finds its lease at an end by the clock before it sends anything. What it would still store
    is refused by its fence.
    """

    def __init__(self, store: KeyValueStore, lease: Lease, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock
        self.lease = lease
        self._lost: LeaseLost | None = None

    def check(self) -> None:
        """Make sure that the lease still holds, by what is known here.

        Raises:
            LeaseLost: it was lost, or has run out unrenewed.
        """
        if self._lost is not None:
            raise self._lost
        if self._clock() >= self.lease.until:
            raise LeaseLost(f"{self.lease.key}: the lease ran out before it was renewed")

    def renew(self) -> None:
        """Renew the lease now.

        Raises:
            LeaseLost: somebody else took it over, or the state was deleted.
        """
        self.lease = self._store.renew(self.lease)

    def begin_generation(self, offsets: ParameterOffsets) -> None:
        """Follow the generation that the task's parameter names."""
        offset = offsets.get(self.lease.namespace, self.lease.key)
        if offset.generation != self.lease.generation:
            self.lease = self._store.regenerate(self.lease, offset.generation)
        self.lease = replace(self.lease, end_fetched_date=offset.end_fetched_date)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Renew the lease again and again while the context lasts."""
        renewals = asyncio.create_task(self._renewals())
        try:
            yield
        finally:
            renewals.cancel()
            with suppress(asyncio.CancelledError):
                await renewals

    def release(self, end_fetched_date: str | None, offsets: ParameterOffsets | None, offset: Offset | None) -> None:
        """Give the lease back, and store where the task is.

        Raises:
            LeaseLost: somebody else took it over, or the state was deleted.
        """
        if offsets is not None and offset is not None:
            self.renew()
            offsets.put(self.lease.namespace, self.lease.key, offset)
        self._store.release(self.lease, end_fetched_date)

    async def _renewals(self) -> None:
        while True:
            await asyncio.sleep(SECONDS_PER_RENEWAL)
            try:
                await asyncio.to_thread(self.renew)
            except LeaseLost as error:
                self._lost = error
                return
