"""The metrics of shipping, per exporter, in CloudWatch's embedded format (namespace `Waybill`).

Dimensions: `service`, `flow` (`<namespace>/<flow id>.<task id>`), `exporter`.

| metric | unit | what it is |
| --- | --- | --- |
| `LagSeconds` | seconds | age of the oldest event that may not be shipped yet; 0 at the end of the log |
| `Delivered`, `Rejected`, `Skipped`, `Retried` | count | as in the answer |
| `LateCommits` | count | events that were committed behind the position, sent out of order |
| `Parked` | count | log items that cannot be read |
| `ExporterStopped` | count | 1 when the exporter could not go on |

By `service` alone, so that one alarm watches every flow:

| metric | unit | what it is |
| --- | --- | --- |
| `RetentionUsed` | percent | the largest `LagSeconds` over the time that the log keeps an event |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from waybill.settings import settings

if TYPE_CHECKING:
    from waybill.model.flow import Flow
    from waybill.ship.answer import TaskAnswer

_COUNTS = {
    "delivered": "Delivered",
    "rejected": "Rejected",
    "skipped": "Skipped",
    "retried": "Retried",
    "lines": "Delivered",
    "lateCommits": "LateCommits",
    "parked": "Parked",
    "breakerOpened": "BreakerOpened",
}


def publish(flow: Flow, task_id: str, answer: TaskAnswer) -> None:
    """Write what a task did as metrics, one document per exporter."""
    from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

    for exporter_id, figures in answer.figures.items():
        metrics = EphemeralMetrics()
        metrics.add_dimension("flow", f"{flow.namespace}/{flow.id}.{task_id}")
        metrics.add_dimension("exporter", exporter_id)
        metrics.add_metric("LagSeconds", MetricUnit.Seconds, figures.lag_seconds)
        metrics.add_metric("ExporterStopped", MetricUnit.Count, exporter_id in answer.failures)
        for name, metric in _COUNTS.items():
            count = figures.counts.get(name)
            if isinstance(count, int):
                metrics.add_metric(metric, MetricUnit.Count, count)
        metrics.flush_metrics()
    if answer.figures:
        kept_seconds = settings().retention_days * 86_400
        lag = max(figures.lag_seconds for figures in answer.figures.values())
        metrics = EphemeralMetrics()
        metrics.add_metric("RetentionUsed", MetricUnit.Percent, 100 * lag / kept_seconds)
        metrics.flush_metrics()
