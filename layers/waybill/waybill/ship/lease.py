"""Holds the lease of a task while it ships."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from waybill.errors import LeaseLost
from waybill.ship.checkpoints import TROUBLE
from waybill.store.keyvalue import LEASE
from waybill.store.offsets import Offset

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import datetime

    from waybill.store.keyvalue import KeyValueStore, Lease
    from waybill.store.offsets import ParameterOffsets

SECONDS_PER_RENEWAL = LEASE.total_seconds() / 4
WRONG_CLOCKS = timedelta(seconds=5)
"""So long before its end a lease no longer holds for its owner: others may think that it has come."""


class HeldLease:
    """A lease that is renewed as long as the run lives.

    A process that was frozen finds its lease at an end by the clock before it sends anything. What it would still store
    is refused by its fence.

    Args:
        offsets: where the task's offset stands, if that is in Parameter Store.
    """

    def __init__(
        self,
        store: KeyValueStore,
        lease: Lease,
        clock: Callable[[], datetime],
        offsets: ParameterOffsets | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._offsets = offsets
        self._follows_offset = False
        self.lease = lease
        self._lost: LeaseLost | None = None

    def check(self) -> None:
        """Make sure that the lease still holds, by what is known here.

        Raises:
            LeaseLost: it was lost, or has run out unrenewed.
        """
        if self._lost is not None:
            raise self._lost
        if self._clock() >= self.lease.until - WRONG_CLOCKS:
            raise LeaseLost(f"{self.lease.key}: the lease ran out before it was renewed")

    def renew(self) -> None:
        """Renew the lease now.

        Raises:
            LeaseLost: somebody else took it over, or the state was deleted.
        """
        self.lease = self._store.renew(self.lease)

    def follow_offset(self) -> None:
        """Follow the generation that the task's parameter names, where the stack keeps offsets there.

        A state that has never followed one is new, or was deleted: a generation of the parameter that it does not know
        has positions which newer fences hold. So another one begins.

        Raises:
            InvalidOffset: the parameter holds no offset.
            LeaseLost: somebody else took the lease over, or the state was deleted.
        """
        if self._offsets is None:
            return
        offset = self._offsets.get(self.lease.namespace, self.lease.key)
        if offset is None or (offset.generation != self.lease.generation and not self.lease.follows_offset):
            offset = self._offsets.begin(self.lease.namespace, self.lease.key)
        if offset.generation != self.lease.generation:
            self.lease = self._store.regenerate(self.lease, offset.generation)
        self.lease = replace(self.lease, end_fetched_date=offset.end_fetched_date)
        self._follows_offset = True

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Renew the lease again and again while the context lasts."""
        ended = asyncio.Event()
        renewals = asyncio.create_task(self._renewals(ended))
        try:
            yield
        finally:
            ended.set()
            await renewals

    def release(self, end_fetched_date: str | None) -> None:
        """Give the lease back, and store where the task is.

        Raises:
            LeaseLost: somebody else took it over, or the offset was deleted meanwhile: that reset stands.
        """
        try:
            if self._offsets is not None and self._follows_offset:
                self.renew()
                self._store_offset(self._offsets, Offset(self.lease.generation, end_fetched_date))
        except BaseException:
            self._store.release(self.lease, self.lease.end_fetched_date)
            raise
        self._store.release(self.lease, end_fetched_date)

    def _store_offset(self, offsets: ParameterOffsets, offset: Offset) -> None:
        if not offsets.replace(self.lease.namespace, self.lease.key, offset):
            raise LeaseLost(f"{self.lease.key}: the parameter was deleted or changed while the task ran")

    async def _renewals(self, ended: asyncio.Event) -> None:
        """Renew until the end. A renewal that was begun is finished: one after the release would hold it for nobody."""
        while not ended.is_set():
            try:
                async with asyncio.timeout(SECONDS_PER_RENEWAL):
                    await ended.wait()
            except TimeoutError:
                await self._renewal()

    async def _renewal(self) -> None:
        try:
            await asyncio.to_thread(self.renew)
        except LeaseLost as error:
            self._lost = error
        except TROUBLE:
            return  # the lease outlasts several renewals, and what it guards checks its end
