"""Whatever goes wrong in a run, it leaves nothing open behind: no upload, no thread, no setting of the interpreter."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from tests.support.filing import FilingWorld
from tests.support.tables import make_tables
from waybill.errors import ExportFailed
from waybill.export.files import series, upload
from waybill.export.files.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.emulator import Emulator

UNCOMMITTED = [{"Key": "waybill", "Value": "uncommitted"}]
MOST_CALLS = 40

Left = tuple[list[Any], list[str], float]


class Intercepted:
    """A client of S3; what it is given is asked before each call, by number and name, and may raise."""

    def __init__(self, client: Any, before: Callable[[int, str], None]) -> None:
        self._client = client
        self._before = before
        self._calls = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self._calls += 1
            self._before(self._calls, name)
            return method(*arguments, **named)

        return call if name != "get_paginator" else method


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (series, upload):
        monkeypatch.setattr(module, "PART_BYTES", 1_000)


def left_open(world: FilingWorld) -> Left:
    """Return uploads in work, threads of ours, and how long a thread may keep the interpreter."""
    uploads = world.s3.list_multipart_uploads(Bucket=world.tables.bucket).get("Uploads", [])
    threads = [thread.name for thread in threading.enumerate() if thread.name.startswith("files")]
    return uploads, threads, sys.getswitchinterval()


def filled_world(emulator: Emulator) -> FilingWorld:
    world = FilingWorld(make_tables(emulator.url))
    world.fill((f"load.task_{number}" for number in range(9)), ago=600, apart=20)
    return world


def fails_at(world: FilingWorld, call: int) -> list[str]:
    """Run until a call of S3 fails; return its name, or nothing when the run came through."""
    failed: list[str] = []

    def fail(number: int, name: str) -> None:
        if number == call:
            failed.append(name)
            raise MemoryError

    world.s3_of = lambda client: Intercepted(client, fail)
    with suppress(MemoryError):
        world.ship(world.filing(maxLinesPerFile=4))
    return failed


def test_an_error_of_any_kind_at_any_call_leaves_nothing_open(emulator: Emulator) -> None:
    nothing: Left = ([], [], sys.getswitchinterval())
    reached: set[str] = set()
    for call in range(1, MOST_CALLS):
        world = filled_world(emulator)
        failed = fails_at(world, call)
        assert left_open(world) == nothing, f"at call {call}: {failed}"
        if not failed:
            break
        reached.update(failed)
    assert reached == {
        "create_multipart_upload", "upload_part", "complete_multipart_upload", "put_object", "delete_object_tagging",
    }  # fmt: skip


def test_a_lease_that_is_lost_leaves_nothing_open(emulator: Emulator) -> None:
    nothing: Left = ([], [], sys.getswitchinterval())
    world = filled_world(emulator)

    def lose(_: int, name: str) -> None:
        if name == "upload_part":
            world.delete_state()

    world.s3_of = lambda client: Intercepted(client, lose)
    with pytest.raises(ExportFailed, match="a newer run has taken over, or the state was deleted"):
        world.ship(world.filing())

    assert (world.manifests(), left_open(world)) == ([], nothing)


@pytest.mark.parametrize(("retries", "tags"), [(0, UNCOMMITTED), (1, [])], ids=["refused", "after a lost answer"])
def test_files_expire_only_when_their_manifest_is_refused_for_sure(
    world: FilingWorld, retries: int, tags: list[dict[str, str]]
) -> None:
    world.fill(["load.customers"] * 2, ago=60)
    refusal: Any = {
        "Error": {"Code": "AccessDenied", "Message": "Access Denied"},
        "ResponseMetadata": {"HTTPStatusCode": 403, "RetryAttempts": retries},
    }
    puts: list[str] = []

    def refuse(_: int, name: str) -> None:
        if name != "put_object":
            return
        puts.append(name)
        if len(puts) > 2:
            raise ClientError(refusal, "PutObject")

    world.s3_of = lambda client: Intercepted(client, refuse)
    with pytest.raises(ExportFailed, match="cannot write lineage/_manifests/"):
        world.ship(world.filing(maxLinesPerFile=1))

    keys = world.object_keys()
    assert [world.tags(world.uri(key)) for key in keys] == [tags, tags]


def test_files_expire_when_one_of_them_cannot_be_untagged(world: FilingWorld) -> None:
    world.fill(["load.customers"] * 3, ago=60)
    calls: list[str] = []

    def refuse(_: int, name: str) -> None:
        calls.append(name)
        if calls.count("delete_object_tagging") == 2:
            calls.clear()
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "Access Denied"}}, "DeleteObjectTagging")

    world.s3_of = lambda client: Intercepted(client, refuse)
    with pytest.raises(ExportFailed, match="cannot untag a file"):
        world.ship(world.filing(maxLinesPerFile=1))

    assert [world.tags(world.uri(key)) for key in world.object_keys()] == [UNCOMMITTED] * 3


def test_threads_hand_over_sooner_for_as_long_as_there_is_a_pipeline() -> None:
    before = sys.getswitchinterval()
    first, second = Pipeline(), Pipeline()
    during = [sys.getswitchinterval()]
    for pipeline in (first, first, second):
        pipeline.stop()
        during.append(sys.getswitchinterval())

    assert during == [pytest.approx(0.0005)] * 3 + [before]
