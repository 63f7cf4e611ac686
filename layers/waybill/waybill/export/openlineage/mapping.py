"""Maps a lineage event with its current assets to OpenLineage run events (DESIGN 6, spec 2-0-2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from waybill.errors import WaybillError
from waybill.export.openlineage.cleaning import clean, to_json
from waybill.export.openlineage.datasets import Datasets
from waybill.export.openlineage.facets import DROPPABLE, PRODUCER, facet, ownership
from waybill.export.openlineage.runs import out_of_range, parent_run_id, run_facets, run_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from waybill.export.openlineage.config import OpenLineageAssetExporter
    from waybill.export.ports import Delivery
    from waybill.model.asset import Asset
    from waybill.model.event import LineageEvent

SCHEMA_URL = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"

EVENT_TYPES = {"SUCCESS": "COMPLETE", "WARNING": "COMPLETE", "FAILED": "FAIL", "KILLED": "ABORT", "CANCELLED": "ABORT"}
"""The event type by the state of the task run; any other state is OTHER."""

_JOB_TYPE = facet("JobTypeJobFacet", "2-0-4", processingType="BATCH", integration="WAYBILL", jobType="TASK")
_MOST_JOBS_KEPT = 10_000


class CannotBeSent(WaybillError):
    """The event would harm the destination, or does not fit it. The message says which asset, and why."""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An OpenLineage run event, rendered."""

    type: str
    run_id: str
    body: bytes


class Mapper:
    """Maps the events of one run of an exporter."""

    def __init__(self, config: OpenLineageAssetExporter) -> None:
        preset = config.preset
        self._datasets = Datasets(config)
        self._names = preset.names
        self._backend = config.backend
        self._run_ids = config.run_ids or preset.run_ids
        self._parent = preset.parent_run if config.parent_run is None else config.parent_run
        self._start = config.start_events
        self._years = preset.run_years
        self._limit = min(config.max_event_bytes or preset.max_bytes or 1 << 62, preset.max_bytes or 1 << 62)
        self._jobs: dict[tuple[str, str, str, str | None], orjson.Fragment] = {}

    def events(self, delivery: Delivery) -> list[RunEvent]:
        """Return the run events of a delivery in the order of sending: START where asked for, then the final one.

        Raises:
            CannotBeSent: this event must become a dead letter.
            ExporterStopped: an asset of a mapped type lacks the metadata key.
        """
        event = delivery.event
        run = run_id(event, self._run_ids)
        if self._years and (fault := out_of_range(run, *self._years)):
            raise CannotBeSent(f"run {run}: {fault}")
        final = EVENT_TYPES.get(event.state, "OTHER"), event.end_date
        types = (("START", event.start_date), final) if self._start else (final,)
        made = [RunEvent(kind, run, self._body(delivery, kind, time, run)) for kind, time in types]
        if any(len(event.body) > self._limit for event in made):
            return [RunEvent(kind, run, self._fitted(delivery, kind, time, run, self._limit)) for kind, time in types]
        return made

    def smaller(self, delivery: Delivery) -> list[RunEvent]:
        """Return the run events of a delivery without any facet that may be left out.

        Raises:
            CannotBeSent, ExporterStopped: as `events`.
        """
        event = delivery.event
        run = run_id(event, self._run_ids)
        final = EVENT_TYPES.get(event.state, "OTHER"), event.end_date
        types = (("START", event.start_date), final) if self._start else (final,)
        return [RunEvent(kind, run, self._body(delivery, kind, time, run, DROPPABLE)) for kind, time in types]

    def _fitted(self, delivery: Delivery, kind: str, time: str, run: str, limit: int) -> bytes:
        """Leave out facets, in the order of `DROPPABLE`, until the event fits."""
        for count in range(1, len(DROPPABLE) + 1):
            body = self._body(delivery, kind, time, run, DROPPABLE[:count])
            if len(body) <= limit:
                return body
        raise CannotBeSent(
            f"the event is larger than the {limit} bytes that {self._backend} takes, even without the facets "
            f"{', '.join(DROPPABLE)}; declare fewer assets in one report"
        )

    def _body(self, delivery: Delivery, kind: str, time: str, run: str, without: Sequence[str] = ()) -> bytes:
        event = delivery.event
        parent = parent_run_id(event, self._run_ids) if self._parent else None
        facets = run_facets(event, parent)
        if without:
            facets["waybill_trimmed"] = _trimmed(without)
        return orjson.dumps(
            {
                "eventType": kind,
                "eventTime": zoned(time),
                "run": orjson.Fragment(to_json({"runId": run, "facets": facets})),
                "job": self._job(event),
                "inputs": self._rendered(delivery.inputs, without),
                "outputs": self._rendered(delivery.outputs, without),
                "producer": PRODUCER,
                "schemaURL": SCHEMA_URL,
            }
        )

    def _rendered(self, assets: Sequence[Asset], without: Sequence[str]) -> list[orjson.Fragment | None]:
        if without:
            made = [self._datasets.render(asset, frozenset(without)) for asset in assets]
        else:
            made = [self._datasets.of(asset) for asset in assets]
        fault = next((dataset.fault for dataset in made if dataset.fault), None)
        if fault is not None:
            raise CannotBeSent(fault)
        return [dataset.body for dataset in made]

    def _job(self, event: LineageEvent) -> orjson.Fragment:
        key = (event.namespace, event.flow_id, event.task_id, event.labels.get("owner"))
        job = self._jobs.get(key)
        if job is None:
            if len(self._jobs) >= _MOST_JOBS_KEPT:
                self._jobs.clear()
            job = self._jobs[key] = self._rendered_job(*key)
        return job

    def _rendered_job(self, namespace: str, flow_id: str, task_id: str, owner: str | None) -> orjson.Fragment:
        name = f"{flow_id}.{task_id}"
        fault = self._names.name_fault(name)
        if fault is not None:
            raise CannotBeSent(f"job {clean(name)!r}: its name {fault} ({self._backend})")
        facets = {"jobType": _JOB_TYPE}
        if owners := ownership("OwnershipJobFacet", owner):
            facets["ownership"] = owners
        return orjson.Fragment(to_json({"namespace": namespace, "name": name, "facets": facets}))


def zoned(time: str) -> str:
    """Return a time with a zone: UTC where it says none."""
    day_time = time.partition("T")[2]
    return time if day_time.endswith("Z") or "+" in day_time or "-" in day_time else f"{time}Z"


def _trimmed(facets: Sequence[str]) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": "urn:waybill:facet:trimmed:1-0-0", "datasetFacets": list(facets)}
