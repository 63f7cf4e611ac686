"""The settings of namespaces, in the key-value table under the key `namespace-settings`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from waybill.errors import NamespaceForbidden
from waybill.model.namespace import NamespaceSettings, covers, matches_any, with_parents
from waybill.store.batches import get_items

if TYPE_CHECKING:
    from collections.abc import Iterable

KEY = "namespace-settings"

DIRECTORY = "#namespaces"
"""The partition that lists every namespace with settings: no namespace has this name."""


class NamespaceStore:
    """What each namespace itself says."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def get_many(self, namespaces: Iterable[str]) -> dict[str, NamespaceSettings]:
        """Read the settings of those namespaces that have any."""
        items = get_items(self._client, self._table, [_key(namespace) for namespace in dict.fromkeys(namespaces)])
        return {item["namespace"]["S"]: NamespaceSettings.model_validate_json(item["body"]["S"]) for item in items}

    def put(self, namespace: str, settings: NamespaceSettings) -> None:
        """Replace the settings of a namespace."""
        body = settings.model_dump_json(by_alias=True, exclude_none=True)
        listed = {"namespace": {"S": DIRECTORY}, "key": {"S": namespace}}
        self._client.put_item(TableName=self._table, Item=listed)
        self._client.put_item(TableName=self._table, Item={**_key(namespace), "body": {"S": body}})

    def names(self) -> list[str]:
        """Return every namespace that has settings."""
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="#namespace = :directory",
            ExpressionAttributeNames={"#namespace": "namespace"},
            ExpressionAttributeValues={":directory": {"S": DIRECTORY}},
            ConsistentRead=True,
        )
        return [item["key"]["S"] for page in pages for item in page["Items"]]

    def barring(self, flow_namespace: str) -> list[str]:
        """Return the namespaces that do not admit flows of a namespace."""
        names = self.names()
        rules = NamespaceRules(self)
        rules.load(names)
        return sorted(name for name in names if not rules.admits(name, flow_namespace))


class NamespaceRules:
    """What is in force in each namespace, parents considered. Reads a setting once, so it is made for one request."""

    def __init__(self, store: NamespaceStore) -> None:
        self._store = store
        self._own: dict[str, NamespaceSettings] = {}

    def load(self, namespaces: Iterable[str | None]) -> None:
        """Read what will be asked for, in one call."""
        wanted = {name for namespace in namespaces if namespace for name in with_parents(namespace)}
        unknown = wanted - self._own.keys()
        if unknown:
            self._own |= dict.fromkeys(unknown, NamespaceSettings()) | self._store.get_many(sorted(unknown))

    def of(self, namespace: str) -> NamespaceSettings:
        """Return what is in force in a namespace."""
        self.load([namespace])
        settings = NamespaceSettings()
        for name in reversed(with_parents(namespace)):
            settings = self._own[name].over(settings)
        return settings

    def admits(self, namespace: str, flow_namespace: str) -> bool:
        """Tell whether a namespace admits flows of another; it always admits its own."""
        allowed = self.of(namespace).allowed_namespaces
        return (
            namespace == flow_namespace or allowed is None or any(covers(listed, flow_namespace) for listed in allowed)
        )

    def check_flow(self, flow_namespace: str, *asset_namespaces: str | None) -> None:
        """Check that flows of a namespace may write an asset of others; None is Global, which admits everybody.

        Raises:
            NamespaceForbidden: one of them lists its allowed namespaces, and the flow's is not among them.
        """
        for namespace in asset_namespaces:
            if namespace is not None and not self.admits(namespace, flow_namespace):
                raise NamespaceForbidden(
                    f"namespace {namespace} does not allow flows of {flow_namespace}; add it to its allowedNamespaces"
                )

    def readable(self, namespace: str | None, caller: str) -> bool:
        """Tell whether a caller may read a namespace's assets."""
        return namespace is None or matches_any(self.of(namespace).readers, caller)

    def check_writer(self, caller: str, *namespaces: str | None) -> None:
        """Check that a caller may write in namespaces.

        Raises:
            NamespaceForbidden: one of them lists its writers, and the caller is not among them.
        """
        for namespace in namespaces:
            if namespace is not None and not matches_any(self.of(namespace).writers, caller):
                raise NamespaceForbidden(f"namespace {namespace} does not let {caller} write; add it to its writers")


def _key(namespace: str) -> dict[str, Any]:
    return {"namespace": {"S": namespace}, "key": {"S": KEY}}
