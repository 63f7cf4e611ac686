"""The exporter of files, as the engine drives it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from waybill.clock import utc_now
from waybill.export.files.destination import Destination
from waybill.export.files.keys import name_time, parse_key
from waybill.export.files.lines import NoLineError, Render, renderer
from waybill.export.files.manifest import FileEntry, Manifest, Rejection
from waybill.export.files.manifests import START_IN_NAMES, Manifests, NotCommittedError
from waybill.export.files.series import Series

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from waybill.export.files.config import FileAssetExporter
    from waybill.export.ports import Delivery, Run

MOST_FILES, MOST_REJECTED = 100, 1_000
"""What fills a batch, so that its commit takes seconds and its manifest stays small, whatever the backlog."""


class FileExporter:
    """Writes events as lines of files, which count once the manifest that names them is written.

    Args:
        config: the exporter's part of the flow.
        run: the run of its task.
        s3_client: a boto3 client of S3.
        default_bucket: the stack's bucket.

    Attributes:
        id: as the flow says.
        run: the run of its task.
        destination: the bucket that it writes to.
        manifests: of its batches.
    """

    def __init__(self, config: FileAssetExporter, run: Run, s3_client: S3Client, default_bucket: str) -> None:
        bucket = config.bucket or default_bucket
        self.id = config.id
        self._config = config
        self.run = run
        self.destination = Destination(s3_client, bucket, own=bucket == default_bucket, kms_key=config.kms_key)
        self.manifests = manifests_of(config, run, self.destination)
        self._render: Render | None = None
        self._series: Series | None = None
        self._start = self._attempt = ""
        self._rejected: list[Rejection] = []
        self._counted: list[Manifest] = []

    def recover(self, start: str) -> str | None:
        """Return the end of the batch that was committed from this start before, or None.

        Raises:
            ExporterStopped: S3 does not answer.
        """
        manifest = self.manifests.find(self.manifests.digest(start))
        if manifest is None:
            return None
        self._counted.append(manifest)
        return manifest.end

    def begin(self, start: str) -> None:
        """Start a batch. Its files have names that no other attempt from the same start has."""
        self.abandon()
        self._start = start
        self._attempt = uuid.uuid4().hex[:12]
        self._rejected = []
        run, config = self.run, self._config
        origin = (config.log_file_prefix, run.flow_id, run.task_id, config.id, name_time(run.started))
        name = "-".join((*origin, self.manifests.owner, self.manifests.digest(start)[:START_IN_NAMES], self._attempt))
        self._render = renderer(config)
        self._series = Series(config, self.destination, run.started, name)

    def write(self, delivery: Delivery) -> None:
        """Add one event; one that no line can be made of is named by the manifest, with the reason.

        Raises:
            ExporterStopped: S3 does not take it.
        """
        if self._series is None or self._render is None:
            raise RuntimeError("write before begin")
        try:
            line = self._render(delivery)
        except NoLineError as error:
            self._rejected.append(Rejection(id=delivery.event.id, reason=str(error)))
        else:
            self._series.add(line, delivery.key, delivery.event.created)

    def full(self) -> bool:
        """Tell whether the batch should be committed before more is written to it."""
        return self._series is not None and (self._series.count >= MOST_FILES or len(self._rejected) >= MOST_REJECTED)

    def commit(self, end: str) -> str:
        """Make the batch count, and return the end that counts.

        Raises:
            ExporterStopped: S3 does not take it. Nothing counts, or the next run finds that it does.
        """
        if self._series is None:
            raise RuntimeError("commit before begin")
        files = self._series.close()
        if not files and end == self._start:
            return end
        keys = [self.destination.key(file.uri) for file in files]
        self.destination.keep(keys)
        try:
            counted = self.manifests.commit(self._manifest(end, files))
        except NotCommittedError:
            self.destination.give_up(keys)
            raise
        if counted.attempt != self._attempt:
            self.destination.give_up(keys)
        self._series = self._render = None
        self._counted.append(counted)
        return counted.end

    def abandon(self) -> None:
        """Drop what was not committed. Never raises."""
        self._render = None
        series, self._series = self._series, None
        if series is not None:
            series.abort()

    def outputs(self) -> dict[str, Any]:
        """Return the addresses of the files that count and of the manifests that name them."""
        return {
            "uris": [uri for manifest in self._counted for uri in manifest.uris],
            "lines": sum(manifest.lines for manifest in self._counted),
            "rejected": sum(len(manifest.rejected) for manifest in self._counted),
            "manifests": [self.destination.uri(self.manifests.key(manifest.start)) for manifest in self._counted],
        }

    def _manifest(self, end: str, files: tuple[FileEntry, ...]) -> Manifest:
        run, config = self.run, self._config
        return Manifest(
            namespace=run.namespace, flow_id=run.flow_id, task_id=run.task_id, exporter_id=config.id,
            state_key=run.state_key, start=self.manifests.digest(self._start), end=end, attempt=self._attempt,
            created=utc_now(), format=config.format, compression=config.compression, content=config.content,
            lines=sum(file.lines for file in files), files=files, rejected=tuple(self._rejected),
        )  # fmt: skip


def manifests_of(config: FileAssetExporter, run: Run, destination: Destination) -> Manifests:
    """Return the manifests of an exporter; they lie beside its files, outside of every date and partition."""
    owner = (run.namespace, run.flow_id, run.task_id, config.id, run.state_key)
    return Manifests(destination, parse_key(config.key).root, owner)
