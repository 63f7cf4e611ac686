"""The routes of usages and lineage events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from waybill.catalog.documents import Deleted, EventResults, UsageResults
from waybill.catalog.openapi import LISTED, answers
from waybill.catalog.router import request, router
from waybill.catalog.run_search import RunSearch
from waybill.catalog.runs import EVENT_FIELDS, OWN_ORDER, SORTABLE, USAGE_FIELDS
from waybill.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from waybill.catalog.filters import Kind
    from waybill.catalog.run_search import Entries


@router.get("/assets/usages/search", responses=answers(UsageResults, 400))
def search_usages() -> dict[str, Any]:
    """Search who read and wrote which asset in which run, newest first."""
    return _page(request().services.runs.usages, USAGE_FIELDS)


@router.delete("/assets/usages/by-query", responses=answers(Deleted, 400, 403))
def delete_usages() -> dict[str, Any]:
    """Remove usages for good. `complete` is false when time ran out; ask again then."""
    services = request().services
    return _delete(services.runs.usages, USAGE_FIELDS, services.usages.delete_all)


@router.get("/assets/lineage-events/search", responses=answers(EventResults, 400))
def search_lineage_events() -> dict[str, Any]:
    """Search lineage events, newest first."""
    return _page(request().services.runs.events, EVENT_FIELDS)


@router.delete("/assets/lineage-events/by-query", responses=answers(Deleted, 400, 403))
def delete_lineage_events() -> dict[str, Any]:
    """Remove lineage events for good, also those that have not been shipped. `complete` as for usages."""
    services = request().services
    return _delete(services.runs.events, EVENT_FIELDS, services.reader.delete)


def _page(entries: Entries, fields: Mapping[str, Kind]) -> dict[str, Any]:
    asked = request()
    conditions, paging = asked.conditions(fields, LISTED), asked.paging(SORTABLE, OWN_ORDER)
    return RunSearch(entries, asked.caller).page(asked.only_visible(conditions), paging).as_json()


def _delete(entries: Entries, fields: Mapping[str, Kind], remove: Callable[[Sequence[Any]], None]) -> dict[str, Any]:
    asked = request()
    conditions = asked.conditions(fields)
    if not conditions:
        raise InvalidRequest(["filters[field][OPERATOR]: at least one is required; nothing was deleted"])
    count, complete = RunSearch(entries, asked.caller).delete(asked.only_visible(conditions), remove)
    return {"count": count, "failed": [], "complete": complete}
