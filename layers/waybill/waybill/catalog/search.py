"""Finding assets. Indexes give ids in their order; what they cannot decide is looked up in the assets themselves."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from waybill.catalog.filters import Kind
from waybill.catalog.paging import LARGEST_ANSWER, Page, token_of
from waybill.catalog.views import asset_view
from waybill.clock import utc_now
from waybill.errors import InvalidRequest
from waybill.store.index import GLOBAL, text_of
from waybill.store.sorted_ids import AllOf, AnyOf, FixedIds, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from waybill.catalog.caller import Caller
    from waybill.catalog.filters import Condition
    from waybill.catalog.paging import Paging
    from waybill.store.catalog import AssetStore, StoredAsset
    from waybill.store.sorted_ids import Ids

FIELDS = {
    "id": Kind.TEXT,
    "namespace": Kind.TEXT,
    "type": Kind.TEXT,
    "displayName": Kind.TEXT,
    "metadata": Kind.MAP,
    "created": Kind.TIME,
    "updated": Kind.TIME,
    "locked": Kind.FLAG,
    "q": Kind.WORDS,
}
"""What assets can be filtered by. `namespace` is null for Global assets; `q` looks into id, name and description."""

SORTABLE = ("id", "namespace", "type", "displayName", "created", "updated")
OWN_ORDER = "id:asc"

_CHUNK = 100
_MOST_LOOKED_AT = 5_000
"""Assets that one page of a walk looks at; a page may so hold fewer results than asked for, and a token."""


class AssetSearch:
    """Finds the assets that a caller may see."""

    def __init__(self, assets: AssetStore, caller: Caller, clock: Callable[[], datetime] = utc_now) -> None:
        self._assets = assets
        self._caller = caller
        self._clock = clock

    def page(self, conditions: Sequence[Condition], paging: Paging) -> Page:
        """Return one page.

        Raises:
            InvalidRequest: the assets of a page would not fit an answer.
        """
        return self._numbered(conditions, paging) if paging.by_number else self._walked(conditions, paging)

    def matching(self, conditions: Sequence[Condition], *, deleted: bool = False) -> Iterator[StoredAsset]:
        """Go through the assets that pass, in the order of their ids; with those deleted as far as filters name ids."""
        for _, stored in self._looked_at(conditions, "", _CHUNK, deleted=deleted):
            if stored is not None:
                yield stored

    def _walked(self, conditions: Sequence[Condition], paging: Paging) -> Page:
        found: list[dict[str, Any]] = []
        room = LARGEST_ANSWER
        looked_at = self._looked_at(conditions, paging.after, min(paging.size, _CHUNK))
        for number, (asset_id, stored) in enumerate(looked_at, 1):
            if stored is not None and stored.asset is not None:
                found.append(asset_view(stored, self._clock()))
                room -= stored.size
            if len(found) == paging.size or number == _MOST_LOOKED_AT or room < 0:
                return self._unless_last(conditions, found, asset_id, paging.seen + len(found))
        return Page(found, paging.seen + len(found))

    def _unless_last(self, conditions: Sequence[Condition], found: list[dict[str, Any]], last: str, seen: int) -> Page:
        """Return a page with a token, or without one where no id comes after it."""
        if next(walk(self._ids(conditions), last), None) is None:
            return Page(found, seen)
        return Page(found, None, token_of(last, seen))

    def _numbered(self, conditions: Sequence[Condition], paging: Paging) -> Page:
        if paging.sort or not self._decided_by_keys(conditions):
            keys = [
                (_sort_key(getattr(stored.asset, _ATTRIBUTES.get(paging.sort, "id"))), stored.id)
                for stored in self.matching(conditions)
            ]
            ids = [asset_id for _, asset_id in sorted(keys, reverse=paging.descending)]
        else:
            ids = list(walk(self._ids(conditions)))
        wanted = ids[paging.slice]
        stored = self._assets.load_many(wanted)
        if sum(one.size for one in stored.values()) > LARGEST_ANSWER:
            raise InvalidRequest([f"size: {paging.size} of these assets do not fit an answer; ask for fewer"])
        now = self._clock()
        results = [asset_view(stored[asset_id], now) for asset_id in wanted if asset_id in stored]
        return Page(results, len(ids))

    def _looked_at(
        self, conditions: Sequence[Condition], after: str, chunk: int, *, deleted: bool = False
    ) -> Iterator[tuple[str, StoredAsset | None]]:
        """Yield every id that the indexes give, with its asset where that passes."""
        ids = walk(self._ids(conditions), after)
        while part := list(islice(ids, chunk)):
            stored = self._assets.load_many(part)
            self._caller.prepare(one.asset.namespace for one in stored.values() if one.asset)
            for asset_id in part:
                one = stored.get(asset_id)
                yield asset_id, one if one is not None and self._passes(one, conditions, deleted=deleted) else None
            chunk = _CHUNK

    def _passes(self, stored: StoredAsset, conditions: Sequence[Condition], *, deleted: bool) -> bool:
        asset = stored.asset
        if asset is None or (asset.deleted and not deleted) or not self._caller.reads(asset.namespace):
            return False
        return all(condition.holds(self._value(stored, condition)) for condition in conditions)

    def _value(self, stored: StoredAsset, condition: Condition) -> Any:
        asset = stored.asset
        if asset is None:
            return None
        if condition.field == "metadata":
            return text_of(asset.metadata.get(condition.key))
        if condition.field == "locked":
            return stored.lock is not None and stored.lock.locked_until > self._clock()
        if condition.field == "q":
            texts = (asset.id, asset.display_name, asset.description)
            return [text.casefold() for text in texts if text is not None]
        return getattr(asset, _ATTRIBUTES[condition.field])

    def _decided_by_keys(self, conditions: Sequence[Condition]) -> bool:
        """Whether the rows of the namespaces alone tell what passes."""
        return all(condition.field == "namespace" for condition in conditions)

    def _ids(self, conditions: Sequence[Condition]) -> Ids:
        """Return ids among which are all that pass, from as few rows as the indexes allow."""
        index = self._assets.index
        parts: list[Ids] = []
        for condition in conditions:
            texts = condition.texts
            if condition.field == "id" and texts is not None:
                parts.append(FixedIds(texts))
            elif condition.field == "metadata" and texts is not None:
                parts.append(AnyOf([index.with_metadata(condition.key, text) for text in dict.fromkeys(texts)]))
            elif condition.field == "locked" and condition.wanted is True:
                parts.append(index.locked())
        if not parts or any(c.field == "namespace" and c.texts is not None for c in conditions):
            parts.append(self._in_namespaces(conditions))
        return parts[0] if len(parts) == 1 else AllOf(parts)

    def _in_namespaces(self, conditions: Sequence[Condition]) -> Ids:
        wanted = [condition for condition in conditions if condition.field == "namespace"]
        named = next((condition.texts for condition in wanted if condition.texts is not None), None)
        names = self._assets.index.namespaces() if named is None else list(dict.fromkeys(named))
        namespaces = [None if name == GLOBAL else name for name in names if named is None or name not in ("", GLOBAL)]
        fitting = [name for name in namespaces if all(condition.holds(name) for condition in wanted)]
        self._caller.prepare(fitting)
        readable = [name for name in fitting if self._caller.reads(name)]
        return AnyOf([self._assets.index.in_namespace(name) for name in readable])


_ATTRIBUTES = {name: name for name in SORTABLE} | {"displayName": "display_name"}


def _sort_key(value: Any) -> tuple[bool, Any]:
    """Sort what is missing after everything else."""
    return value is None, value
