"""The lineage event: one bundle of one task run, as the log keeps it (`kestra.md` 1.5).

Reading the log is the hot path, so an event is a plain dataclass and its body one JSON string.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson

from waybill.clock import iso, iso_of_millis
from waybill.ids import derived_uuid, uuid7_millis
from waybill.model.asset import AssetRef

if TYPE_CHECKING:
    from waybill.model.report import Bundle, TaskRunReport


_TEXTS = ("id", "namespace", "flowId", "executionId", "taskId", "taskRunId", "state", "startDate", "endDate")


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageEvent:
    """One lineage event. Times are ISO 8601 in UTC ending in `Z`.

    Attributes:
        id: stable for the report and the bundle, however often it is written.
        created: the recording time; it comes from the sort key, not from the body.
    """

    id: str
    namespace: str
    flow_id: str
    execution_id: str
    task_id: str
    task_run_id: str
    state: str
    start_date: str
    end_date: str
    flow_revision: int | None = None
    execution_start_date: str | None = None
    error: dict[str, str] | None = None
    labels: dict[str, str] = field(default_factory=dict)
    inputs: tuple[AssetRef, ...] = ()
    outputs: tuple[AssetRef, ...] = ()
    created: str = ""

    @property
    def job(self) -> str:
        """The job that ran: `<namespace>/<flowId>.<taskId>`."""
        return f"{self.namespace}/{self.flow_id}.{self.task_id}"

    def words(self) -> dict[str, Any]:
        """Return the event without its assets as users see it: camelCase, without what it does not say."""
        document: dict[str, Any] = {
            "id": self.id,
            "namespace": self.namespace,
            "flowId": self.flow_id,
            "executionId": self.execution_id,
            "taskId": self.task_id,
            "taskRunId": self.task_run_id,
            "state": self.state,
            "startDate": self.start_date,
            "endDate": self.end_date,
        }
        if self.flow_revision is not None:
            document["flowRevision"] = self.flow_revision
        if self.execution_start_date is not None:
            document["executionStartDate"] = self.execution_start_date
        if self.error is not None:
            document["error"] = self.error
        if self.labels:
            document["labels"] = self.labels
        if self.created:
            document["created"] = self.created
        return document

    def as_json(self) -> dict[str, Any]:
        """Return the event as users see it, its assets as the references that it keeps."""
        return {
            **self.words(),
            "inputs": [ref.as_json() for ref in self.inputs],
            "outputs": [ref.as_json() for ref in self.outputs],
        }

    def to_body(self) -> str:
        """Write the body of the log's item. The recording time is not in it: it is the sort key's."""
        document = self.as_json()
        document.pop("created", None)
        return orjson.dumps(document).decode()


def event_from_body(key: str, body: str | bytes) -> LineageEvent:
    """Read an event from the body and the sort key of the log's item.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: the body is no lineage event.
    """
    said = orjson.loads(body)
    inputs, outputs = [_ref(**ref) for ref in said["inputs"]], [_ref(**ref) for ref in said["outputs"]]
    _require_types(said)
    return LineageEvent(
        id=said["id"],
        namespace=said["namespace"],
        flow_id=said["flowId"],
        execution_id=said["executionId"],
        task_id=said["taskId"],
        task_run_id=said["taskRunId"],
        state=said["state"],
        start_date=said["startDate"],
        end_date=said["endDate"],
        flow_revision=said.get("flowRevision"),
        execution_start_date=said.get("executionStartDate"),
        error=said.get("error"),
        labels=said.get("labels") or {},
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        created=iso_of_millis(uuid7_millis(key)),
    )


@lru_cache(maxsize=10_000)
def _ref(id: str, type: str | None = None, namespace: str | None = None) -> AssetRef:  # noqa: A002 - the log's words
    """Make a reference, and make sure that it holds text; many events share one."""
    "".join((id, type or "", namespace or ""))
    return AssetRef(id, type, namespace)


def _require_types(said: dict[str, Any]) -> None:
    """Make sure that text is text and time is time: a join costs a tenth of checking each."""
    "".join([said[name] for name in _TEXTS])
    for name in ("labels", "error"):
        texts = said.get(name)
        if texts:
            "".join([*texts.keys(), *texts.values()])
    datetime.fromisoformat(said["startDate"])
    datetime.fromisoformat(said["endDate"])
    if said.get("executionStartDate"):
        datetime.fromisoformat(said["executionStartDate"])


def event_of(report: TaskRunReport, bundle: Bundle, number: int) -> LineageEvent:
    """Make the lineage event of a report's bundle; the same report and number always give the same id."""
    error = report.error.model_dump(by_alias=True, exclude_none=True) if report.error else None
    return LineageEvent(
        id=derived_uuid(*report.identity, str(number)),
        namespace=report.namespace,
        flow_id=report.flow_id,
        flow_revision=report.flow_revision,
        execution_id=report.execution_id,
        execution_start_date=iso(report.execution_start_date) if report.execution_start_date else None,
        task_id=report.task_id,
        task_run_id=report.task_run_id,
        state=report.state.value,
        start_date=iso(report.start_date),
        end_date=iso(report.end_date),
        error=error,
        labels=report.labels,
        inputs=bundle.inputs,
        outputs=tuple(output.ref for output in bundle.outputs),
    )
