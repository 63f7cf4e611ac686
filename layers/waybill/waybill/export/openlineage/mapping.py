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

JOB_TYPE = facet("JobTypeJobFacet", "2-0-4", processingType="BATCH", integration="WAYBILL", jobType="TASK")
_UNLIMITED = 2**62
_MOST_JOBS_KEPT = 10_000


class CannotBeSent(WaybillError):
    """The event would harm the destination, or does not fit it. The message says which asset, and why."""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An OpenLineage run event, rendered.

    Attributes:
        id: of the lineage event that it was made of.
    """

    id: str
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
        self._limit = min(config.max_event_bytes or _UNLIMITED, preset.max_bytes or _UNLIMITED)
        self._wanted = preset.event_types if config.event_types is None else frozenset(config.event_types)
        self._both_sides = preset.both_sides
        self._jobs: dict[tuple[str, str, str, str | None], orjson.Fragment] = {}

    def events(self, delivery: Delivery) -> list[RunEvent]:
        """Return the run events of a delivery in the order of sending: START where asked for, then the final one.

        There are none where the destination takes no event of these types, or none with datasets on one side only.

        Raises:
            CannotBeSent: this event must become a dead letter.
            ExporterStopped: an asset of a mapped type lacks the metadata key.
        """
        made = self._made(delivery)
        for event in made:
            if len(event.body) > self._limit:
                return self._fitted(delivery)
        return made

    def smaller(self, delivery: Delivery) -> list[RunEvent]:
        """Return the run events of a delivery without any facet that may be left out.

        Raises:
            CannotBeSent, ExporterStopped: as `events`.
        """
        return self._made(delivery, DROPPABLE)

    def _made(self, delivery: Delivery, without: Sequence[str] = ()) -> list[RunEvent]:
        event = delivery.event
        if self._both_sides and not (delivery.inputs and delivery.outputs):
            return []
        run = run_id(event, self._run_ids)
        if self._years and (fault := out_of_range(run, *self._years)):
            raise CannotBeSent(f"run {run}: {fault}")
        final = EVENT_TYPES.get(event.state, "OTHER"), event.end_date
        types = (("START", event.start_date), final) if self._start else (final,)
        return [
            RunEvent(event.id, kind, run, self._body(delivery, kind, time, run, without))
            for kind, time in types
            if self._wanted is None or kind in self._wanted
        ]

    def _fitted(self, delivery: Delivery) -> list[RunEvent]:
        """Leave out facets, in the order of `DROPPABLE`, until every event fits."""
        for count in range(1, len(DROPPABLE) + 1):
            made = self._made(delivery, DROPPABLE[:count])
            if all(len(event.body) <= self._limit for event in made):
                return made
        raise CannotBeSent(
            f"the event is larger than the {self._limit} bytes that {self._backend} takes, even without the facets "
            f"{', '.join(DROPPABLE)}; declare fewer assets in one report"
        )

    def _body(self, delivery: Delivery, kind: str, time: str, run: str, without: Sequence[str]) -> bytes:
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
        for dataset in made:
            if dataset.fault is not None:
                raise CannotBeSent(dataset.fault)
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
        facets = {"jobType": JOB_TYPE}
        if owners := ownership("OwnershipJobFacet", owner):
            facets["ownership"] = owners
        return orjson.Fragment(to_json({"namespace": namespace, "name": name, "facets": facets}))


def zoned(time: str) -> str:
    """Return a time with a zone: UTC where it says none."""
    if time.endswith("Z"):
        return time
    of_day = time.partition("T")[2]
    return time if "+" in of_day or "-" in of_day else f"{time}Z"


def _trimmed(facets: Sequence[str]) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": "urn:waybill:facet:trimmed:1-0-0", "datasetFacets": list(facets)}
