"""One object, written as a stream: part by part when it is larger than a part."""

from __future__ import annotations

import hashlib
import io
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from waybill.errors import ExporterStopped
from waybill.export.files.destination import UNCOMMITTED, Destination

PART_BYTES = 5 * 1024 * 1024
"""S3 wants no less of every part but the last, and 10,000 parts at most; smaller parts mean less memory."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An object that is whole in S3: its size and SHA-256 as it lies there."""

    uri: str
    size: int
    sha256: str


class Upload:
    """An object on its way. It exists only once `finish` has returned; after an error, `abort` drops the rest of it."""

    def __init__(self, destination: Destination, key: str, content_type: str) -> None:
        self.key = key
        self.size = 0
        self._to = destination
        self._about: dict[str, Any] = {"ContentType": content_type, **destination.encryption}
        if destination.own:
            self._about["Tagging"] = "{Key}={Value}".format(**UNCOMMITTED)
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._digest = hashlib.sha256()
        self._upload_id: str | None = None
        self._parts: list[Any] = []

    def write(self, data: bytes) -> None:
        """Add data.

        Raises:
            ExporterStopped: S3 does not take it.
        """
        self._gathered.append(data)
        self._gathered_bytes += len(data)
        self.size += len(data)
        if self._gathered_bytes >= PART_BYTES:
            self._send_part()

    def finish(self) -> Stored:
        """Make the object exist.

        Raises:
            ExporterStopped: S3 does not take it.
        """
        if self._upload_id is None:
            body = _Body(self._take_part())
            with self._to.told("write"):
                self._to.s3.put_object(Bucket=self._to.bucket, Key=self.key, Body=body, **self._about)
        else:
            if self._gathered_bytes:
                self._send_part()
            with self._to.told("complete an upload"):
                self._to.s3.complete_multipart_upload(
                    Bucket=self._to.bucket,
                    Key=self.key,
                    UploadId=self._upload_id,
                    MultipartUpload={"Parts": self._parts},
                )
            self._upload_id = None
        return Stored(self._to.uri(self.key), self.size, self._digest.hexdigest())

    def abort(self) -> None:
        """Drop what was sent. Never raises: what is left over is removed by the bucket's lifecycle."""
        upload_id, self._upload_id = self._upload_id, None
        if upload_id is not None:
            with suppress(ExporterStopped), self._to.told("abort an upload"):
                self._to.s3.abort_multipart_upload(Bucket=self._to.bucket, Key=self.key, UploadId=upload_id)

    def _send_part(self) -> None:
        body = _Body(self._take_part())
        number = len(self._parts) + 1
        with self._to.told("write"):
            if self._upload_id is None:
                begun = self._to.s3.create_multipart_upload(Bucket=self._to.bucket, Key=self.key, **self._about)
                self._upload_id = begun["UploadId"]
            answer = self._to.s3.upload_part(
                Bucket=self._to.bucket, Key=self.key, UploadId=self._upload_id, PartNumber=number, Body=body
            )
        checksums = {name: value for name, value in answer.items() if name.startswith("Checksum")}
        self._parts.append({"PartNumber": number, "ETag": answer["ETag"], **checksums})

    def _take_part(self) -> bytes:
        part = b"".join(self._gathered)
        self._gathered = []
        self._gathered_bytes = 0
        self._digest.update(part)
        return part


class _Body(io.BytesIO):
    """A body that is sent as a whole: botocore reads small pieces, and Python's lock changes hands at each."""

    def read(self, _size: int | None = -1, /) -> bytes:
        """Return what is left."""
        return super().read()
