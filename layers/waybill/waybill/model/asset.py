"""An asset: its identity, its declaration, the record that the catalog keeps, and how one becomes the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from waybill.model.fields import AssetId, Document, Instant, Namespace, Text

if TYPE_CHECKING:
    from datetime import datetime

TABLE = "io.kestra.plugin.ee.assets.Table"
DATASET = "io.kestra.plugin.ee.assets.Dataset"
FILE = "io.kestra.plugin.ee.assets.File"
VM = "io.kestra.plugin.ee.assets.VM"
EXTERNAL = "io.kestra.core.models.assets.External"
"""The predefined types. Any other text that is not blank is a type too."""


@dataclass(frozen=True, slots=True)
class AssetRef:
    """One side of a lineage event, and an input as a report declares it: which asset, not what it is like."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    id: AssetId
    type: Text | None = None
    namespace: Namespace | None = None

    def as_json(self) -> dict[str, str]:
        """Return the reference as JSON, without what it does not say."""
        pairs = (("id", self.id), ("type", self.type), ("namespace", self.namespace))
        return {name: value for name, value in pairs if value is not None}


class DeclaredAsset(Document):
    """An asset as an output declares it. Properties that an asset does not have become metadata.

    A metadata value of null removes the key from the stored asset.
    """

    id: AssetId
    type: Text
    namespace: Namespace | None = None
    display_name: str | None = None
    description: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _fold(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        own = {to_camel(name) for name in cls.model_fields} | set(cls.model_fields)
        extra = {key: item for key, item in value.items() if key not in own}
        if not extra:
            return value
        metadata = value.get("metadata") or {}
        rest = {key: item for key, item in value.items() if key in own}
        return {**rest, "metadata": {**extra, **metadata} if isinstance(metadata, dict) else metadata}

    @property
    def ref(self) -> AssetRef:
        """The reference that a lineage event keeps of this output."""
        return AssetRef(self.id, self.type, self.namespace)


class Asset(Document):
    """An asset as the catalog keeps it. `namespace` None is Global.

    `created` and `updated` are None only where the catalog does not know the asset (yet) and the event's own words
    stand for it.
    """

    # Threads read assets side by side, so their validation stands before they begin.
    model_config = ConfigDict(extra="ignore", defer_build=False)

    id: str
    type: str = EXTERNAL
    namespace: str | None = None
    display_name: str | None = None
    description: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    created: Instant | None = None
    updated: Instant | None = None
    deleted: bool = False

    def to_json(self) -> str:
        """Write the asset as one JSON object in camelCase, without nulls on its own properties."""
        return self.model_dump_json(by_alias=True, exclude_none=True)


def placeholder(ref: AssetRef, flow_namespace: str, now: datetime) -> Asset:
    """Make the asset that stands for an input nobody declared: External unless the input names a type."""
    return Asset(
        id=ref.id, type=ref.type or EXTERNAL, namespace=ref.namespace or flow_namespace, created=now, updated=now
    )


def merged(stored: Asset | None, declared: DeclaredAsset, now: datetime) -> Asset:
    """Return the stored asset as the declaration changes it (`kestra.md` 2.4).

    What is declared wins, what is omitted stays; External never overrides a real type; a deleted asset lives again.
    """
    if stored is None:
        stored = Asset(id=declared.id, type=declared.type, created=now, updated=now)
    return stored.model_copy(
        update={
            "type": stored.type if declared.type == EXTERNAL else declared.type,
            "namespace": declared.namespace or stored.namespace,
            "display_name": stored.display_name if declared.display_name is None else declared.display_name,
            "description": stored.description if declared.description is None else declared.description,
            "metadata": merged_metadata(stored.metadata, declared.metadata),
            "updated": now,
            "deleted": False,
        }
    )


def merged_metadata(stored: dict[str, Any], declared: dict[str, Any]) -> dict[str, Any]:
    """Merge deeply: maps merge, lists unite, null removes the key, anything else replaces."""
    result = dict(stored)
    for key, value in declared.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged_value(result.get(key), value)
    return result


def _merged_value(stored: Any, declared: Any) -> Any:
    if isinstance(declared, dict):
        return merged_metadata(stored if isinstance(stored, dict) else {}, declared)
    if isinstance(stored, list) and isinstance(declared, list):
        return _united(stored, declared)
    return declared


def _united(stored: list[Any], declared: list[Any]) -> list[Any]:
    """Return the stored items, then those declared that are not among them; equal is what is the same JSON."""
    seen = {_canonical(item) for item in stored}
    new = {_canonical(item): item for item in reversed(declared)}
    return stored + [item for text, item in reversed(new.items()) if text not in seen]


def _canonical(item: Any) -> bytes:
    return orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
