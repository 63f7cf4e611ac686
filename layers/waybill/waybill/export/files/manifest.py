"""What a manifest says: which files count, and up to where."""

from __future__ import annotations

from pydantic import ValidationError

from waybill.errors import WaybillError
from waybill.model.fields import Document, Instant

FOLDER = "_manifests/"
"""Athena, Hive and Spark leave out names that begin with an underscore when they read the files beside it."""


class DamagedManifestError(WaybillError):
    """A manifest cannot be read."""


class FileEntry(Document):
    """A file that counts.

    Attributes:
        uri: where it lies.
        lines: events in it, one a line.
        bytes: its size as it lies in S3.
        sha256: of the same bytes.
        first: the log's key of its first event.
        last: the log's key of its last event.
    """

    uri: str
    lines: int
    bytes: int
    sha256: str
    first: str
    last: str


class Rejection(Document):
    """An event that no line could be made of: its id, and why."""

    id: str
    reason: str


class Manifest(Document):
    """What one batch wrote.

    Attributes:
        start: the digest of the engine's word for where the batch began.
        end: the engine's word for where it ended.
        attempt: who wrote it.
        lines: events in all its files.
        rejected: events that no line could be made of, in no file.
    """

    version: int = 1
    namespace: str
    flow_id: str
    task_id: str
    exporter_id: str
    state_key: str
    start: str
    end: str
    attempt: str
    created: Instant
    format: str
    compression: str
    content: str
    lines: int
    files: tuple[FileEntry, ...]
    rejected: tuple[Rejection, ...] = ()

    @property
    def uris(self) -> list[str]:
        """The addresses of the files, in the order of the log."""
        return [file.uri for file in self.files]


def read_manifest(body: bytes) -> Manifest:
    """Read a manifest.

    Raises:
        DamagedManifestError: it is none.
    """
    try:
        return Manifest.model_validate_json(body)
    except ValidationError as error:
        raise DamagedManifestError(f"is no manifest ({error.error_count()} faults)") from None
