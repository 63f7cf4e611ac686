"""The bodies of the catalog API that are no records of their own: what callers send, and what they get back."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from waybill.model.asset import EXTERNAL, Asset, DeclaredAsset
from waybill.model.fields import AssetId, Document, Duration, Instant, KeyPart, Namespace, Text
from waybill.model.lock import DEFAULT_LOCK


class AssetUpdate(DeclaredAsset):
    """A change of an asset: what is not named stays; a namespace of null makes it Global."""

    id: AssetId = ""
    type: Text = EXTERNAL


class LockRequest(Document):
    """How long to hold an asset, and for which execution; without one it is held by the caller."""

    ttl: Duration = DEFAULT_LOCK
    execution_id: Text | None = None
    flow_id: KeyPart | None = None
    flow_namespace: Namespace | None = None
    task_run_id: Text | None = None


class LockView(Document):
    """A lock as callers see it."""

    locked_until: Instant
    acquired_at: Instant
    owner_type: Literal["USER", "EXECUTION"]
    username: str
    execution_id: str | None = None
    flow_id: str | None = None
    flow_namespace: str | None = None


class AssetView(Asset):
    """An asset as callers see it, with its lock while that holds."""

    lock: LockView | None = None


class UsageView(Document):
    """One asset that one run read or wrote."""

    asset_id: str
    direction: Literal["READ", "WRITE"]
    namespace: str
    flow_id: str
    flow_revision: int | None = None
    execution_id: str
    task_id: str
    task_run_id: str
    created: Instant
    event_id: str


class Results(Document):
    """A part of a list. `total` is null until it is known; `nextToken` is null after the last part."""

    total: int | None
    next_token: str | None


class AssetResults(Results):
    """Assets."""

    results: list[AssetView]


class UsageResults(Results):
    """Usages, newest first."""

    results: list[UsageView]


class EventResults(Results):
    """Lineage events, newest first."""

    results: list[dict[str, Any]]


class Deleted(Document):
    """How many were deleted, what was refused, and whether time ran out before the end."""

    count: int
    failed: list[dict[str, str]] = Field(default_factory=list)
    complete: bool = True


class GraphView(Document):
    """A graph of lineage."""

    nodes: list[dict[str, Any]]
    edges: list[dict[str, str]]
    upstream: list[str]
    downstream: list[str]
    complete: bool


class Problem(Document):
    """Why a request was not carried out (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    faults: list[str] | None = None
