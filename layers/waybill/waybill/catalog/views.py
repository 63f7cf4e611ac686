"""What callers of the API see of what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from waybill.model.lock import Lock
    from waybill.store.catalog import StoredAsset


def asset_view(stored: StoredAsset, now: datetime) -> dict[str, Any]:
    """Return an asset as JSON, with its lock while that holds."""
    if stored.asset is None:
        raise ValueError(f"{stored.id} was purged")
    view: dict[str, Any] = stored.asset.model_dump(mode="json", by_alias=True, exclude_none=True)
    if stored.lock is not None and stored.lock.locked_until > now:
        view["lock"] = lock_view(stored.lock)
    return view


def lock_view(lock: Lock) -> dict[str, Any]:
    """Return a lock as JSON."""
    owner = "EXECUTION" if lock.execution_id else "USER"
    return lock.model_dump(mode="json", by_alias=True, exclude_none=True) | {"ownerType": owner}
