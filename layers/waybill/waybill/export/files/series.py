"""A series of files: lines go in, and a new file begins where the last one is full or the folder changes."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from waybill.export.files.compression import CONTENT_TYPES, SUFFIXES, Compressor, compressor
from waybill.export.files.keys import PARTITIONS, KeyTemplate, parse_key
from waybill.export.files.manifest import FileEntry
from waybill.export.files.upload import Upload

if TYPE_CHECKING:
    from collections.abc import Callable

    from waybill.export.files.config import FileAssetExporter
    from waybill.export.files.destination import Destination

CHUNK_BYTES = 256 * 1024
"""Lines are gathered to this size before they are compressed: a call per line would cost more than the line."""


def template_of(config: FileAssetExporter) -> KeyTemplate:
    """Return the template of an exporter's folders, its partitions included."""
    return parse_key(f"{config.key.strip('/')}/{PARTITIONS[config.partitioning]}")


class OpenFile:
    """A file that takes lines."""

    def __init__(self, upload: Upload, compress: Compressor) -> None:
        self.lines = 0
        self._first = self._last = ""
        self._upload = upload
        self._compress = compress
        self._chunk: list[bytes] = []
        self._chunk_bytes = 0

    @property
    def size(self) -> int:
        """Bytes of it so far as they are stored; what waits to be compressed counts as it is."""
        return self._upload.size + self._chunk_bytes

    def add(self, line: bytes, key: str) -> None:
        """Add the line of the event with this key in the log."""
        if not self.lines:
            self._first = key
        self._last = key
        self.lines += 1
        self._chunk.append(line)
        self._chunk_bytes += len(line)
        if self._chunk_bytes >= CHUNK_BYTES:
            self._store_chunk()

    def close(self, uri: Callable[[str], str]) -> FileEntry:
        """Make the file whole in S3."""
        self._store_chunk()
        self._upload.write(self._compress.flush())
        stored = self._upload.finish()
        return FileEntry(
            uri=uri(stored.key), lines=self.lines, bytes=stored.size, sha256=stored.sha256,
            first=self._first, last=self._last,
        )  # fmt: skip

    def abort(self) -> None:
        """Drop the file."""
        self._upload.abort()

    def _store_chunk(self) -> None:
        self._upload.write(self._compress.compress(b"".join(self._chunk)))
        self._chunk.clear()
        self._chunk_bytes = 0


class Series:
    """The files of one batch, one open at a time, so memory holds one part of one file.

    Args:
        config: the exporter's part of the flow.
        destination: the bucket.
        started: the start of the run.
        name: what all names of the series begin with.
    """

    def __init__(self, config: FileAssetExporter, destination: Destination, started: datetime, name: str) -> None:
        self.files: list[FileEntry] = []
        self._config = config
        self._to = destination
        self._started = started
        self._name = name
        self._template = template_of(config)
        self._precision = self._template.precision
        self._open: OpenFile | None = None
        self._opened = 0
        self._border = ""

    def add(self, line: bytes, key: str, created: str) -> None:
        """Add a line.

        Args:
            line: with its end of line.
            key: the event's key in the log.
            created: its recording time, ISO 8601 in UTC.

        Raises:
            ExporterStopped: S3 does not take it.
        """
        file = self._open
        if file is None or self._is_over(file, created):
            file = self._next(created)
        file.add(line, key)

    def close(self) -> list[FileEntry]:
        """Close the last file and return all.

        Raises:
            ExporterStopped: S3 does not take it.
        """
        if self._open is not None:
            self.files.append(self._open.close(self._to.uri))
            self._open = None
        return self.files

    def abort(self) -> None:
        """Drop the file that is open. Never raises."""
        if self._open is not None:
            self._open.abort()
            self._open = None

    def _is_over(self, file: OpenFile, created: str) -> bool:
        return (
            file.lines >= self._config.max_lines_per_file
            or file.size >= self._config.max_bytes_per_file
            or created[: self._precision] != self._border
        )

    def _next(self, created: str) -> OpenFile:
        self.close()
        self._border = created[: self._precision]
        self._opened += 1
        folder = self._template.folder(self._started, datetime.fromisoformat(created))
        key = f"{folder}{self._name}-{self._opened:05d}{suffix_of(self._config)}"
        upload = Upload(self._to, key, CONTENT_TYPES[self._config.compression])
        self._open = OpenFile(upload, compressor(self._config.compression))
        return self._open


def suffix_of(config: FileAssetExporter) -> str:
    """Return the end of the names of an exporter's files."""
    return f".{config.format.lower()}{SUFFIXES[config.compression]}"
