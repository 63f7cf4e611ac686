"""The manifest is the commit: whoever writes it first from a start has decided, and only files it names count."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.breaking import BreakingClient, Failing
from tests.support.shipping import NOON, lineage_event
from tests.support.tables import aws_client
from waybill.clock import iso
from waybill.errors import ExporterStopped
from waybill.export.files.config import FileAssetExporter
from waybill.export.files.exporter import FileExporter
from waybill.export.ports import Deadline, Delivery, Run

if TYPE_CHECKING:
    from tests.support.filing import FilingWorld

UNCOMMITTED = [{"Key": "waybill", "Value": "uncommitted"}]


def exporter(world: FilingWorld, *, s3: Any = None, **properties: Any) -> FileExporter:
    config = {"id": "file", "type": "FileAssetExporter", "format": "JSON"} | properties
    run = Run("company.platform", "ship", "ship_lineage", "state", NOON, Deadline(60))
    return FileExporter(FileAssetExporter.model_validate(config), run, s3 or world.s3, world.tables.bucket)


def write(target: FileExporter, *ids: str) -> None:
    for event_id in ids:
        target.write(Delivery(f"key-{event_id}", lineage_event(id=event_id, created=iso(NOON)), (), ()))


def ids(world: FilingWorld, uris: list[str]) -> list[str]:
    return [document["id"] for document in world.documents(uris)]


def test_a_committed_batch_is_found_by_its_start(world: FilingWorld) -> None:
    first = exporter(world)
    assert first.recover("start") is None
    first.begin("start")
    write(first, "a", "b")
    assert first.commit("end") == "end"

    later = exporter(world)

    assert (later.recover("end"), later.recover("start")) == (None, "end")
    assert later.outputs() == first.outputs()
    assert ids(world, later.outputs()["uris"]) == ["a", "b"]


def test_the_loser_of_a_race_takes_over_what_the_winner_decided(world: FilingWorld) -> None:
    winner, loser = exporter(world), exporter(world)
    for one in (winner, loser):
        one.begin("start")
    write(winner, "a")
    write(loser, "a", "b")

    assert (winner.commit("after a"), loser.commit("after b")) == ("after a", "after a")

    assert loser.outputs() == winner.outputs()
    assert ids(world, world.counted_uris()) == ["a"]
    (orphan,) = [
        key for key in world.object_keys() if key.endswith("-00001.json") and world.uri(key) not in world.counted_uris()
    ]
    assert world.tags(world.uri(orphan)) == UNCOMMITTED
    assert world.tags(world.counted_uris()[0]) == []


def test_many_racers_leave_one_manifest(world: FilingWorld) -> None:
    racers = [exporter(world) for _ in range(8)]
    for number, racer in enumerate(racers):
        racer.begin("start")
        write(racer, f"event-{number}")
    ends: list[str] = []
    threads = [
        threading.Thread(target=lambda racer=racer, number=number: ends.append(racer.commit(f"end-{number}")))
        for number, racer in enumerate(racers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(ends)) == 1
    assert [manifest["end"] for manifest in world.manifests()] == [ends[0]]
    assert ids(world, world.counted_uris()) == [f"event-{ends[0].removeprefix('end-')}"]


@pytest.mark.parametrize("carried_out", [False, True], ids=["before", "after"])
def test_a_network_that_goes_away_at_any_call_stops_the_exporter_and_repeats_nothing(
    world: FilingWorld, carried_out: bool
) -> None:
    for call in range(1, 20):
        start, network = f"start-{call}", Failing(call, carried_out=carried_out)
        broken = exporter(world, s3=BreakingClient(world.s3, network), maxLinesPerFile=1)
        broken.begin(start)
        stopped = ""
        try:
            write(broken, f"{call}-a", f"{call}-b")
            broken.commit("end")
        except ExporterStopped as error:
            broken.abandon()
            stopped = str(error)
        later = exporter(world)
        if later.recover(start) is None:
            later.begin(start)
            write(later, f"{call}-a", f"{call}-b")
            later.commit("end")

        assert ids(world, later.outputs()["uris"]) == [f"{call}-a", f"{call}-b"]
        if not stopped:
            break
        assert f"in s3://{world.tables.bucket}: Could not connect" in stopped
    else:
        pytest.fail("it never came through")
    assert sorted(ids(world, world.counted_uris())) == sorted(
        f"{number}-{name}" for number in range(1, call + 1) for name in "ab"
    )


def test_a_manifest_whose_answer_was_lost_is_recognized_as_ones_own(world: FilingWorld) -> None:
    target = exporter(world, s3=TryingTwice(world.s3))
    target.begin("start")
    write(target, "a")

    assert target.commit("end") == "end"

    (uri,) = target.outputs()["uris"]
    assert world.tags(uri) == []


class TryingTwice:
    """A client that puts each object twice, as one does whose first answer got lost."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def put_object(self, **named: Any) -> Any:
        self._client.put_object(**named)
        return self._client.put_object(**named)


