"""The routes of assets."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query

from waybill.catalog.documents import AssetResults, AssetUpdate, AssetView, Deleted, GraphView, LockRequest, LockView
from waybill.catalog.filters import named_conditions
from waybill.catalog.graph import LineageGraph
from waybill.catalog.openapi import LISTED, answers
from waybill.catalog.router import request, router
from waybill.catalog.search import FIELDS, OWN_ORDER, SORTABLE, AssetSearch
from waybill.catalog.views import asset_view, lock_view
from waybill.clock import utc_now
from waybill.errors import InvalidRequest
from waybill.model.asset import DeclaredAsset  # noqa: TC001 - Powertools reads the annotations
from waybill.model.lock import LONGEST_LOCK, Lock

Id = Annotated[str, Path(description="The id of the asset.")]


@router.get("/assets", responses=answers(AssetResults, 400))
def assets_function() -> dict[str, Any]:
    """Answer `assets(id, type, namespace, metadata)`: what each parameter says must be so, exactly."""
    asked = request()
    paging = asked.paging(SORTABLE, OWN_ORDER)
    return (
        AssetSearch(asked.services.assets, asked.caller).page(named_conditions(asked.pairs, LISTED), paging).as_json()
    )


@router.post("/assets", responses=answers(AssetView, 400, 403, 409, 413, 423))
def create_asset(asset: Annotated[DeclaredAsset, Body()]) -> dict[str, Any]:
    """Create an asset. It records no lineage, and an id that is taken is a conflict."""
    return _view(request().changer.create(asset).id)


@router.get("/assets/search", responses=answers(AssetResults, 400))
def search_assets() -> dict[str, Any]:
    """Search assets by filters, in the order of their ids unless `sort` says otherwise."""
    asked = request()
    conditions, paging = asked.conditions(FIELDS, LISTED), asked.paging(SORTABLE, OWN_ORDER)
    return AssetSearch(asked.services.assets, asked.caller).page(conditions, paging).as_json()


@router.delete("/assets/by-ids", responses=answers(Deleted, 400, 403, 423))
def delete_assets_by_ids(ids: Annotated[list[str], Body()]) -> dict[str, Any]:
    """Mark assets as deleted, all of them or none."""
    return _deleted(request().changer.delete_all(ids))


@router.delete("/assets/by-query", responses=answers(Deleted, 400))
def delete_assets_by_query(*, purge: Annotated[bool, Query()] = False) -> dict[str, Any]:
    """Mark the assets that pass the filters as deleted; with `purge` remove them but for their ids.

    At least one filter must be given. What is locked, or in a namespace that the caller may not write in, stays and is
    listed.
    """
    asked = request()
    conditions = asked.conditions(FIELDS, ("purge",))
    if not conditions:
        raise InvalidRequest(["filters[field][OPERATOR]: at least one is required; nothing was deleted"])
    search = AssetSearch(asked.services.assets, asked.caller)
    return _deleted(*asked.changer.delete_found(search.matching(conditions, deleted=purge), purge=purge))


@router.get("/assets/<asset_id>", responses=answers(AssetView, 400, 404))
def get_asset(
    asset_id: Id,
    *,
    allow_deleted: Annotated[bool, Query(alias="allowDeleted", description="Also one that was deleted.")] = False,
) -> dict[str, Any]:
    """Return an asset."""
    return asset_view(request().visible(unquote(asset_id), deleted=allow_deleted), utc_now())


@router.put("/assets/<asset_id>", responses=answers(AssetView, 400, 403, 404, 413, 423))
def update_asset(asset_id: Id, asset: Annotated[AssetUpdate, Body()]) -> dict[str, Any]:
    """Change an asset: what is named wins, what is not stays, a metadata value of null removes the key.

    A namespace of null makes the asset Global. Changing a deleted asset revives it.
    """
    return _view(request().changer.update(unquote(asset_id), asset).id)


@router.delete("/assets/<asset_id>", responses=answers(None, 403, 404, 423))
def delete_asset(asset_id: Id) -> Response[str]:
    """Mark an asset as deleted. Its lineage and usages stay."""
    request().changer.delete(unquote(asset_id))
    return Response(204, body="")


@router.get("/assets/<asset_id>/dependencies", responses=answers(GraphView, 400, 404))
def asset_dependencies(
    asset_id: Id,
    *,
    destination_only: Annotated[
        bool, Query(alias="destinationOnly", description="Only what was made of the asset.")
    ] = False,
    expand_all: Annotated[bool, Query(alias="expandAll", description="All the way, not one step.")] = False,
) -> dict[str, Any]:
    """Return the graph of lineage around an asset.

    Edges: USED_BY from an asset to one that was made of it, UPSERT from a flow to an asset that it wrote, and USED_BY
    from an asset to a flow that wrote nothing with it. `complete` is false when the graph was too large for one answer.
    """
    asked = request()
    stored = asked.visible(unquote(asset_id))
    graph = LineageGraph(asked.services.assets, asked.services.usages, asked.caller)
    return graph.around(stored.id, destination_only=destination_only, expand_all=expand_all).as_json()


@router.post("/assets/<asset_id>/lock", responses=answers(LockView, 400, 403, 404, 423))
def lock_asset(asset_id: Id, lock: Annotated[LockRequest, Body()]) -> dict[str, Any]:
    """Hold an asset, so that nobody else writes it. Its owner may ask again, and so extend the lock."""
    asked = request()
    if not 0 < lock.ttl.total_seconds() <= LONGEST_LOCK.total_seconds():
        raise InvalidRequest([f"ttl: must be longer than nothing and at most P{LONGEST_LOCK.days}D"])
    stored, now = asked.visible(unquote(asset_id)), utc_now()
    asked.caller.check_writes(stored.asset.namespace if stored.asset else None)
    taken = Lock(
        locked_until=now + lock.ttl,
        acquired_at=now,
        username=asked.caller.arn,
        execution_id=lock.execution_id,
        flow_id=lock.flow_id,
        flow_namespace=lock.flow_namespace,
    )
    asked.services.locks.acquire(stored.id, taken)
    return lock_view(taken)


@router.delete("/assets/<asset_id>/lock", responses=answers(None, 403, 404))
def unlock_asset(
    asset_id: Id,
    execution_id: Annotated[
        str | None, Query(alias="executionId", description="Only if this execution holds it.")
    ] = None,
) -> Response[str]:
    """Give a lock back: that of an execution, or, without one, whoever holds it. Safe to ask for at any time."""
    asked = request()
    stored = asked.visible(unquote(asset_id))
    asked.caller.check_writes(stored.asset.namespace if stored.asset else None)
    asked.services.locks.release(stored.id, execution_id)
    return Response(204, body="")


def _view(asset_id: str) -> dict[str, Any]:
    """Return an asset that was written just now, with its lock."""
    stored = request().services.assets.load(asset_id)
    return asset_view(stored, utc_now()) if stored and stored.asset else {}


def _deleted(count: int, failed: list[dict[str, str]] | None = None) -> dict[str, Any]:
    return {"count": count, "failed": failed or [], "complete": True}
