"""What a run keeps the books with: counts, in bounded space, and what it stores on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from waybill.ship.resolve import Prepared
    from waybill.ship.tracker import Tracker


@dataclass(slots=True)
class Counts:
    """What one exporter did in a run."""

    answered: int = 0
    late_commits: int = 0
    parked: int = 0

    def as_json(self) -> dict[str, int]:
        """Return what is worth a word: late commits and parked log items, where there were any."""
        return {name: n for name, n in (("lateCommits", self.late_commits), ("parked", self.parked)) if n}


class Tally:
    """The number of events whose outcome at any exporter of a task became known in this run.

    An event counts at the first exporter that knows; the others' trackers tell whether one knew before.
    """

    def __init__(self) -> None:
        self.size = 0
        self._trackers: list[dict[int, Tracker]] = []

    def known(self, shard: int, key: str) -> None:
        """Count an event unless it was counted; to be called before the exporter's own tracker moves."""
        self.size += not self.covered(shard, key)

    def covered(self, shard: int, key: str) -> bool:
        """Tell whether an exporter has answered for an event in this run."""
        for trackers in self._trackers:
            tracker = trackers.get(shard)
            if tracker is not None and tracker.covers(key):
                return True
        return False

    def add(self, fresh: int, trackers: dict[int, Tracker]) -> None:
        """Count events that a batch brought, and look at these trackers from now on."""
        self.size += fresh
        self._trackers.append(trackers)


@dataclass(frozen=True, slots=True)
class Ledger:
    """What an exporter's way through the log writes down.

    Attributes:
        save: stores the position's JSON; raises LeaseLost when another run has taken over.
        hold: makes sure that the lease still holds; raises LeaseLost.
        park: puts aside a log item that cannot be read, with its reason.
    """

    save: Callable[[str], None]
    hold: Callable[[], None]
    park: Callable[[Prepared], None]
    tally: Tally