def test_other_starts_exporters_and_keys_of_state_have_manifests_of_their_own(world: FilingWorld) -> None:
    for target, start in ((exporter(world), "1"), (exporter(world), "2"), (exporter(world, id="other"), "1")):
        target.begin(start)
        write(target, "a")
        target.commit("end")
    elsewhere = FileExporter(
        FileAssetExporter(id="file", type="FileAssetExporter"),
        Run("company.platform", "ship", "ship_lineage", "another state", NOON, Deadline(60)),
        world.s3,
        world.tables.bucket,
    )

    assert elsewhere.recover("1") is None
    assert len(world.manifests()) == 3
    assert len(set(world.counted_uris())) == 3


def test_what_is_abandoned_leaves_only_files_that_expire(world: FilingWorld) -> None:
    target = exporter(world, maxLinesPerFile=1)
    target.begin("start")
    write(target, "a", "b", "c")
    target.abandon()

    assert world.manifests() == []
    assert {tuple(map(str, world.tags(world.uri(key)))) for key in world.object_keys()} == {
        tuple(map(str, UNCOMMITTED))
    }
    assert world.s3.list_multipart_uploads(Bucket=world.tables.bucket).get("Uploads", []) == []


def test_a_batch_larger_than_a_part_is_one_object(world: FilingWorld) -> None:
    target = exporter(world)
    target.begin("start")
    long = {"text": "x" * 900_000}
    for number in range(13):
        event = lineage_event(id=str(number), created=iso(NOON), labels=long)
        target.write(Delivery(str(number), event, (), ()))
    target.commit("end")

    (uri,) = target.outputs()["uris"]
    assert ids(world, [uri]) == [str(number) for number in range(13)]
    (file,) = world.manifests()[0]["files"]
    head = world.s3.head_object(Bucket=world.tables.bucket, Key=world.key(uri))
    assert (head["ContentLength"], head["ETag"].strip('"').endswith("-3")) == (file["bytes"], True)


def test_a_damaged_manifest_stops_the_exporter_and_says_what_to_do(world: FilingWorld) -> None:
    target = exporter(world)
    target.begin("start")
    write(target, "a")
    target.commit("end")
    (key,) = [key for key in world.object_keys() if "_manifests" in key]
    world.s3.put_object(Bucket=world.tables.bucket, Key=key, Body=b"{")

    with pytest.raises(ExporterStopped, match=r"is no manifest.*restore an older version of it"):
        exporter(world).recover("start")


@pytest.mark.parametrize("bucket", ["no-such-bucket"])
def test_a_bucket_that_does_not_exist_stops_the_exporter(world: FilingWorld, bucket: str) -> None:
    target = exporter(world, bucket=bucket)

    with pytest.raises(ExporterStopped) as stopped:
        target.recover("start")

    assert str(stopped.value) == (
        f"cannot look for {target.manifests.key(target.manifests.digest('start'))} in s3://no-such-bucket: "
        "the bucket does not exist; make it, or correct `bucket`"
    )


def test_files_are_encrypted_with_the_key_that_is_asked_for(world: FilingWorld) -> None:
    key = aws_client(world.tables.url, "kms").create_key()["KeyMetadata"]["Arn"]
    target = exporter(world, kmsKey=key)
    target.begin("start")
    write(target, "a")
    target.commit("end")

    heads = [world.s3.head_object(Bucket=world.tables.bucket, Key=object_key) for object_key in world.object_keys()]

    assert [(head["ServerSideEncryption"], head["SSEKMSKeyId"]) for head in heads] == [("aws:kms", key)] * 2
