"""Objects in S3 that may not be there: what S3 answers to whoever may not list the whole bucket."""

from __future__ import annotations

import io
from typing import Any

import pytest
from botocore.exceptions import ClientError

from waybill.store.objects import Objects


class GuardedBucket:
    """S3 as a function meets it: it may get objects and list some folders, not the whole bucket.

    An emulator answers 404 for what is not there, S3 answers 403.
    """

    def __init__(self, readable: dict[str, bytes], forbidden: tuple[str, ...] = ()) -> None:
        self._readable = readable
        self._forbidden = forbidden

    def get_object(self, Key: str, **_: Any) -> dict[str, Any]:  # noqa: N803 - boto3's word
        if Key not in self._readable:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "GetObject")
        return {"Body": io.BytesIO(self._readable[Key])}

    def list_objects_v2(self, Prefix: str, **_: Any) -> dict[str, Any]:  # noqa: N803 - boto3's word
        keys = sorted(key for key in (*self._readable, *self._forbidden) if key.startswith(Prefix))
        return {"Contents": [{"Key": key} for key in keys[:1]]}


def test_an_object_is_read_whole() -> None:
    assert Objects(GuardedBucket({"events/a": b"whole"}), "bucket").find("events/a") == b"whole"


def test_an_object_that_is_not_there_is_told_from_one_that_may_not_be_read() -> None:
    objects = Objects(GuardedBucket({"events/ab": b""}, forbidden=("events/b",)), "bucket")

    assert objects.find("events/a") is None
    with pytest.raises(ClientError, match="AccessDenied"):
        objects.find("events/b")
