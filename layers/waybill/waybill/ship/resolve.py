"""Puts the current assets into events: what is deleted leaves, what is not written yet stands for itself (DESIGN 6)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from waybill.export.ports import Delivery
from waybill.model.asset import EXTERNAL, Asset, AssetRef
from waybill.model.event import LineageEvent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from waybill.ship.filters import Filters
    from waybill.store.log_reader import LogItem

MOST_CACHED = 5_000
_UNFINISHED = frozenset(("FAILED", "KILLED", "CANCELLED"))


class Assets(Protocol):
    """Where the current assets are."""

    def get_many(self, ids: Collection[str]) -> dict[str, Asset]:
        """Return the assets that the catalog knows of the ids, deleted ones included."""
        ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """A log item made ready: a delivery, or a fault that tells why it cannot be read, or neither when filtered out."""

    key: str
    delivery: Delivery | None = None
    fault: str | None = None


class Resolver:
    """Makes deliveries of log items; keeps the assets it has read for the time of a run, within bounds."""

    def __init__(self, assets: Assets, filters: Filters) -> None:
        self._assets = assets
        self._filters = filters
        self._cache: dict[str, Asset | None] = {}
        self._stand_ins: dict[tuple[AssetRef, str | None], Asset] = {}

    async def prepare(self, items: Sequence[LogItem]) -> list[Prepared]:
        """Make the items of a page ready, in their order; the catalog is asked in a thread."""
        events = [item.event() for item in items]
        unknown = self._unknown(events)
        if unknown:
            self._keep(unknown, await asyncio.to_thread(self._assets.get_many, unknown))
        return [self._prepared(item, event) for item, event in zip(items, events, strict=True)]

    def prepare_now(self, items: Sequence[LogItem]) -> list[Prepared]:
        """Make the items of a page ready, in their order."""
        events = [item.event() for item in items]
        unknown = self._unknown(events)
        if unknown:
            self._keep(unknown, self._assets.get_many(unknown))
        return [self._prepared(item, event) for item, event in zip(items, events, strict=True)]

    def _unknown(self, events: Iterable[LineageEvent | str]) -> set[str]:
        """Return the ids of a page's assets that were not read yet in this run."""
        self._forget_some()
        cache, takes = self._cache, self._filters.takes
        return {
            ref.id
            for event in events
            if isinstance(event, LineageEvent) and takes(event)
            for ref in (*event.inputs, *event.outputs)
            if ref.id not in cache
        }

    def _keep(self, ids: set[str], found: dict[str, Asset]) -> None:
        """Keep what was read; what another shard's page has read meanwhile stays the object that it is."""
        for id_ in ids:
            self._cache.setdefault(id_, found.get(id_))

    def _forget_some(self) -> None:
        if len(self._cache) > MOST_CACHED:
            for old in list(self._cache)[: MOST_CACHED // 2]:
                del self._cache[old]

    def _prepared(self, item: LogItem, event: LineageEvent | str) -> Prepared:
        if isinstance(event, str):
            return Prepared(item.key, fault=event)
        if not self._filters.takes(event):
            return Prepared(item.key)
        finished = event.state not in _UNFINISHED
        inputs = self._current(event.inputs, event.namespace, keep_unknown=True)
        outputs = self._current(event.outputs, None, keep_unknown=finished)
        if self._filters.on_assets and not inputs and not outputs:
            return Prepared(item.key)
        return Prepared(item.key, Delivery(item.key, event, inputs, outputs))

    def _current(self, refs: Sequence[AssetRef], namespace: str | None, *, keep_unknown: bool) -> tuple[Asset, ...]:
        current: dict[str, Asset] = {}
        for ref in refs:
            asset = self._cache.get(ref.id)
            if asset is None:
                if not keep_unknown:
                    continue
                asset = self._stand_in(ref, namespace)
            if not asset.deleted and (not self._filters.on_assets or self._filters.keeps(asset)):
                current[ref.id] = asset
        return tuple(current.values())

    def _stand_in(self, ref: AssetRef, namespace: str | None) -> Asset:
        """Return what stands for an asset that is not written yet: the event's own words."""
        asset = self._stand_ins.get((ref, namespace))
        if asset is None:
            if len(self._stand_ins) > MOST_CACHED:
                self._stand_ins.clear()
            asset = Asset(id=ref.id, type=ref.type or EXTERNAL, namespace=ref.namespace or namespace)
            self._stand_ins[ref, namespace] = asset
        return asset
