"""What the engine and an exporter know of each other.

The engine knows nothing of HTTP or S3; an exporter knows nothing of positions.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from waybill.model.asset import Asset
    from waybill.model.event import LineageEvent


class Deadline:
    """The moment at which a run must have ended, on the monotonic clock."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    def remaining(self) -> float:
        """Return the seconds that are left, never below 0."""
        return max(0.0, self._end - self._clock())

    def share(self, parts: int) -> Deadline:
        """Return a deadline after an equal part of what is left."""
        return Deadline(self.remaining() / parts, self._clock)


@dataclass(frozen=True, slots=True)
class Run:
    """The run of one task of a flow, as its exporters see it.

    Attributes:
        state_key: the task's key in the key-value store (`AssetShipper-state_<flow id>_<task id>`).
        started: `execution.startDate` of expressions.
    """

    namespace: str
    flow_id: str
    task_id: str
    state_key: str
    started: datetime
    deadline: Deadline


@dataclass(frozen=True, slots=True)
class Delivery:
    """A lineage event with its assets as they are now, filtered, without those deleted.

    Within a run the same asset is the same object as long as the engine keeps it: what is made of it can be kept too.

    Attributes:
        key: the sort key of the event in the log, unique.
    """

    key: str
    event: LineageEvent
    inputs: tuple[Asset, ...]
    outputs: tuple[Asset, ...]


class Outcome(StrEnum):
    """What became of an event at an exporter."""

    DELIVERED = "delivered"
    REJECTED = "rejected"
    SKIPPED = "skipped"


@runtime_checkable
class StreamExporter(Protocol):
    """An exporter that gives an answer for each event.

    The engine calls `deliver` for the events of one job one after the other, in the order of the log, and for up to
    `in_flight` jobs side by side.
    """

    in_flight: int

    async def open(self) -> None:
        """Get ready.

        Raises:
            ExporterStopped: it cannot work at all.
        """

    async def deliver(self, delivery: Delivery) -> Outcome:
        """Deliver one event; REJECTED means put aside as a dead letter with its reason.

        Raises:
            ExporterStopped: the destination does not take anything; the event counts as not answered.
            OutOfTime: the deadline came; the event counts as not answered.
        """
        ...

    async def close(self) -> None:
        """Give back connections. Never raises."""

    def outputs(self) -> dict[str, Any]:
        """Return the exporter's part of the answer."""
        ...


@runtime_checkable
class BatchExporter(Protocol):
    """An exporter whose events count only once it has committed them all.

    `start` and `end` are words of the engine's that the exporter keeps and gives back unread.
    """

    def recover(self, start: str) -> str | None:
        """Return the end of the batch that was committed from this start before, or None."""
        ...

    def begin(self, start: str) -> None:
        """Start a batch."""

    def write(self, delivery: Delivery) -> None:
        """Add one event to the batch, in the order of the engine.

        Raises:
            ExporterStopped: the destination does not take it.
        """

    def full(self) -> bool:
        """Tell whether the batch should be committed before more is written to it."""
        ...

    def commit(self, end: str) -> str:
        """Make the batch count; return the end that counts: another's, where another run committed first."""
        ...

    def abandon(self) -> None:
        """Drop what was not committed. Never raises."""

    def outputs(self) -> dict[str, Any]:
        """Return the exporter's part of the answer."""
        ...
