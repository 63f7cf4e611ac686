"""The assets: one item each, written conditionally on its version, so that two writers lose nothing of each other."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from botocore.exceptions import ClientError

from waybill.clock import to_millis, utc_now
from waybill.errors import AssetLocked, AssetRefused, Conflict
from waybill.model.asset import Asset
from waybill.model.lock import Lock
from waybill.store.batches import get_items
from waybill.store.index import GLOBAL, AssetIndex, terms_of

if TYPE_CHECKING:
    from datetime import datetime, timedelta

_LARGEST_BODY = 380_000
_ATTEMPTS = 25

_UNLOCKED = "(attribute_not_exists(lockedUntil) OR lockedUntil <= :now OR lockOwner = :owner)"


@dataclass(frozen=True, slots=True)
class StoredAsset:
    """What the catalog holds under an id.

    Attributes:
        asset: the asset; None when it was purged and only its id is left.
        writer: the task run that wrote it last; empty for the API.
        size: characters of its body.
    """

    id: str
    version: int
    asset: Asset | None
    lock: Lock | None = None
    writer: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes.

    Attributes:
        owner: the name under which the writer may hold locks.
        run: the task run that writes, so that its second try changes nothing; empty for the API.
    """

    owner: str
    run: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """A write that took place."""

    asset: Asset
    created: bool


Change = Callable[[Asset | None], Asset | None]
"""Makes the new asset of the stored one, either of which may be None: there is none, or nothing is to be changed.

It may be asked again, and may refuse by raising."""


