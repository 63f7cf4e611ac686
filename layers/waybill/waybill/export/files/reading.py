"""Reads files back: their lines, and which events these are."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import orjson

from waybill.export.files.compression import decompressed
from waybill.export.files.destination import refusal

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator

    from waybill.export.files.destination import Destination
    from waybill.export.files.manifest import FileEntry, Manifest

BLOCK = 1024 * 1024


def fault_of(destination: Destination, manifest: Manifest, file: FileEntry, counts: Counter[str]) -> str | None:
    """Read a file, count the ids of what is in it, and return what is wrong with it."""
    stored = _Stored(destination, file.uri)
    lines = 0
    try:
        id_of = _READERS[manifest.content, manifest.format]
        for line in _lines(decompressed(stored.blocks(), manifest.compression)):
            counts[id_of(line)] += 1
            lines += 1
    except (ValueError, KeyError, TypeError) as error:
        return f"cannot be read after line {lines}: {error}"
    if (stored.size, stored.sha256) != (file.bytes, file.sha256):
        return f"has other content than the manifest says: {stored.size} bytes, SHA-256 {stored.sha256}"
    return None if lines == file.lines else f"has {lines} lines; the manifest says {file.lines}"


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
            ValueError: it is not there, or S3 does not give it out.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            body = self._to.s3.get_object(Bucket=self._to.bucket, Key=self._key)["Body"]
            for block in body.iter_chunks(BLOCK):
                self._digest.update(block)
                self.size += len(block)
                yield block
        except (ClientError, BotoCoreError) as error:
            raise ValueError(refusal(error)) from None


def _lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    if rest:
        raise ValueError("its last line has no end")


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
"""What reads the id of a line: the event's, or its run's."""
