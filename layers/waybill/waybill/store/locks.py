"""Locks, on the items of the assets that they hold, so that a write and a lock cannot pass each other by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from waybill.clock import to_millis, utc_now
from waybill.errors import AssetLocked, AssetNotFound
from waybill.model.lock import LONGEST_LOCK, execution_owner
from waybill.store.catalog import asset_key, stored_of
from waybill.store.index import LOCKS

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from waybill.model.lock import Lock


class LockStore:
    """The locks of the stack. The index has a row for each; the asset's item tells whether it still holds."""

    def __init__(self, client: Any, table: str, clock: Callable[[], datetime] = utc_now) -> None:
        self._client = client
        self._table = table
        self._clock = clock

    def acquire(self, asset_id: str, lock: Lock) -> None:
        """Take a lock, or extend one of the same owner.

        Raises:
            AssetNotFound: there is no such living asset.
            AssetLocked: somebody else holds the asset.
        """
        until, now = to_millis(lock.locked_until), self._clock()
        # The row outlives every lock that may hold now, so that an attempt that is refused shortens nothing.
        expires = {"N": str(int((now + 2 * LONGEST_LOCK).timestamp()))}
        self._client.put_item(TableName=self._table, Item={**_row(asset_id), "expires": expires})
        refusal = self._update(
            asset_id,
            "SET #lock = :lock, lockedUntil = :until, lockOwner = :owner",
            "attribute_exists(#namespace) AND "
            "(attribute_not_exists(lockedUntil) OR lockedUntil <= :now OR lockOwner = :owner)",
            {"#lock": "lock", "#namespace": "namespace"},
            {
                ":lock": {"S": lock.model_dump_json(by_alias=True, exclude_none=True)},
                ":until": {"N": str(until)},
                ":owner": {"S": lock.owner},
                ":now": {"N": str(to_millis(now))},
            },
        )
        if refusal is None:
            return
        holder = stored_of(refusal).lock if refusal else None
        if holder is None or "namespace" not in refusal:
            raise AssetNotFound(f"there is no asset {asset_id}")
        raise AssetLocked(holder.reason(asset_id))

    def release(self, asset_id: str, execution_id: str | None) -> bool:
        """Give a lock back: that of an execution, or whoever holds it when none is named.

        Returns:
            Whether a lock was removed; that of another owner stays.
        """
        condition = "attribute_exists(lockOwner)"
        values: dict[str, Any] = {}
        if execution_id is not None:
            condition, values = "lockOwner = :owner", {":owner": {"S": execution_owner(execution_id)}}
        update = "REMOVE #lock, lockedUntil, lockOwner"
        return self._update(asset_id, update, condition, {"#lock": "lock"}, values) is None

    def _update(
        self, asset_id: str, update: str, condition: str, names: dict[str, str], values: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Change the item; return what stood in the way, None when nothing did."""
        try:
            self._client.update_item(
                TableName=self._table,
                Key=asset_key(asset_id),
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeNames=names,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **({"ExpressionAttributeValues": values} if values else {}),
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            response: dict[str, Any] = dict(error.response)
            item: dict[str, Any] = response.get("Item", {})
            return item
        return None


def _row(asset_id: str) -> dict[str, Any]:
    return {"pk": {"S": LOCKS}, "sk": {"S": asset_id}}
