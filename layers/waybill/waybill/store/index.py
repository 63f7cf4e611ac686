"""Rows that find assets: by a metadata value, and the namespaces that have any.

A row is put before the asset's write and removed after it, so that an asset is never without its rows; a row may be
left over, so readers look at the asset itself. Rows carry the version of the asset that wanted them: a writer that is
late removes no row of a newer version.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import orjson
from botocore.exceptions import ClientError

from waybill.store.batches import write_items
from waybill.store.skipping import Range
from waybill.store.sorted_ids import SortedIds, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from waybill.model.asset import Asset

GLOBAL = "-"
"""Stands for "no namespace" where a key needs one. No namespace is called so."""

LOCKS = "locks"
"""The partition of the rows that find locked assets."""

_LONGEST_VALUE = 512


def text_of(value: Any) -> str | None:
    """Return a metadata value as filters compare it: text, a number or truth value as JSON, None for anything else."""
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode() if isinstance(value, bool | int | float) else None


def terms_of(asset: Asset | None) -> dict[str, str]:
    """Return the keys of the rows that a living asset has in the index of metadata, with what each stands for."""
    if asset is None or asset.deleted:
        return {}
    texts = ((key, text_of(value)) for key, value in asset.metadata.items())
    return {_term(key, text): key for key, text in texts if text is not None}


def _term(key: str, text: str) -> str:
    term = f"{key}={text}"
    if len(term.encode()) > _LONGEST_VALUE:
        term = hashlib.sha256(term.encode()).hexdigest()
    return f"meta#{term}"


class AssetIndex:
    """The index, in the table of the catalog."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table
        self._known_namespaces: set[str] = set()

    def add(self, asset_id: str, terms: Iterable[str], version: int) -> None:
        """Put the rows that a version of an asset will need."""
        for term in terms:
            self._unless_newer(
                self._client.put_item,
                Item={**_row(term, asset_id), "version": {"N": str(version)}},
                ConditionExpression="attribute_not_exists(pk) OR version < :version",
                ExpressionAttributeValues={":version": {"N": str(version)}},
            )

    def add_new(self, assets: Iterable[Asset]) -> None:
        """Put the rows of assets that are about to be created, in few calls.

        Without conditions: should somebody else create one of them first, its rows must be put again with `add`.
        """
        version = {"version": {"N": "1"}}
        rows = [_row(term, asset.id) | version for asset in assets for term in terms_of(asset)]
        write_items(self._client, self._table, [{"PutRequest": {"Item": row}} for row in rows])

    def remove(self, asset_id: str, terms: Iterable[str], version: int) -> None:
        """Remove the rows that an asset has no more since a version."""
        for term in terms:
            self._unless_newer(
                self._client.delete_item,
                Key=_row(term, asset_id),
                ConditionExpression="attribute_not_exists(pk) OR version <= :version",
                ExpressionAttributeValues={":version": {"N": str(version)}},
            )

    def add_namespace(self, namespace: str) -> None:
        """Remember that a namespace has assets or settings."""
        if namespace not in self._known_namespaces:
            self._client.put_item(TableName=self._table, Item=_row("namespaces", namespace))
            self._known_namespaces.add(namespace)

    def namespaces(self) -> list[str]:
        """Return every namespace that ever had assets or settings, in order; `-` is Global."""
        return list(walk(SortedIds(self._client, self._below("namespaces"))))

    def with_metadata(self, key: str, text: str) -> SortedIds:
        """Return the ids of assets that may have a metadata value."""
        return SortedIds(self._client, self._below(_term(key, text)))

    def locked(self) -> SortedIds:
        """Return the ids of assets that may be locked."""
        return SortedIds(self._client, self._below(LOCKS))

    def in_namespace(self, namespace: str | None) -> SortedIds:
        """Return the ids of the living assets of a namespace, as of a moment ago; None is Global."""
        query = {"TableName": self._table, "IndexName": "byNamespace"}
        return SortedIds(self._client, Range(query, ("namespace", namespace or GLOBAL), "id", ""))

    def _below(self, pk: str) -> Range:
        return Range({"TableName": self._table, "ConsistentRead": True}, ("pk", pk), "sk", "")

    def _unless_newer(self, call: Any, **arguments: Any) -> None:
        try:
            call(TableName=self._table, **arguments)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise


def _row(pk: str, sk: str) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sk}}
