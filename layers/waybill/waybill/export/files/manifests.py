"""The commit of a batch: one object, written once, whose key is the batch's start.

Whoever writes it first from a start has decided what counts; everybody else takes over its end.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.errors import ExporterStopped
from waybill.export.files.destination import Destination, error_code, refusal, was_refused
from waybill.export.files.manifest import FOLDER, DamagedManifestError, Manifest, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from mypy_boto3_s3.type_defs import ObjectTypeDef

TRIES = 5
START_IN_NAMES = 12
"""Characters of a start's digest that the names of its files have."""


class NotCommittedError(ExporterStopped):
    """S3 refused a manifest, and for sure it is not there."""


@dataclass(frozen=True, slots=True)
class Written:
    """What an exporter wrote, whether it counts or not: keys of manifests; keys of files with the time of writing."""

    manifests: list[str]
    files: list[tuple[str, datetime]]


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
        self._below_root = f"{FOLDER}{'/'.join(owner[:4])}/"
        self.folder = f"{root}{self._below_root}"

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
            NotCommittedError: S3 refused it.
            ExporterStopped: S3 does not answer; whether it counts is found out by the next run.
        """
        key = self.key(manifest.start)
        for count in range(TRIES):
            try:
                with self._to.told(f"write {key}"):
                    if self._put_once(key, manifest.model_dump_json(by_alias=True).encode() + b"\n"):
                        return manifest
            except ExporterStopped as error:
                if count == 0 and was_refused(error.__cause__):
                    raise NotCommittedError(str(error)) from error
                raise
            if counted := self.find(manifest.start):
                return counted
        raise ExporterStopped(f"cannot write {self._to.uri(key)}: others write it all the time; try again")

    def read(self, key: str) -> Manifest:
        """Read a manifest by its key.

        Raises:
            DamagedManifestError: it is none, or S3 does not give it out.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return read_manifest(self._body(key))
        except (ClientError, BotoCoreError) as error:
            raise DamagedManifestError(f"cannot be read: {refusal(error)}") from None

    def files_of(self, key: str) -> str:
        """Return the part that the names of all files of a manifest have, and those of no other; it names no others."""
        return f"-{self.owner}-{name_of(key)[:START_IN_NAMES]}-"

    def look(self) -> Written:
        """Look for all manifests and files of the exporter.

        Where `key` was another once, the manifests of the files below the root lie in a folder above or below it.

        Raises:
            ExporterStopped: S3 does not answer.
        """
        steps = self._root.split("/")[:-1]
        above = ["".join(f"{step}/" for step in steps[:count]) for count in range(len(steps))]
        written = Written([], [])
        with self._to.told(f"list {self._root}"):
            for folder in above:
                written.manifests.extend(self._keys(f"{folder}{self._below_root}"))
            for item in self._listed(self._root):
                key, name = item["Key"], name_of(item["Key"])
                if f"/{key}".endswith(f"/{self._below_root}{name}"):
                    written.manifests.append(key)
                elif f"-{self.owner}-" in name:
                    written.files.append((key, item["LastModified"]))
        return written

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


def name_of(key: str) -> str:
    """Return the last step of a key or an address."""
    return key.rpartition("/")[2]


def _digest(parts: tuple[str, ...]) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
