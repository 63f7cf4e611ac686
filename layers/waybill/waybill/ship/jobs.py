"""The events that wait for their answers: jobs side by side, the events of a job one after the other."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from waybill.export.ports import Delivery
    from waybill.ship.tracker import Entry, Tracker


class Parcel(NamedTuple):
    """A delivery on its way. `entry` is None for a late commit."""

    delivery: Delivery
    number: int
    tracker: Tracker
    entry: Entry | None


class Jobs:
    """A queue for each job; its head is handed out once the event before it is answered.

    Attributes:
        waiting: how many events there are in all queues.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._queues: dict[str, deque[Parcel]] = {}
        self._ready: asyncio.Queue[str] = asyncio.Queue()

    def put(self, parcel: Parcel) -> None:
        """Put an event behind those of its job."""
        job = parcel.delivery.event.job
        queue = self._queues.get(job)
        if queue is None:
            self._queues[job] = deque((parcel,))
            self._ready.put_nowait(job)
        else:
            queue.append(parcel)
        self.waiting += 1

    async def next(self) -> Parcel | None:
        """Wait for an event that may be delivered; None is the end."""
        job = await self._ready.get()
        return self._queues[job][0] if job else None

    def answered(self, parcel: Parcel) -> None:
        """Take an event out; the next one of its job may be delivered."""
        job = parcel.delivery.event.job
        queue = self._queues[job]
        queue.popleft()
        self.waiting -= 1
        if queue:
            self._ready.put_nowait(job)
        else:
            del self._queues[job]

    def end(self, takers: int) -> None:
        """Tell so many that wait for an event that none will come."""
        for _ in range(takers):
            self._ready.put_nowait("")
