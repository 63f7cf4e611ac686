"""The run of a lineage event: its id, its parent's, its facets."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from waybill import __version__
from waybill.clock import utc_now
from waybill.export.openlineage.facets import facet
from waybill.ids import as_uuid, derived_uuid, derived_uuid7, uuid7_millis

if TYPE_CHECKING:
    from waybill.model.event import LineageEvent

ENGINE = facet(
    "ProcessingEngineRunFacet",
    "1-1-1",
    version=__version__,
    name="Waybill",
    openlineageAdapterVersion=__version__,
)
_VERSION_7 = 14
"""Position of the version in a UUID's text."""


def run_id(event: LineageEvent, run_ids: str) -> str:
    """Return the id of the event's run, the same on every sending.

    Args:
        event: of the log.
        run_ids: `keep` a task run id that is a UUID, or make every id a `uuid7`.
    """
    given = _usable(event.task_run_id, run_ids)
    if given is not None:
        return given
    identity = (event.namespace, event.flow_id, event.execution_id, event.task_id, event.task_run_id)
    return derived_uuid7(datetime.fromisoformat(event.start_date), *identity)


def parent_run_id(event: LineageEvent, run_ids: str) -> str | None:
    """Return the id of the execution's run, or None where a UUIDv7 is asked for and its time is not known."""
    given = _usable(event.execution_id, run_ids)
    if given is not None:
        return given
    identity = (event.namespace, event.flow_id, event.execution_id)
    if event.execution_start_date:
        return derived_uuid7(datetime.fromisoformat(event.execution_start_date), *identity)
    return None if run_ids == "uuid7" else derived_uuid(*identity)


def _usable(text: str, run_ids: str) -> str | None:
    given = as_uuid(text)
    return given if given and (run_ids != "uuid7" or given[_VERSION_7] == "7") else None


def run_facets(event: LineageEvent, parent: str | None) -> dict[str, Any]:
    """Return the facets of the event's run; `parent` is the id of the execution's run, or None to leave it out."""
    facets: dict[str, Any] = {"processing_engine": ENGINE}
    if parent is not None:
        job = {"namespace": event.namespace, "name": event.flow_id}
        facets["parent"] = facet("ParentRunFacet", "1-2-0", run={"runId": parent}, job=job)
    if event.error:
        facets["errorMessage"] = _error(event.error)
    if event.labels:
        tags = [{"key": key, "value": value, "source": "WAYBILL"} for key, value in event.labels.items()]
        facets["tags"] = facet("TagsRunFacet", "1-0-0", tags=tags)
    return facets


def _error(error: dict[str, str]) -> dict[str, Any]:
    trace = {"stackTrace": error["stackTrace"]} if error.get("stackTrace") else {}
    message = error.get("message", "")
    return facet("ErrorMessageRunFacet", "1-0-1", message=message, programmingLanguage="unknown", **trace)


def out_of_range(run: str, years_back: int, years_ahead: int) -> str | None:
    """Say so when the time in a UUIDv7 lies more than so many years ago, or after the end of so many years from now."""
    now = utc_now()
    moment = uuid7_millis(run) / 1000
    first = now.replace(year=now.year - years_back, day=min(now.day, 28)).timestamp()
    last = now.replace(year=now.year + years_ahead + 1, month=1, day=1, hour=0, minute=0, second=0).timestamp()
    if first <= moment < last:
        return None
    return f"its time is not from {years_back} years ago to the end of {now.year + years_ahead}; the rest is not kept"
