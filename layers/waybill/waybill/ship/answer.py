"""What a task did: for the answer, the metrics, and whoever decides whether to go on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from waybill.clock import iso

if TYPE_CHECKING:
    from waybill.store.keyvalue import Busy


@dataclass(frozen=True, slots=True)
class Figures:
    """What there is to measure of an exporter in a run.

    Attributes:
        lag_seconds: age of the oldest event that may not be shipped yet; 0 at the end of the log.
        counts: as in the exporter's part of the answer.
    """

    lag_seconds: float
    counts: dict[str, Any]


@dataclass(slots=True)
class TaskAnswer:
    """What a task did.

    Attributes:
        again: whether an exporter ran out of time, and moved.
        failures: why exporters stopped, by exporter id, with what was delivered before.
        figures: what there is to measure, by exporter id, of those that stopped too.
    """

    size: int = 0
    end_fetched_date: str | None = None
    complete: bool = False
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    busy: Busy | None = None
    again: bool = False
    failures: dict[str, str] = field(default_factory=dict)
    figures: dict[str, Figures] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the task's part of the answer (DESIGN 4)."""
        answer: dict[str, Any] = {
            "size": self.size,
            "endFetchedDate": self.end_fetched_date,
            "complete": self.complete,
            "outputs": self.outputs,
        }
        if self.busy is not None:
            answer["busy"] = {"owner": self.busy.owner, "until": iso(self.busy.until)}
        return answer


def delivered_before(outputs: dict[str, Any]) -> str:
    """Say what an exporter that stopped had delivered before."""
    counts = {name: count for name, count in outputs.items() if isinstance(count, int) and count}
    nothing = [] if counts.keys() & {"delivered", "lines"} else ["nothing delivered"]
    done = ", ".join(nothing + [f"{count} {name}" for name, count in counts.items()])
    return f"; before that: {done}; its position is kept"
