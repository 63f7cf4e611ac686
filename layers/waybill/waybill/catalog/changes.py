"""Changing assets by hand: create, update, delete, purge. What is refused leaves the asset as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waybill.clock import utc_now
from waybill.errors import AssetExists, AssetNotFound, AssetRefused, InvalidRequest
from waybill.model.asset import merged
from waybill.threads import side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime, timedelta

    from waybill.catalog.caller import Caller
    from waybill.catalog.documents import AssetUpdate
    from waybill.model.asset import Asset, DeclaredAsset
    from waybill.store.catalog import AssetStore, StoredAsset


class AssetChanger:
    """Changes assets on behalf of a caller.

    Args:
        assets: the assets.
        caller: who changes them.
        keep: how long the id of a purged asset is kept: as long as the log may name it.
        clock: tells the present.
    """

    def __init__(
        self, assets: AssetStore, caller: Caller, keep: timedelta, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._assets = assets
        self._caller = caller
        self._keep = keep
        self._clock = clock

    def create(self, declared: DeclaredAsset) -> Asset:
        """Create an asset, or bring a deleted one back to life.

        Raises:
            AssetExists: the id is taken.
            NamespaceForbidden, AssetLocked, AssetRefused: the write is refused.
        """

        def change(asset: Asset | None) -> Asset:
            if asset is not None and not asset.deleted:
                raise AssetExists(f"there is an asset {asset.id} already; change it with PUT /assets/{asset.id}")
            self._caller.check_writes(asset.namespace if asset else None, declared.namespace)
            return merged(asset, declared, self._clock())

        return self._write(declared.id, self._assets.load(declared.id), change)

    def update(self, asset_id: str, declared: AssetUpdate) -> Asset:
        """Change an asset by the rule of outputs: what is named wins, what is not stays.

        Alone among the ways to write, this one takes a namespace of null: it makes the asset Global.

        Raises:
            InvalidRequest: the change names another id.
            AssetNotFound: there is no such asset, or the caller may not see it.
            NamespaceForbidden, AssetLocked, AssetRefused: the write is refused.
        """
        if declared.id not in ("", asset_id):
            raise InvalidRequest([f"id: must be that of the path, {asset_id}; an asset keeps its id"])
        to_global = "namespace" in declared.model_fields_set and declared.namespace is None

        def change(asset: Asset | None) -> Asset:
            if asset is None:
                raise AssetNotFound(f"there is no asset {asset_id}")
            self._caller.check_writes(asset.namespace, declared.namespace)
            after = merged(asset, declared, self._clock())
            return after.model_copy(update={"namespace": None}) if to_global else after

        return self._write(asset_id, self._seen(asset_id), change)

    def delete(self, asset_id: str) -> None:
        """Mark an asset as deleted.

        Raises:
            AssetNotFound: there is no such asset, or the caller may not see it.
            NamespaceForbidden, AssetLocked: the deletion is refused.
        """
        self._write(asset_id, self._seen(asset_id), self._deleted)

    def delete_all(self, asset_ids: Sequence[str]) -> int:
        """Mark assets as deleted, all or none; returns how many.

        Raises:
            InvalidRequest: one line for each id that is none of an asset.
            NamespaceForbidden, AssetLocked: the deletion of one is refused.
        """
        stored = self._assets.load_many(asset_ids)
        self._caller.prepare(one.asset.namespace for one in stored.values() if one.asset)
        faults = [
            f"[{position}]: there is no asset {asset_id}"
            for position, asset_id in enumerate(asset_ids)
            if not self._is_visible(stored.get(asset_id))
        ]
        if faults:
            raise InvalidRequest(faults)
        for one in stored.values():
            self._caller.check_writes(one.asset.namespace if one.asset else None)
            self._assets.check_unlocked(one, self._caller.writer)
        side_by_side(lambda one: self._write(one.id, one, self._deleted), stored.values())
        return len(stored)

    def delete_found(self, found: Iterable[StoredAsset], *, purge: bool) -> tuple[int, list[dict[str, str]]]:
        """Delete or purge assets; one that is refused does not stop the others.

        Returns:
            How many are gone, and `{id, reason}` of each that was refused.
        """
        results = side_by_side(lambda stored: self._gone(stored, purge=purge), list(found))
        failed = [{"id": asset_id, "reason": reason} for asset_id, reason in results if reason]
        return len(results) - len(failed), failed

    def _gone(self, stored: StoredAsset, *, purge: bool) -> tuple[str, str]:
        try:
            if not purge:
                self._write(stored.id, stored, self._deleted)
                return stored.id, ""
            self._caller.check_writes(stored.asset.namespace if stored.asset else None)
            if self._assets.purge(stored, self._caller.writer, self._keep):
                return stored.id, ""
        except AssetRefused as refusal:
            return stored.id, str(refusal)
        return stored.id, f"{stored.id} was changed meanwhile; ask again"

    def _deleted(self, asset: Asset | None) -> Asset:
        if asset is None or asset.deleted:
            raise AssetNotFound("there is no such asset")
        self._caller.check_writes(asset.namespace)
        return asset.model_copy(update={"deleted": True, "updated": self._clock()})

    def _write(self, asset_id: str, stored: StoredAsset | None, change: Callable[[Asset | None], Asset]) -> Asset:
        written = self._assets.write(asset_id, stored, change, self._caller.writer)
        if written is None:
            raise AssetNotFound(f"there is no asset {asset_id}")
        return written.asset

    def _seen(self, asset_id: str) -> StoredAsset:
        """Return what is stored, deleted or not, as far as the caller may see it."""
        stored = self._assets.load(asset_id)
        if stored is None or stored.asset is None or not self._caller.reads(stored.asset.namespace):
            raise AssetNotFound(f"there is no asset {asset_id}")
        return stored

    def _is_visible(self, stored: StoredAsset | None) -> bool:
        asset = stored.asset if stored else None
        return asset is not None and not asset.deleted and self._caller.reads(asset.namespace)
