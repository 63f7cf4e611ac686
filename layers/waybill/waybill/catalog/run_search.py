"""Pages of lineage events and usages, and deleting by the same filters."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import orjson

from waybill.catalog.paging import LARGEST_ANSWER, Page, token_of
from waybill.catalog.runs import value_of
from waybill.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from waybill.catalog.caller import Caller
    from waybill.catalog.filters import Condition
    from waybill.catalog.paging import Paging
    from waybill.catalog.runs import Entry

    Entries = Callable[[Sequence[Condition], str], Iterator[Entry]]


class RunSearch:
    """Finds what runs did, as far as a caller may see it: runs of flows in namespaces that it may read.

    Args:
        entries: goes through what there is, newest first.
        caller: who asks.
        seconds: after which a walk gives what it has, and a token.
    """

    def __init__(
        self, entries: Entries, caller: Caller, seconds: float = 15.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._entries = entries
        self._caller = caller
        self._clock = clock
        self._end = clock() + seconds

    def page(self, conditions: Sequence[Condition], paging: Paging) -> Page:
        """Return one page.

        Raises:
            InvalidRequest: a page by number was asked for, and there is too much to count.
        """
        return self._numbered(conditions, paging) if paging.by_number else self._walked(conditions, paging)

    def delete(self, conditions: Sequence[Condition], remove: Callable[[Sequence[Any]], None]) -> tuple[int, bool]:
        """Delete what passes.

        Returns:
            How many were deleted, and whether nothing is left.

        Raises:
            NamespaceForbidden: the caller may not write in a flow's namespace; nothing more was deleted.
        """
        count, doomed = 0, []
        for entry in self._entries(conditions, ""):
            if self._is_late:
                break
            if self._passes(entry, conditions) and entry.view:
                self._caller.check_writes(entry.view["namespace"])
                doomed.append(entry.row)
            if len(doomed) == _DELETED_AT_ONCE:
                remove(doomed)
                count, doomed = count + len(doomed), []
        else:
            remove(doomed)
            return count + len(doomed), True
        remove(doomed)
        return count + len(doomed), False

    def _walked(self, conditions: Sequence[Condition], paging: Paging) -> Page:
        found: list[dict[str, Any]] = []
        room = LARGEST_ANSWER
        for entry in self._entries(conditions, paging.after):
            if self._passes(entry, conditions) and entry.view:
                found.append(entry.view)
                room -= len(orjson.dumps(entry.view))
            if len(found) == paging.size or room < 0 or self._is_late:
                return Page(found, None, token_of(entry.key, paging.seen + len(found)))
        return Page(found, paging.seen + len(found))

    def _numbered(self, conditions: Sequence[Condition], paging: Paging) -> Page:
        found: list[dict[str, Any]] = []
        for entry in self._entries(conditions, ""):
            if self._is_late:
                raise InvalidRequest(["page: there is too much to count; narrow `created`, or walk by nextToken"])
            if self._passes(entry, conditions) and entry.view:
                found.append(entry.view)
        if paging.sort and not paging.descending:
            found.reverse()
        return Page(found[paging.slice], len(found))

    def _passes(self, entry: Entry, conditions: Sequence[Condition]) -> bool:
        if entry.view is None or not self._caller.reads(entry.view["namespace"]):
            return False
        return all(condition.holds(value_of(entry, condition)) for condition in conditions)

    @property
    def _is_late(self) -> bool:
        return self._clock() > self._end


_DELETED_AT_ONCE = 100
