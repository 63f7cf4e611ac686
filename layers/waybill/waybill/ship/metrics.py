"""The metrics of shipping, in CloudWatch's embedded format (namespace `Waybill`).

| metric | unit | what it is |
| --- | --- | --- |
| `LagSeconds` | seconds | age of the oldest event that may not be shipped yet; 0 at the end of the log |
| `RetentionUsed` | percent | `LagSeconds` over the time that the log keeps an event |
| `Delivered`, `Rejected`, `Skipped`, `Retried` | count | as in the answer; lines of files are `Delivered` |
| `DeadLetters` | count | events that were set aside: refused, or taken and not processed afterwards |
| `LateCommits` | count | events that were committed behind the position, sent out of order |
| `Parked` | count | log items that cannot be read |
| `BreakerOpened` | count | how often a backend in trouble was left alone but for one try at a time |
| `ExporterStopped` | count | 1 when the exporter could not go on |

Each is given twice. With the dimensions `service`, `flow` (`<namespace>/<flow id>.<task id>`) and `exporter` it tells
of one exporter. By `service` alone, which is the stack, it tells of a task's exporters together: the worst of them, or
their sum. So one alarm watches flows that the template does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from waybill.settings import settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from waybill.model.flow import Flow
    from waybill.ship.answer import Figures, TaskAnswer

_COUNTS = {
    "delivered": "Delivered",
    "lines": "Delivered",
    "rejected": "Rejected",
    "skipped": "Skipped",
    "retried": "Retried",
    "lateCommits": "LateCommits",
    "parked": "Parked",
    "breakerOpened": "BreakerOpened",
}
_SECONDS_OF_A_DAY = 86_400


def publish(flow: Flow, task_id: str, answer: TaskAnswer) -> None:
    """Write what a task did as metrics: a document per exporter, and one of them all."""
    without_position = {exporter_id: {"ExporterStopped": 1.0} for exporter_id in answer.failures}
    each = without_position | {
        exporter_id: _metrics(figures, stopped=exporter_id in answer.failures)
        for exporter_id, figures in answer.figures.items()
    }
    for exporter_id, metrics in each.items():
        _write(metrics, {"flow": f"{flow.namespace}/{flow.id}.{task_id}", "exporter": exporter_id})
    if each:
        _write(together(list(each.values())), {})


def together(each: list[dict[str, float]]) -> dict[str, float]:
    """Return the metrics of several exporters as one: ages are those of the worst, counts are added up."""
    names = dict.fromkeys(name for metrics in each for name in metrics)
    return {name: (max if name in _UNITS else sum)(metrics.get(name, 0) for metrics in each) for name in names}


def _metrics(figures: Figures, *, stopped: bool) -> dict[str, float]:
    kept_seconds = settings().retention_days * _SECONDS_OF_A_DAY
    return {
        "LagSeconds": figures.lag_seconds,
        "RetentionUsed": 100 * figures.lag_seconds / kept_seconds,
        "ExporterStopped": int(stopped),
        "DeadLetters": sum(figures.counts.get(name, 0) for name in ("rejected", "failedLater")),
    } | {metric: figures.counts[name] for name, metric in _COUNTS.items() if name in figures.counts}


_UNITS = {"LagSeconds": "Seconds", "RetentionUsed": "Percent"}
"""The units of what is no count."""


def _write(metrics: Mapping[str, float], dimensions: Mapping[str, str]) -> None:
    from aws_lambda_powertools.metrics import EphemeralMetrics

    document = EphemeralMetrics()
    for name, value in dimensions.items():
        document.add_dimension(name, value)
    for name, number in metrics.items():
        document.add_metric(name, _UNITS.get(name, "Count"), number)
    document.flush_metrics()
