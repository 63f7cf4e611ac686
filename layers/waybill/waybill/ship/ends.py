"""Up to when every exporter of a task has everything: `endFetchedDate` (DESIGN 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waybill.clock import iso_of_millis
from waybill.ids import uuid7_millis

if TYPE_CHECKING:
    from waybill.ship.position import Position


class Ends:
    """The recording times up to which each exporter has everything.

    A position says less than what is true: a shard without events stays where its last event was. So one that was
    reached in an earlier run holds, but for an exporter that has never come so far.

    Args:
        stored: what the run before stored, or None.
    """

    def __init__(self, stored: str | None) -> None:
        self._stored = stored or ""
        self._ends: dict[str, str] = {}

    def complete(self, exporter_id: str, position: Position) -> None:
        """Note an exporter that has come to the end of the log; one that was never sent anything does not count."""
        if position.last:
            self._ends[exporter_id] = max(_date(position.last), self._stored)

    def stopped(self, exporter_id: str, position: Position, reached: str, *, new: bool) -> None:
        """Note an exporter that has not; `new` when it was never on its way before this run."""
        last = _date(position.last)
        end = min(last, _date(reached))
        behind = new or (last and last < self._stored)
        self._ends[exporter_id] = end if behind else max(end, self._stored)

    def unknown(self, exporter_id: str) -> None:
        """Note an exporter whose position cannot be read."""
        self._ends[exporter_id] = self._stored

    @property
    def least(self) -> str | None:
        """The time up to which every exporter has everything, or None when there is none."""
        return min(self._ends.values(), default=self._stored) or None


def _date(key: str) -> str:
    return iso_of_millis(uuid7_millis(key)) if key else ""
