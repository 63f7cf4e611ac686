"""The properties of a FileAssetExporter (DESIGN 4)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from waybill.model.fields import Document, ExporterId, Text


class FileAssetExporter(Document):
    """Writes lineage events as lines of files in S3."""

    id: ExporterId
    type: Literal["FileAssetExporter"]
    format: Literal["ION", "JSON"] = "ION"
    max_lines_per_file: int = Field(default=100_000, ge=1)
    log_file_prefix: Text = "kestra-log-file"
    bucket: Text | None = None
    key: Text | None = None
