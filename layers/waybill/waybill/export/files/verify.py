"""Reads manifests and files back, and compares them with the log: missing, double, damaged, orphans."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson

from waybill.export.files.compression import decompressed
from waybill.export.files.manifest import DamagedManifestError, FileEntry, Manifest, read_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from waybill.export.files.destination import Destination
    from waybill.export.files.manifest import Manifests
    from waybill.model.event import LineageEvent

IN_WORK = timedelta(minutes=20)
"""A file younger than this may belong to a run that has not committed it yet; a run lasts 15 minutes at most."""
BLOCK = 1024 * 1024


@dataclass
class Findings:
    """What a check found.

    Attributes:
        compared: whether the log was there to compare with.
        lines: events in all files.
        missing: ids of events that are in the log, behind the position, and in no file.
        double: ids of events that stand in files more often than in the log.
        damaged: what is wrong with a file or manifest, by its address.
        orphans: addresses of files that no manifest names.
        rejected: ids of events that no line could be made of, as manifests say.
    """

    compared: bool = True
    manifests: int = 0
    files: int = 0
    lines: int = 0
    missing: list[str] = field(default_factory=list)
    double: list[str] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)
    orphans: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether every event stands in exactly one file that is whole; orphans do no harm, and expire."""
        return not (self.missing or self.double or self.damaged)


def verify(
    destination: Destination,
    manifests: Manifests,
    log: Iterable[LineageEvent] | None,
    now: datetime,
) -> Findings:
    """Check the files of one exporter.

    Args:
        destination: the bucket.
        manifests: of the exporter.
        log: the events that it has behind it; None where that cannot be told, then nothing is reported as missing.
        now: files younger than `IN_WORK` are no orphans.

    Raises:
        ExporterStopped: S3 does not answer.
    """
    check = _Check(destination)
    for key, body in manifests.all():
        check.manifest(destination.uri(key), body)
    check.orphans(manifests, now - IN_WORK)
    if log is not None:
        check.compare(log)
    else:
        check.found.compared = False
        check.compare_files()
    return check.found


class _Check:
    def __init__(self, destination: Destination) -> None:
        self.found = Findings()
        self.counts: Counter[str] = Counter()
        self._to = destination
        self._named: set[str] = set()
        self._identity: Callable[[LineageEvent], str] = _event_id_of

    def manifest(self, uri: str, body: bytes) -> None:
        """Read a manifest and the files that it names."""
        try:
            manifest = read_manifest(body)
        except DamagedManifestError as error:
            self.found.damaged[uri] = str(error)
            return
        self.found.manifests += 1
        self.found.rejected += [rejection.id for rejection in manifest.rejected]
        if manifest.content == "openlineage":
            self._identity = _run_id
        for file in manifest.files:
            self._named.add(file.uri)
            self.found.files += 1
            if fault := self._fault(manifest, file):
                self.found.damaged[file.uri] = fault

    def _fault(self, manifest: Manifest, file: FileEntry) -> str | None:
        """Read a file, count what is in it, and say what is wrong with it."""
        identity_of = _READERS[manifest.content, manifest.format]
        stored = _Stored(self._to, file.uri)
        lines = 0
        try:
            for line in _lines(decompressed(stored.blocks(), manifest.compression)):
                self.counts[identity_of(line)] += 1
                lines += 1
        except (ValueError, KeyError, TypeError) as error:
            return f"cannot be read after line {lines}: {error}"
        finally:
            self.found.lines += lines
        if (stored.size, stored.sha256) != (file.bytes, file.sha256):
            return f"has other content than the manifest says: {stored.size} bytes, SHA-256 {stored.sha256}"
        return None if lines == file.lines else f"has {lines} lines; the manifest says {file.lines}"

    def orphans(self, manifests: Manifests, before: datetime) -> None:
        """Find files of the exporter that no manifest names."""
        for key, modified in manifests.files():
            if self._to.uri(key) not in self._named and modified < before:
                self.found.orphans.append(self._to.uri(key))

    def compare(self, log: Iterable[LineageEvent]) -> None:
        """Compare what stands in files with what stands in the log; what has left the log is in one file at most."""
        expected = Counter(self._identity(event) for event in log)
        rejected = set(self.found.rejected)
        self.found.missing = sorted(
            identity
            for identity, count in expected.items()
            if self.counts[identity] < count and identity not in rejected
        )
        self.found.double = sorted(
            identity for identity, count in self.counts.items() if count > expected.get(identity, 1)
        )

    def compare_files(self) -> None:
        """Find events that stand in files twice, without the log; a run's id says nothing, for its events share it."""
        if self._identity is _event_id_of:
            self.found.double = sorted(identity for identity, count in self.counts.items() if count > 1)


class _Stored:
    """An object that is read once, from its beginning to its end."""

    def __init__(self, destination: Destination, uri: str) -> None:
        self._to = destination
        self._key = destination.key(uri)
        self._digest = hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def blocks(self) -> Iterator[bytes]:
        """Return the object block by block.

        Raises:
            ValueError: it is not there.
        """
        from botocore.exceptions import ClientError

        try:
            body = self._to.s3.get_object(Bucket=self._to.bucket, Key=self._key)["Body"]
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchKey":
                raise ValueError("it is not there") from None
            raise
        for block in body.iter_chunks(BLOCK):
            self._digest.update(block)
            self.size += len(block)
            yield block


def _lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    if rest:
        raise ValueError("its last line has no end")


def _event_id_of(event: LineageEvent) -> str:
    return event.id


def _run_id(event: LineageEvent) -> str:
    from waybill.export.openlineage.runs import run_id

    return run_id(event, "keep")


def _event_id(line: bytes) -> str:
    return str(orjson.loads(line)["id"])


def _event_id_of_ion(line: bytes) -> str:
    from amazon.ion import simpleion
    from amazon.ion.exceptions import IonException

    try:
        value: Any = simpleion.loads(line)
        return str(value["id"])
    except IonException as error:
        raise ValueError(str(error)) from None


def _run_id_of_line(line: bytes) -> str:
    return str(orjson.loads(line)["run"]["runId"])


_READERS: dict[tuple[str, str], Callable[[bytes], str]] = {
    ("lineage", "JSON"): _event_id,
    ("lineage", "ION"): _event_id_of_ion,
    ("openlineage", "JSON"): _run_id_of_line,
}