class AssetStore:
    """The assets of the stack."""

    def __init__(self, client: Any, table: str, clock: Callable[[], datetime] = utc_now) -> None:
        self._client = client
        self._table = table
        self._clock = clock
        self.index = AssetIndex(client, table)

    def get_many(self, ids: Iterable[str]) -> dict[str, Asset]:
        """Read assets consistently; those deleted are among them, marked. Of those purged, id and mark are all."""
        return {stored.id: stored.asset or Asset(id=stored.id, deleted=True) for stored in self.load_many(ids).values()}

    def load_many(self, ids: Iterable[str]) -> dict[str, StoredAsset]:
        """Read what the catalog holds under ids, consistently."""
        items = get_items(self._client, self._table, [asset_key(asset_id) for asset_id in dict.fromkeys(ids)])
        return {item["id"]["S"]: stored_of(item) for item in items}

    def load(self, asset_id: str) -> StoredAsset | None:
        """Read what the catalog holds under an id, consistently."""
        answer = self._client.get_item(TableName=self._table, Key=asset_key(asset_id), ConsistentRead=True)
        return stored_of(answer["Item"]) if "Item" in answer else None

    def write(
        self,
        asset_id: str,
        stored: StoredAsset | None,
        change: Change,
        writer: Writer,
        *,
        indexed: bool = False,
    ) -> Written | None:
        """Change an asset, again on what stands there now whenever somebody else was faster.

        Args:
            asset_id: which asset.
            stored: what was read last.
            change: makes the new asset of the one that stands there.
            writer: who writes.
            indexed: whether `index.add_new` was called for the asset, which is new.

        Returns:
            The write, or None when there was nothing to be changed.

        Raises:
            AssetLocked: somebody else holds the lock.
            AssetRefused: the asset is too large for an item, or whatever `change` raises.
            Conflict: others were faster too many times.
        """
        for attempt in range(_ATTEMPTS):
            before = stored.asset if stored else None
            if before is not None and writer.run and stored and stored.writer == writer.run:
                return Written(before, created=before.created == before.updated)
            self.check_unlocked(stored, writer)
            after = change(before)
            if after is None:
                return None
            refusal = self._put(stored, after, writer, self._unindexed(before, after, attempt, indexed=indexed))
            if refusal is None:
                return Written(after, created=before is None)
            stored = stored_of(refusal) if refusal else None
            time.sleep(random.uniform(0, 0.01 * min(attempt, 20)))  # noqa: S311 - jitter is no secret
        raise Conflict(f"{asset_id} was changed by others {_ATTEMPTS} times while it was being written")

    def purge(self, stored: StoredAsset, writer: Writer, keep: timedelta) -> bool:
        """Remove an asset but for its id, which stays as long as events may name it.

        Returns:
            False when the asset has changed since it was read.

        Raises:
            AssetLocked: somebody else holds the lock.
        """
        self.check_unlocked(stored, writer)
        now = self._clock()
        update = (
            "SET version = :next, purged = :true, expires = :expires "
            "REMOVE #body, #namespace, #lock, lockedUntil, lockOwner, writer"
        )
        values = {
            ":true": {"BOOL": True},
            ":expires": {"N": str(int((now + keep).timestamp()))},
            **_condition_values(stored, writer, now),
        }
        names = {"#body": "body", "#namespace": "namespace", "#lock": "lock"}
        if self._update(stored.id, update, f"version = :version AND {_UNLOCKED}", names, values) is not None:
            return False
        self.index.remove(stored.id, terms_of(stored.asset), stored.version + 1)
        return True

    def check_unlocked(self, stored: StoredAsset | None, writer: Writer) -> None:
        """Check that a writer is not kept out; the write itself checks again.

        Raises:
            AssetLocked: somebody else holds the lock.
        """
        if stored and stored.lock and stored.lock.keeps_out(writer.owner, self._clock()):
            raise AssetLocked(stored.lock.reason(stored.id))

    def _unindexed(self, before: Asset | None, after: Asset, attempt: int, *, indexed: bool) -> set[str]:
        """Return the rows of the index that must be put before an asset is written."""
        new = terms_of(after).keys()
        if not indexed:
            return new - terms_of(before).keys()
        # Somebody created the asset first, and `add_new` may have given its rows an older version: all once more.
        return set(new) if attempt else set()

    def _put(
        self, stored: StoredAsset | None, after: Asset, writer: Writer, unindexed: set[str]
    ) -> dict[str, Any] | None:
        """Write an asset with its rows of the index; return what stood in the way, None when nothing did."""
        body = after.to_json()
        if len(body.encode()) > _LARGEST_BODY:
            raise AssetRefused(f"{after.id} would be larger than {_LARGEST_BODY // 1000} KB; keep its metadata short")
        version = stored.version + 1 if stored else 1
        self.index.add(after.id, unindexed, version)
        refusal = self._update(after.id, *self._update_of(stored, after, body, writer))
        if refusal is None:
            old = terms_of(stored.asset if stored else None).keys()
            self.index.remove(after.id, old - terms_of(after).keys(), version)
        return refusal

    def _update_of(
        self, stored: StoredAsset | None, after: Asset, body: str, writer: Writer
    ) -> tuple[str, str, dict[str, str], dict[str, Any]]:
        values = {
            ":id": {"S": after.id},
            ":body": {"S": body},
            ":writer": {"S": writer.run},
            **_condition_values(stored, writer, self._clock()),
        }
        sets, removed = "SET id = :id, version = :next, #body = :body, writer = :writer", "REMOVE purged, expires"
        if after.deleted:
            removed += ", #namespace"
        else:
            namespace = after.namespace or GLOBAL
            self.index.add_namespace(namespace)
            sets += ", #namespace = :namespace"
            values[":namespace"] = {"S": namespace}
        condition = f"version = :version AND {_UNLOCKED}" if stored else "attribute_not_exists(version)"
        return f"{sets} {removed}", condition, {"#body": "body", "#namespace": "namespace"}, values

    def _update(
        self, asset_id: str, update: str, condition: str, names: dict[str, str], values: dict[str, Any]
    ) -> dict[str, Any] | None:
        try:
            self._client.update_item(
                TableName=self._table,
                Key=asset_key(asset_id),
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            response: dict[str, Any] = dict(error.response)
            item: dict[str, Any] = response.get("Item", {})
            return item
        return None


def asset_key(asset_id: str) -> dict[str, Any]:
    """Return the key of an asset's item."""
    return {"pk": {"S": f"asset#{asset_id}"}, "sk": {"S": "asset"}}


def stored_of(item: dict[str, Any]) -> StoredAsset:
    """Read an asset's item. pydantic's own reader of JSON takes more time, and no more than 200 levels."""
    return StoredAsset(
        id=item["id"]["S"],
        version=int(item["version"]["N"]),
        asset=Asset.model_validate(orjson.loads(item["body"]["S"])) if "body" in item else None,
        lock=Lock.model_validate_json(item["lock"]["S"]) if "lock" in item else None,
        writer=item["writer"]["S"] if "writer" in item else "",
        size=len(item["body"]["S"]) if "body" in item else 0,
    )


def _condition_values(stored: StoredAsset | None, writer: Writer, now: datetime) -> dict[str, Any]:
    if stored is None:
        return {":next": {"N": "1"}}
    return {
        ":version": {"N": str(stored.version)},
        ":next": {"N": str(stored.version + 1)},
        ":now": {"N": str(to_millis(now))},
        ":owner": {"S": writer.owner},
    }
