"""A series of files: lines go in, and a new file begins where the last one is full or the folder changes."""

from __future__ import annotations

import io
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from waybill.export.files.compression import CONTENT_TYPES, SUFFIXES, Compressor, compressor
from waybill.export.files.keys import PARTITIONS, KeyTemplate, parse_key
from waybill.export.files.manifest import FileEntry
from waybill.export.files.pipeline import Pipeline
from waybill.export.files.upload import PART_BYTES, Upload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from waybill.export.files.config import FileAssetExporter
    from waybill.export.files.destination import Destination


def template_of(config: FileAssetExporter) -> KeyTemplate:
    """Return the template of an exporter's folders, its partitions included."""
    return parse_key(f"{config.key.strip('/')}/{PARTITIONS[config.partitioning]}")


def suffix_of(config: FileAssetExporter) -> str:
    """Return the end of the names of an exporter's files."""
    return f".{config.format.lower()}{SUFFIXES[config.compression]}"


class OpenFile:
    """A file that takes lines; they are compressed and stored beside the caller.

    Attributes:
        lines: how many it has.
        size: bytes of them, before compression.
        border: what decided its folder.
    """

    def __init__(self, upload: Upload, compress: Compressor, pipeline: Pipeline, border: str) -> None:
        self.lines = self.size = 0
        self.border = border
        self._first = self._last = ""
        self._part_full = PART_BYTES
        self._upload = upload
        self._compress = compress
        self._pipeline = pipeline
        self._block = io.BytesIO()

    def add(self, line: bytes, key: str) -> None:
        """Add the line of the event with this key in the log.

        Raises:
            ExporterStopped: S3 did not take an earlier one.
        """
        if not self.lines:
            self._first = key
        self._last = key
        self.lines += 1
        self.size += self._block.write(line)
        if self.size >= self._part_full:
            block, self._block = self._block, io.BytesIO()
            self._part_full = self.size + PART_BYTES
            self._pipeline.submit(self._store, block)

    def close(self) -> Future[FileEntry]:
        """Take no more lines, and make the file whole in S3.

        Raises:
            ExporterStopped: S3 did not take an earlier one.
        """
        block, self._block = self._block, io.BytesIO()
        return self._pipeline.submit(self._finish, block)

    def abort(self) -> None:
        """Drop the file."""
        self._upload.abort()

    def _store(self, block: io.BytesIO) -> None:
        with self._dropped_after_an_error():
            self._upload.write(self._compress.compress(block.getvalue()))

    def _finish(self, block: io.BytesIO) -> FileEntry:
        self._store(block)
        with self._dropped_after_an_error():
            self._upload.write(self._compress.flush())
            stored = self._upload.finish()
        return FileEntry(
            uri=stored.uri,
            lines=self.lines,
            bytes=stored.size,
            sha256=stored.sha256,
            first=self._first,
            last=self._last,
        )

    @contextmanager
    def _dropped_after_an_error(self) -> Iterator[None]:
        """Leave nothing of the file in S3 when it cannot be made whole, whatever the reason."""
        try:
            yield
        except BaseException:
            self.abort()
            raise


class Series:
    """The files of one batch, one open at a time.

    Memory holds a part that is made, one that waits and one that is stored.

    Args:
        config: the exporter's part of the flow.
        destination: the bucket.
        started: the start of the run.
        name: what all names of the series begin with.
    """

    def __init__(self, config: FileAssetExporter, destination: Destination, started: datetime, name: str) -> None:
        self._config = config
        self._most_lines = config.max_lines_per_file
        self._most_bytes = config.max_bytes_per_file
        self._to = destination
        self._started = started
        self._name = name
        self._template = template_of(config)
        self._precision = self._template.precision
        self._pipeline = Pipeline()
        self._open: OpenFile | None = None
        self._closed: list[Future[FileEntry]] = []

    @property
    def count(self) -> int:
        """How many files are closed."""
        return len(self._closed)

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
        if (
            file is None
            or file.lines >= self._most_lines
            or file.size >= self._most_bytes
            or (self._precision and created[: self._precision] != file.border)
        ):
            file = self._next(created)
        file.add(line, key)

    def close(self) -> tuple[FileEntry, ...]:
        """Close the last file and return all, each whole in S3.

        Raises:
            ExporterStopped: S3 does not take it.
        """
        self._close_open()
        self._pipeline.finish()
        return tuple(entry.result() for entry in self._closed)

    def abort(self) -> None:
        """Drop what is not whole in S3. Never raises."""
        self._pipeline.stop()
        if self._open is not None:
            self._open.abort()
            self._open = None

    def _close_open(self) -> None:
        if self._open is not None:
            self._closed.append(self._open.close())
            self._open = None

    def _next(self, created: str) -> OpenFile:
        self._close_open()
        folder = self._template.folder(self._started, datetime.fromisoformat(created))
        key = f"{folder}{self._name}-{self.count + 1:05d}{suffix_of(self._config)}"
        upload = Upload(self._to, key, CONTENT_TYPES[self._config.compression])
        border = created[: self._precision]
        self._open = OpenFile(upload, compressor(self._config.compression), self._pipeline, border)
        return self._open
