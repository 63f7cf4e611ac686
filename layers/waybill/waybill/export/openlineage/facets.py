"""The facets of an asset's dataset, made of the asset as it is now (DESIGN 6)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from waybill import __version__
from waybill.clock import iso

if TYPE_CHECKING:
    from collections.abc import Iterator

    from waybill.model.asset import Asset

PRODUCER = f"urn:waybill:{__version__}"
_SPEC = "https://openlineage.io/spec/facets"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9\-._~:/?#@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+")
_URN_SAFE = "-._~:/@!$&'()*+,;="

DROPPABLE = ("waybill_asset", "tags", "schema", "documentation", "ownership")
"""What may be left out of a dataset that is too large, first the one that is missed least."""


def facet(file: str, version: str, /, **content: Any) -> dict[str, Any]:
    """Make a facet of the spec, of the file's given version."""
    return {"_producer": PRODUCER, "_schemaURL": f"{_SPEC}/{version}/{file}.json#/$defs/{file}", **content}


def uri_of(namespace: str) -> str:
    """Return the namespace if it is a URI, else a URN of ours made of it."""
    return (
        namespace if _URI.fullmatch(namespace) else f"urn:waybill:{quote(namespace, safe=_URN_SAFE, errors='replace')}"
    )


def dataset_facets(asset: Asset, namespace: str, symlink: tuple[str, str] | None) -> dict[str, dict[str, Any]]:
    """Return every facet of an asset's dataset.

    Args:
        asset: as it is now.
        namespace: of the dataset, as it is sent.
        symlink: namespace and name by which the asset is known besides, where it is sent under another name.
    """
    found = {
        "dataSource": _data_source(asset, namespace),
        "symlinks": _symlinks(symlink),
        "documentation": _documentation(asset.description),
        "ownership": ownership("OwnershipDatasetFacet", asset.metadata.get("owner")),
        "schema": _schema(asset.metadata.get("columns")),
        "tags": _tags(asset.metadata.get("tags")),
        "waybill_asset": _waybill_asset(asset),
    }
    return {key: value for key, value in found.items() if value}


def _data_source(asset: Asset, namespace: str) -> dict[str, Any]:
    system = asset.metadata.get("system")
    name = system if isinstance(system, str) and system.strip() else namespace
    return facet("DatasourceDatasetFacet", "1-0-1", name=name, uri=uri_of(namespace))


def _symlinks(symlink: tuple[str, str] | None) -> dict[str, Any] | None:
    if symlink is None:
        return None
    identifier = {"namespace": symlink[0], "name": symlink[1], "type": "ASSET"}
    return facet("SymlinksDatasetFacet", "1-0-1", identifiers=[identifier])


def _documentation(description: str | None) -> dict[str, Any] | None:
    if not description:
        return None
    return facet("DocumentationDatasetFacet", "1-1-0", description=description)


def ownership(file: str, owner: Any) -> dict[str, Any] | None:
    """Return the owners that a value names: a text, or a list of texts or of {name, type}."""
    owners = [made for item in _listed(owner) if (made := _owner(item))]
    return facet(file, "1-0-1", owners=owners) if owners else None


def _owner(item: Any) -> dict[str, str] | None:
    if isinstance(item, dict):
        said = {key: _text(item.get(key)) for key in ("name", "type")}
        return {key: text for key, text in said.items() if text} if said["name"] else None
    text = _text(item)
    return {"name": text} if text else None


def _schema(columns: Any) -> dict[str, Any] | None:
    """Return the schema that `columns` tells: names, {name, type, description, fields}, or a map of name to type."""
    fields = _fields(columns)
    return facet("SchemaDatasetFacet", "1-2-0", fields=fields) if fields else None


def _fields(columns: Any) -> list[dict[str, Any]]:
    if isinstance(columns, dict):
        columns = [
            {"name": name, **(kind if isinstance(kind, dict) else {"type": kind})} for name, kind in columns.items()
        ]
    return [field for item in _listed(columns) if (field := _field(item))]


def _field(item: Any) -> dict[str, Any] | None:
    if not isinstance(item, dict):
        name = _text(item)
        return {"name": name} if name else None
    field: dict[str, Any] = {key: text for key in ("name", "type", "description") if (text := _text(item.get(key)))}
    if "name" not in field:
        return None
    inner = _fields(item.get("fields"))
    return {**field, "fields": inner} if inner else field


def _tags(tags: Any) -> dict[str, Any] | None:
    made = list(_each_tag(tags))
    return facet("TagsDatasetFacet", "1-0-0", tags=made) if made else None


def _each_tag(tags: Any) -> Iterator[dict[str, str]]:
    """Read tags: a map, or a list of texts (each true) or of {key, value}."""
    pairs = tags.items() if isinstance(tags, dict) else [_pair(item) for item in _listed(tags)]
    for key, value in pairs:
        name, text = _text(key), _text(value)
        if name and text:
            yield {"key": name, "value": text, "source": "WAYBILL"}


def _pair(item: Any) -> tuple[Any, Any]:
    return (item.get("key"), item.get("value", "true")) if isinstance(item, dict) else (item, "true")


def _waybill_asset(asset: Asset) -> dict[str, Any]:
    said = {
        "_producer": PRODUCER,
        "_schemaURL": "urn:waybill:facet:asset:1-0-0",
        "id": asset.id,
        "type": asset.type,
        "namespace": asset.namespace,
        "displayName": asset.display_name,
        "description": asset.description,
        "metadata": asset.metadata or None,
        "created": iso(asset.created) if asset.created else None,
        "updated": iso(asset.updated) if asset.updated else None,
    }
    return {key: value for key, value in said.items() if value is not None}


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]


def _text(value: Any) -> str:
    """Return a scalar as text, empty for what is none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (str, int, float)) else ""
