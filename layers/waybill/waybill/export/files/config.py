"""The properties of a FileAssetExporter (DESIGN 4)."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictInt, ValidationInfo, field_validator

from waybill.export.files.keys import parse_key
from waybill.export.openlineage.config import DatasetMapping
from waybill.model.fields import Document, ExporterId, Text

_BUCKET = re.compile(
    r"(?=.{3,63}\Z)[a-z0-9][a-z0-9.-]*[a-z0-9]|arn:[a-z-]+:s3:[a-z0-9-]*:\d{12}:accesspoint/[a-z0-9-]+"
)
_KMS_KEY = re.compile(r"arn:[a-z-]+:kms:[a-z0-9-]+:\d{12}:(?:key/[A-Za-z0-9-]+|alias/[A-Za-z0-9/_-]+)")
_PREFIX = re.compile(r"[A-Za-z0-9!_.*'()-]{1,100}")
MOST_LINES = 10_000_000
LONGEST_KEY = 350
"""Bytes of a template. A key of S3 has 1,024, and names need their part."""


def _bucket(value: str) -> str:
    if not _BUCKET.fullmatch(value):
        raise ValueError("must be the name of a bucket, such as company-lineage, or the ARN of an access point")
    return value


def _key(value: str) -> str:
    size = len(value.encode())
    if size > LONGEST_KEY:
        raise ValueError(f"is {size} bytes long; the most is {LONGEST_KEY}")
    parse_key(value)
    return value


def _prefix(value: str) -> str:
    if not _PREFIX.fullmatch(value):
        raise ValueError("must have 1 to 100 letters, digits and ! _ . * ' ( ) -")
    if value.startswith((".", "_")):
        raise ValueError("must not begin with . or _, for Athena, Hive and Spark leave out such files")
    return value


def _kms_key(value: str) -> str:
    if not _KMS_KEY.fullmatch(value):
        raise ValueError("must be the ARN of a key or alias, such as arn:aws:kms:eu-central-1:111122223333:key/…")
    return value


BucketName = Annotated[str, AfterValidator(_bucket)]
Key = Annotated[Text, AfterValidator(_key)]


class FileAssetExporter(Document):
    """Writes lineage events as lines of files in S3.

    Attributes:
        max_lines_per_file: a file is closed when it has this many lines.
        max_bytes_per_file: a file is closed when its lines have this many bytes, before compression.
        bucket: where files go; None is the stack's bucket.
        key: the folder of the files, a template of `keys.py`.
        content: `lineage` is the event with its assets as they are now, `openlineage` the run event of DESIGN 6.
        mappings, default_namespace: of `openlineage`, as an OpenLineageAssetExporter has them.
        kms_key: the ARN of the KMS key that files are encrypted with; None leaves it to the bucket.
    """

    id: ExporterId
    type: Literal["FileAssetExporter"]
    format: Literal["ION", "JSON"] = "ION"
    max_lines_per_file: StrictInt = Field(default=100_000, ge=1, le=MOST_LINES)
    max_bytes_per_file: StrictInt = Field(default=256 * 1024 * 1024, ge=1024, le=40 * 1024**3)
    log_file_prefix: Annotated[str, AfterValidator(_prefix)] = "kestra-log-file"
    bucket: BucketName | None = None
    key: Key = "lineage"
    compression: Literal["none", "gzip", "zstd"] = "none"
    partitioning: Literal["none", "month", "day", "hour"] = "none"
    content: Literal["lineage", "openlineage"] = "lineage"
    mappings: dict[str, DatasetMapping] = Field(default_factory=dict)
    default_namespace: Text = "default"
    kms_key: Annotated[str, AfterValidator(_kms_key)] | None = None

    @field_validator("content")
    @classmethod
    def _openlineage_is_json(cls, value: str, info: ValidationInfo) -> str:
        if value == "openlineage" and info.data.get("format", "JSON") != "JSON":
            raise ValueError("openlineage is read as JSON; set format: JSON")
        return value
