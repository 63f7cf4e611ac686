"""The properties of an OpenLineageAssetExporter (DESIGN 4)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from waybill.model.fields import Document, ExporterId, Text


class DatasetMapping(Document):
    """Which metadata keys give the namespace and the name of an asset's dataset."""

    namespace: Text | None = None
    name: Text | None = None


class OpenLineageAssetExporter(Document):
    """Posts each lineage event as one OpenLineage run event."""

    id: ExporterId
    type: Literal["OpenLineageAssetExporter"]
    uri: Text | None = None
    mappings: dict[str, DatasetMapping] = Field(default_factory=dict)
