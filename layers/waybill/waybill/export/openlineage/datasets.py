"""Renders an asset as the JSON of its dataset, once a run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from waybill.errors import ExporterStopped
from waybill.export.openlineage.cleaning import clean, clean_text
from waybill.export.openlineage.facets import dataset_facets

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from waybill.export.openlineage.config import OpenLineageAssetExporter
    from waybill.model.asset import Asset

_MOST_BYTES, _MOST_KEPT = 16 * 1024 * 1024, 5_000
"""Rendered datasets that are kept: as many as the engine keeps assets."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """An asset as it is sent.

    Attributes:
        asset: what it was made of; the same object has the same dataset, and stays the same as long as this is kept.
        body: its JSON; empty when there is a fault.
        fault: why the destination must not get it, naming the asset.
    """

    asset: Asset
    body: orjson.Fragment | None
    size: int
    fault: str | None = None


class Datasets:
    """The datasets of one exporter, kept as long as the engine keeps their assets."""

    def __init__(self, config: OpenLineageAssetExporter) -> None:
        self._mappings = config.mappings
        self._default = config.default_namespace
        self._rewrites = [(re.compile(rule.pattern), rule.replacement) for rule in config.namespace_rewrites]
        self._rules = config.preset.names
        self._backend = config.backend
        self._kept: dict[int, Dataset] = {}
        self._size = 0

    def of(self, asset: Asset) -> Dataset:
        """Return the dataset of an asset.

        Raises:
            ExporterStopped: its type is mapped, and it lacks the metadata key.
        """
        kept = self._kept.get(id(asset))
        if kept is not None:
            return kept
        made = self.render(asset)
        if self._size + made.size > _MOST_BYTES or len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
            self._size = 0
        self._kept[id(asset)] = made
        self._size += made.size
        return made

    def render(self, asset: Asset, without: AbstractSet[str] = frozenset()) -> Dataset:
        """Render an asset anew, leaving out some facets.

        Raises:
            ExporterStopped: its type is mapped, and it lacks the metadata key.
        """
        try:
            return self._rendered(asset, without)
        except (TypeError, RecursionError):
            return Dataset(asset, None, 0, f"asset {asset.id}: its metadata is nested too deeply to be sent")

    def _rendered(self, asset: Asset, without: AbstractSet[str]) -> Dataset:
        namespace, name = self._names(asset)
        own = (self._rewritten(asset.namespace or self._default), asset.id)
        facets = dataset_facets(asset, namespace, None if own == (namespace, name) else own)
        if fault := self._fault(asset, namespace, name, facets):
            return Dataset(asset, None, 0, fault)
        kept = {key: clean(value) for key, value in facets.items() if key not in without}
        body = orjson.dumps({"namespace": namespace, "name": name, "facets": kept})
        return Dataset(asset, orjson.Fragment(body), len(body))

    def _names(self, asset: Asset) -> tuple[str, str]:
        """Return namespace and name, from the metadata where the asset's type is mapped."""
        mapping = self._mappings.get(asset.type)
        namespace, name = asset.namespace or self._default, asset.id
        if mapping is not None:
            namespace = self._mapped(asset, mapping.namespace) if mapping.namespace else namespace
            name = self._mapped(asset, mapping.name) if mapping.name else name
        return self._rewritten(namespace), name

    def _mapped(self, asset: Asset, key: str) -> str:
        value = asset.metadata.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value.strip():
            raise ExporterStopped(
                f"asset {asset.id} is of the mapped type {asset.type} and has no text under its metadata key {key!r}; "
                "add the key where the asset is declared"
            )
        return value

    def _rewritten(self, namespace: str) -> str:
        for pattern, replacement in self._rewrites:
            match = pattern.fullmatch(namespace)
            if match:
                return match.expand(replacement)
        return namespace

    def _fault(self, asset: Asset, namespace: str, name: str, facets: dict[str, Any]) -> str | None:
        checks = [
            ("dataset namespace", namespace, self._rules.namespace_fault(namespace)),
            ("dataset name", name, self._rules.dataset_fault(name)),
        ]
        others = [identifier["namespace"] for identifier in facets.get("symlinks", {}).get("identifiers", ())]
        checks += [("namespace of its other name", other, self._rules.namespace_fault(other)) for other in others]
        columns = _column_names(facets.get("schema", {}).get("fields", ()))
        checks += [("column name", column, self._rules.column_fault(column)) for column in columns]
        found = next(((what, text, fault) for what, text, fault in checks if fault), None)
        if found is None:
            return None
        what, text, fault = found
        return f"asset {asset.id}: the {what} {_shortened(text)} {fault} ({self._backend})"


def _column_names(fields: Any) -> list[str]:
    return [name for field in fields for name in (field["name"], *_column_names(field.get("fields", ())))]


def _shortened(text: str, most: int = 120) -> str:
    text = clean_text(text)
    return repr(text if len(text) <= most else f"{text[:most]}…")
