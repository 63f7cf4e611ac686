"""The commit of a batch: one object, written once, whose key is the batch's start.

Whoever writes it first from a start has decided what counts; everybody else takes over its end.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pydantic import ValidationError

from waybill.errors import ExporterStopped, WaybillError
from waybill.export.files.destination import Destination, error_code
from waybill.model.fields import Document, Instant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from mypy_boto3_s3.type_defs import ObjectTypeDef

FOLDER = "_manifests/"
"""Athena, Hive and Spark leave out names that begin with an underscore when they read the files beside it."""
TRIES = 5


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


class Manifests:
    """The manifests of one exporter of one task.

    Args:
        destination: the bucket.
        root: the folder that the exporter's files lie under, `lineage/`.
        owner: namespace, flow, task, exporter, state key.

    Attributes:
        owner: what stands for the exporter in the names of its files.
    """

    def __init__(self, destination: Destination, root: str, owner: tuple[str, str, str, str, str]) -> None:
        self._to = destination
        self._identity = owner
        self.owner = _digest(owner)[:8]
        self._root = root
        self.folder = f"{root}{FOLDER}{'/'.join(owner[:4])}/"

    def key(self, digest: str) -> str:
        """Return the key of the manifest of a start, by its digest."""
        return f"{self.folder}{digest}.json"

    def digest(self, start: str) -> str:
        """Return what stands for a start in names of objects."""
        return _digest((*self._identity, start))[:24]

    def find(self, digest: str) -> Manifest | None:
        """Return the manifest of a start, by its digest, or None.

        Raises:
            ExporterStopped: S3 does not answer, or the manifest cannot be read.
        """
        key = self.key(digest)
        with self._to.told(f"look for {key}"):
            if key not in self._keys(key):
                return None
            body = self._body(key)
        try:
            return read_manifest(body)
        except DamagedManifestError as error:
            raise ExporterStopped(f"{self._to.uri(key)} {error}; restore an older version of it") from None

    def commit(self, manifest: Manifest) -> Manifest:
        """Write the manifest unless its start has one, and return the one that counts.

        Raises:
            ExporterStopped: S3 does not answer; whether it counts is found out by the next run.
        """
        key = self.key(manifest.start)
        for _ in range(TRIES):
            with self._to.told(f"write {key}"):
                if self._put_once(key, manifest.model_dump_json(by_alias=True).encode() + b"\n"):
                    return manifest
            if counted := self.find(manifest.start):
                return counted
        raise ExporterStopped(f"cannot write {self._to.uri(key)}: others write it all the time; try again")

    def all(self) -> Iterator[tuple[str, bytes]]:
        """Walk over the keys and bodies of all manifests, in no order that means anything.

        Raises:
            ExporterStopped: S3 does not answer.
        """
        with self._to.told(f"list {self.folder}"):
            for key in self._keys(self.folder):
                yield key, self._body(key)

    def files(self) -> Iterator[tuple[str, datetime]]:
        """Walk over the keys, and times of writing, of all files of the exporter, whether they count or not.

        Raises:
            ExporterStopped: S3 does not answer.
        """
        with self._to.told(f"list {self._root}"):
            for item in self._listed(self._root):
                if f"-{self.owner}-" in item["Key"].rpartition("/")[2]:
                    yield item["Key"], item["LastModified"]

    def _keys(self, prefix: str) -> Iterator[str]:
        """Walk over the keys with a prefix.

        To get an object that may not be there would need the permission to list the whole bucket.
        """
        return (item["Key"] for item in self._listed(prefix))

    def _listed(self, prefix: str) -> Iterator[ObjectTypeDef]:
        for page in self._to.s3.get_paginator("list_objects_v2").paginate(Bucket=self._to.bucket, Prefix=prefix):
            yield from page.get("Contents", ())

    def _body(self, key: str) -> bytes:
        return self._to.s3.get_object(Bucket=self._to.bucket, Key=key)["Body"].read()

    def _put_once(self, key: str, body: bytes) -> bool:
        """Write an object unless there is one; tell whether it was written.

        409 says that somebody else is writing it at this moment.
        """
        from botocore.exceptions import ClientError

        about = {"ContentType": "application/json", **self._to.encryption}
        try:
            self._to.s3.put_object(Bucket=self._to.bucket, Key=key, Body=body, IfNoneMatch="*", **about)
        except ClientError as error:
            if error_code(error) in ("PreconditionFailed", "ConditionalRequestConflict"):
                return False
            raise
        return True


def _digest(parts: tuple[str, ...]) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


def read_manifest(body: bytes) -> Manifest:
    """Read a manifest.

    Raises:
        DamagedManifestError: it is none.
    """
    try:
        return Manifest.model_validate_json(body)
    except ValidationError as error:
        raise DamagedManifestError(f"is no manifest ({error.error_count()} faults)") from None
