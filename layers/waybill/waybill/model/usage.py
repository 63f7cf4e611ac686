"""A usage: one task run read or wrote one asset (`kestra.md` 1.6)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import orjson

from waybill.clock import from_millis, iso
from waybill.ids import uuid7_millis

if TYPE_CHECKING:
    from collections.abc import Iterable

    from waybill.model.event import LineageEvent

Direction = Literal["R", "W"]
NAMES: dict[Direction, str] = {"R": "READ", "W": "WRITE"}

_LONGEST_JOB = 640
_MOST_NEIGHBOURS = 256
"""Bytes of ids that a row names of the event's other side. Rows never grow with the number of assets of a run."""


@dataclass(frozen=True, slots=True)
class Usage:
    """One asset in one lineage event.

    Attributes:
        direction: R for read, W for written.
        job: `<namespace>/<flowId>.<taskId>`, shortened where a key could not hold it.
        shape: what the event read and wrote, as a hash: events of one job and shape have the same edges.
        details: what else the row says of the run, in camelCase.
        neighbours: the assets on the other side of the event; None when they are too many to be named in each row.
        change: `created` or `updated`, once the asset has been written; empty otherwise.
    """

    asset_id: str
    direction: Direction
    job: str
    shape: str
    event_id: str
    details: dict[str, Any]
    neighbours: tuple[str, ...] | None = None
    change: str = ""

    @property
    def row(self) -> str:
        """The sort key of the row, below the asset."""
        return f"use#{self.direction}#{self.job}#{self.shape}#{self.event_id}"

    @property
    def log_bucket(self) -> str:
        """The bucket of the event in the log."""
        return str(self.details["log"]).split("/")[0]

    @property
    def log_key(self) -> str:
        """The sort key of the event in the log: greater ones are newer."""
        return str(self.details["log"]).split("/")[1]

    def as_json(self) -> dict[str, Any]:
        """Return the usage as users see it."""
        shown = {name: value for name, value in self.details.items() if name != "log"}
        return {"assetId": self.asset_id, "direction": NAMES[self.direction], **shown, "eventId": self.event_id}

    def to_body(self) -> str:
        """Write what the keys of the row do not say."""
        document = self.details | ({"change": self.change} if self.change else {})
        if self.neighbours is not None:
            document["with"] = self.neighbours
        return orjson.dumps(document).decode()


def usages_of(event: LineageEvent, key: tuple[str, str]) -> list[Usage]:
    """Return the usages of a lineage event: as many as it has inputs and outputs.

    Args:
        event: the event.
        key: its bucket and id in the log; the id tells the recording time.
    """
    job, shape = job_key(event.job), shape_of(event)
    details = {
        "namespace": event.namespace,
        "flowId": event.flow_id,
        "flowRevision": event.flow_revision,
        "executionId": event.execution_id,
        "taskId": event.task_id,
        "taskRunId": event.task_run_id,
        "created": iso(from_millis(uuid7_millis(key[1]))),
        "log": "/".join(key),
    }
    details = {name: value for name, value in details.items() if value is not None}
    read = tuple(dict.fromkeys(ref.id for ref in event.inputs))
    written = tuple(dict.fromkeys(ref.id for ref in event.outputs))
    sides: tuple[tuple[Direction, tuple[str, ...], tuple[str, ...]], ...] = (("R", read, written), ("W", written, read))
    return [
        Usage(asset_id, direction, job, shape, event.id, details, _if_few(others))
        for direction, ids, others in sides
        for asset_id in ids
    ]


def usage_from(asset_id: str, row: str, body: str) -> Usage:
    """Read a usage from its row."""
    head, shape, event_id = row.rsplit("#", 2)
    _, direction, job = head.split("#", 2)
    details = orjson.loads(body)
    change, neighbours = details.pop("change", ""), details.pop("with", None)
    return Usage(
        asset_id,
        "R" if direction == "R" else "W",
        job,
        shape,
        event_id,
        details,
        None if neighbours is None else tuple(neighbours),
        change,
    )


def _if_few(ids: tuple[str, ...]) -> tuple[str, ...] | None:
    return ids if sum(map(len, ids)) <= _MOST_NEIGHBOURS else None


def job_key(job: str) -> str:
    """Return the name of a job as keys hold it."""
    encoded = job.encode()
    if len(encoded) <= _LONGEST_JOB:
        return job
    return f"{encoded[:512].decode(errors='ignore')}~{hashlib.sha256(encoded).hexdigest()[:32]}"


def shape_of(event: LineageEvent) -> str:
    """Return the hash of which assets an event reads and writes."""

    def side(ids: Iterable[str]) -> str:
        return "\x1f".join(sorted(set(ids)))

    text = f"{side(ref.id for ref in event.inputs)}\x1e{side(ref.id for ref in event.outputs)}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
