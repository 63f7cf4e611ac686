"""Bodies too large for an item or an invocation, kept in S3."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from waybill.errors import InvalidDocument

_POINTER = re.compile(r"s3://([^/]+)/(.+)")

LARGEST_INLINE = 340_000
"""Bytes of a body that still fit an item of 400 KB beside its keys, doubled by nothing."""


class Objects:
    """The objects of one bucket."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, key: str, body: bytes) -> None:
        """Write an object whole."""
        self._client.put_object(Bucket=self._bucket, Key=key, Body=body)

    def get(self, key: str) -> bytes:
        """Read an object whole."""
        body: bytes = self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        return body

    def find(self, key: str) -> bytes | None:
        """Read an object whole; None when it is not there.

        S3 answers AccessDenied for what is not there to whoever may not list the whole bucket, so it is looked for.
        """
        try:
            return self.get(key)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "NoSuchKey" or (code == "AccessDenied" and not self._is_there(key)):
                return None
            raise

    def _is_there(self, key: str) -> bool:
        listed = self._client.list_objects_v2(Bucket=self._bucket, Prefix=key, MaxKeys=1)
        return any(item["Key"] == key for item in listed.get("Contents", ()))


def read_pointer(client: Any, path: str, pointer: str, error: type[InvalidDocument]) -> bytes:
    """Read the document that `s3://bucket/key` points to.

    Raises:
        InvalidDocument: of the class given, when the pointer is none or nothing that may be read stands there.
    """
    match = _POINTER.fullmatch(pointer)
    if match is None:
        raise error([f"{path}: must be written s3://bucket/key"])
    try:
        body: bytes = client.get_object(Bucket=match[1], Key=match[2])["Body"].read()
    except ClientError as failure:
        code = failure.response["Error"]["Code"]
        if code in ("NoSuchKey", "NoSuchBucket", "AccessDenied", "404", "403"):
            raise error([f"{path}: {pointer} cannot be read ({code})"]) from failure
        raise
    return body
