"""`waybill files`: what manifests, files and the log say of each other."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from typer.testing import CliRunner

import waybill.cli.files as command
from tests.support.filing import Mortal
from tests.support.shipping import Died
from waybill.clock import utc_now

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.filing import FilingWorld

UNCOMMITTED = [{"Key": "waybill", "Value": "uncommitted"}]
COUNTS = ("manifests", "files", "lines")
NOTHING: dict[str, Any] = {
    "compared": True,
    "unread": 0,
    "older": 0,
    "missing": [],
    "double": [],
    "damaged": {},
    "orphans": [],
    "rejected": [],
    "tagged": 0,
    "not_tagged": None,
}


def check(world: FilingWorld, flow: Any, *, hours: int = 24, expire_orphans: bool = False) -> dict[str, Any]:
    """Check the exporter of a flow some hours from now; return what was found, without what was counted."""
    now = utc_now() + timedelta(hours=hours)
    (found,) = command.findings(world.services, flow, now, expire_orphans=expire_orphans).values()
    return {name: value for name, value in asdict(found).items() if name not in COUNTS}


@pytest.mark.parametrize("properties", [{}, {"format": "ION", "compression": "zstd"}, {"content": "openlineage"}])
def test_files_that_are_whole_and_complete_are_sound(world: FilingWorld, properties: dict[str, Any]) -> None:
    flow = world.filing(maxLinesPerFile=4, **properties)
    world.fill((f"load.task_{number}" for number in range(10)), ago=600, apart=20)
    world.file(flow)
    world.clock.turn(minutes=2)
    world.event(ago=40)
    world.file(flow)
    world.event(ago=1)

    assert check(world, flow) == NOTHING


def test_an_event_that_is_in_no_file_is_missing(world: FilingWorld) -> None:
    flow = world.filing()
    world.event(ago=120)
    world.file(flow)
    key = world.event("load.others", ago=90)
    assert check(world, flow) == NOTHING, "a late commit is found by the next run"
    world.clock.turn(minutes=30)
    world.file(flow)
    (_, late) = (manifest for manifest in sorted(world.manifests(), key=lambda one: str(one["created"])))
    (file,) = late["files"]
    assert file["first"] == key

    world.s3.delete_object(Bucket=world.tables.bucket, Key=world.key(late_key(world, late)))

    assert check(world, flow) == NOTHING | {"missing": world.event_ids()[1:], "orphans": [file["uri"]]}


def late_key(world: FilingWorld, manifest: dict[str, Any]) -> str:
    return next(key for key in world.object_keys() if manifest["start"] in key)


def test_an_event_in_two_files_is_double(world: FilingWorld) -> None:
    flow = world.filing()
    world.event()
    world.file(flow)
    world.delete_state()
    world.file(flow)

    assert check(world, flow) == NOTHING | {"double": world.event_ids()}


def test_a_file_that_was_changed_cut_or_lost_is_damaged(world: FilingWorld) -> None:
    flow = world.filing(maxLinesPerFile=1, compression="gzip")
    world.fill(["load.customers"] * 4, ago=60)
    changed, cut, lost, sound = world.file(flow)["uris"]
    other = world.body(world.key(sound))
    world.s3.put_object(Bucket=world.tables.bucket, Key=world.key(changed), Body=other)
    world.s3.put_object(Bucket=world.tables.bucket, Key=world.key(cut), Body=world.body(world.key(cut))[:-8])
    world.s3.delete_object(Bucket=world.tables.bucket, Key=world.key(lost))

    found = check(world, flow)

    faults = {uri: fault.split(":")[0] for uri, fault in found["damaged"].items()}
    assert faults == {
        changed: "has other content than the manifest says",
        cut: "cannot be read after line 1",
        lost: "cannot be read after line 0",
    }
    ids = world.event_ids()
    assert (found["missing"], found["double"]) == (sorted([ids[0], ids[2]]), [ids[3]])


def test_a_manifest_that_cannot_be_read_is_damaged(world: FilingWorld) -> None:
    flow = world.filing()
    world.event()
    (uri,) = world.file(flow)["manifests"]
    world.s3.put_object(Bucket=world.tables.bucket, Key=world.key(uri), Body=b"{}")

    found = check(world, flow)

    assert found == NOTHING | {
        "unread": 1,
        "missing": world.event_ids(),
        "damaged": {uri: found["damaged"][uri]},
    }, "its files are no orphans"
    assert found["damaged"][uri].startswith("is no manifest")


def test_while_a_manifest_cannot_be_read_no_orphan_is_tagged(world: FilingWorld) -> None:
    flow = world.filing()
    world.event()
    outputs = world.file(flow)
    left = leave_behind(world, outputs["uris"][0])
    world.s3.put_object(Bucket=world.tables.bucket, Key=world.key(outputs["manifests"][0]), Body=b"{}")

    found = check(world, flow, expire_orphans=True)

    assert (found["orphans"], found["tagged"], found["not_tagged"]) == (
        [left],
        0,
        "what a manifest names that cannot be read is not known; restore an older version of it",
    )
    assert [world.tags(uri) for uri in (left, *outputs["uris"])] == [[], []]


def test_while_events_are_missing_no_orphan_is_tagged(world: FilingWorld) -> None:
    flow = world.filing()
    world.event()
    outputs = world.file(flow)
    world.s3.delete_object(Bucket=world.tables.bucket, Key=world.key(outputs["manifests"][0]))

    assert check(world, flow, expire_orphans=True) == NOTHING | {
        "missing": world.event_ids(),
        "orphans": outputs["uris"],
        "not_tagged": "they may hold the events that are missing, and their manifest be lost",
    }
    assert [world.tags(uri) for uri in outputs["uris"]] == [[]]


def leave_behind(world: FilingWorld, uri: str) -> str:
    """Leave a file of another start beside the one at an address, as a killed run does."""
    folder, _, name = uri.rpartition("/")
    parts = name.split("-")
    left = f"{folder}/{'-'.join([*parts[:-3], 'f' * 12, *parts[-2:]])}"
    world.s3.put_object(Bucket=world.tables.bucket, Key=world.key(left), Body=b"x")
    return left


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("lineage/prod", "lineage"),
        ("lineage/{{ event.created | date('yyyy') }}", "lineage/2026"),
        ("{{ event.created | date('yyyy') }}", "2026"),
    ],
)
def test_what_counted_before_the_key_was_changed_counts(world: FilingWorld, before: str, after: str) -> None:
    world.event()
    outputs = world.file(key=before)
    world.clock.turn(minutes=5)
    world.event("load.others", ago=60)
    flow = world.filing(key=after)
    world.file(flow)

    assert check(world, flow, expire_orphans=True) == NOTHING
    assert [world.tags(uri) for uri in outputs["uris"]] == [[]]


def test_events_from_before_all_files_are_counted_and_not_missing(world: FilingWorld) -> None:
    world.event()
    world.file(key="lineage")
    world.clock.turn(minutes=5)
    world.event("load.others", ago=60)
    flow = world.filing(key="kestra")
    world.file(flow)

    assert check(world, flow) == NOTHING | {"older": 1}


def test_an_event_that_no_line_could_be_made_of_is_not_missing(world: FilingWorld) -> None:
    world.catalog.put("clean", type="table", metadata={"ns": "bad\x00namespace"})
    world.catalog.put("raw", type="other")
    world.event()
    flow = world.filing(content="openlineage", mappings={"table": {"namespace": "ns"}})
    world.file(flow)

    assert check(world, flow) == NOTHING | {"rejected": world.event_ids()}


def test_an_event_counts_whatever_its_file_holds(world: FilingWorld) -> None:
    world.event()
    world.file()
    world.clock.turn(minutes=5)
    world.event("load.others", ago=60)
    flow = world.filing(content="openlineage")
    (uri,) = world.file(flow)["uris"]
    assert check(world, flow) == NOTHING

    world.s3.delete_object(Bucket=world.tables.bucket, Key=world.key(uri))
    assert check(world, flow)["missing"] == world.event_ids()[1:]


def test_an_event_in_files_of_both_kinds_is_double(world: FilingWorld) -> None:
    world.event()
    world.file()
    world.delete_state()
    flow = world.filing(content="openlineage")
    world.clock.turn(minutes=5)
    (uri,) = world.file(flow)["uris"]

    (line,) = world.documents([uri])
    assert check(world, flow) == NOTHING | {"double": [line["run"]["runId"]]}


def test_a_run_of_two_events_is_not_double_once_the_log_has_expired(world: FilingWorld) -> None:
    run = "11111111-1111-4111-8111-111111111111"
    for ago in (100, 99):
        world.event(ago=ago, task_run_id=run)
    flow = world.filing(content="openlineage")
    world.file(flow)
    assert check(world, flow) == NOTHING

    for item in world.dynamodb.scan(TableName=world.tables.lineage)["Items"]:
        if "body" in item:
            key = {name: item[name] for name in ("bucket", "id")}
            world.dynamodb.delete_item(TableName=world.tables.lineage, Key=key)

    assert check(world, flow) == NOTHING


def test_what_a_killed_run_left_is_an_orphan_once_it_is_old(world: FilingWorld) -> None:
    flow = world.filing(maxLinesPerFile=2)
    world.fill(["load.customers"] * 3, ago=60)
    process = Mortal(3)
    world.s3_of = lambda client: process.client(client, lambda name: name == "put_object")
    with pytest.raises(Died):
        world.file(flow)
    left = [world.uri(key) for key in world.object_keys()]
    assert [world.tags(uri) for uri in left] == [[], []], "they were about to be named"
    world.s3_of = lambda client: client
    world.clock.turn(minutes=2)
    world.file(flow)

    assert check(world, flow, hours=0) == NOTHING
    assert check(world, flow) == NOTHING | {"orphans": left}

    check(world, flow, expire_orphans=True)
    assert [world.tags(uri) for uri in left] == [UNCOMMITTED, UNCOMMITTED]
    assert [world.tags(uri) for uri in world.counted_uris()] == [[], []]


def test_another_exporter_with_a_like_name_is_not_looked_at(world: FilingWorld) -> None:
    world.event()
    world.file(id="file")
    world.ship(world.filing(id="file-2"))

    assert check(world, world.filing(id="file")) == NOTHING


def test_with_filters_on_assets_nothing_can_be_told_to_be_missing(world: FilingWorld) -> None:
    flow = world.filing(task={"assetTypes": ["table"]})
    world.event()
    world.file(flow)

    assert check(world, flow) == NOTHING | {"compared": False}


class Refusing:
    """A client of S3 that refuses one kind of call for one object, or for all."""

    def __init__(self, client: Any, call: str, key: str | None = None) -> None:
        self._client = client
        self._call = call
        self._key = key

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if name != self._call:
            return method

        def call(**named: Any) -> Any:
            if self._key in (None, named["Key"]):
                raise ClientError({"Error": {"Code": "InvalidObjectState", "Message": "It is archived."}}, name)
            return method(**named)

        return call


def test_a_file_that_may_not_be_read_is_damaged_and_the_others_are_checked(world: FilingWorld) -> None:
    flow = world.filing(maxLinesPerFile=1)
    world.fill(["load.customers"] * 3, ago=60)
    first, *_ = world.file(flow)["uris"]
    world.s3_of = lambda client: Refusing(client, "get_object", world.key(first))

    assert check(world, flow) == NOTHING | {
        "missing": world.event_ids()[:1],
        "damaged": {first: "cannot be read after line 0: InvalidObjectState: It is archived."},
    }


def test_orphans_are_counted_as_they_are_tagged_or_it_is_said_why_not(world: FilingWorld) -> None:
    flow = world.filing()
    world.event()
    left = leave_behind(world, world.file(flow)["uris"][0])
    world.s3_of = lambda client: Refusing(client, "put_object_tagging")
    refusal = f"cannot tag a file in s3://{world.tables.bucket}: InvalidObjectState: It is archived."
    assert check(world, flow, expire_orphans=True) == NOTHING | {"orphans": [left], "not_tagged": refusal}

    world.s3_of = lambda client: client
    assert check(world, flow, expire_orphans=True) == NOTHING | {"orphans": [left], "tagged": 1}


def test_in_another_bucket_nothing_is_tagged_and_that_is_said(world: FilingWorld) -> None:
    world.s3.create_bucket(Bucket="company-lake")
    flow = world.filing(bucket="company-lake")
    world.event()
    (uri,) = world.file(flow)["uris"]
    left = uri.replace(uri.split("-")[-3], "f" * 12)
    world.s3.put_object(Bucket="company-lake", Key=left.removeprefix("s3://company-lake/"), Body=b"x")

    assert check(world, flow, expire_orphans=True) == NOTHING | {
        "orphans": [left],
        "not_tagged": "the bucket is not the stack's, and nothing there removes what is tagged; delete them there",
    }


@pytest.fixture
def flow_file(world: FilingWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A flow that has filed two events, as a file; the command works on the world."""
    monkeypatch.setattr(command, "_services", lambda _: world.services)
    world.fill(["load.customers"] * 2, ago=60)
    flow = world.filing()
    world.file(flow)
    path = tmp_path / "flow.yaml"
    path.write_text(flow.model_dump_json(by_alias=True, exclude_none=True, exclude={"continuation", "triggers"}))
    return path


def test_the_command_says_that_all_is_well(flow_file: Path) -> None:
    result = CliRunner().invoke(command.app, ["verify", "--flow", str(flow_file)])

    assert (result.exit_code, result.output.splitlines()) == (
        0,
        ["ship_lineage.file: 2 events in 1 files, 1 manifests", "  each event stands in exactly one file"],
    )


def test_the_command_fails_when_something_is_wrong(world: FilingWorld, flow_file: Path) -> None:
    (uri,) = world.counted_uris()
    world.s3.delete_object(Bucket=world.tables.bucket, Key=world.key(uri))

    result = CliRunner().invoke(command.app, ["verify", "--json", "--flow", str(flow_file)])

    found = json.loads(result.output)["ship_lineage.file"]
    assert (result.exit_code, found["missing"]) == (1, sorted(world.event_ids()))
    assert found["damaged"] == {uri: "cannot be read after line 0: it is not there"}


def test_the_command_lists_the_files_that_count(world: FilingWorld, flow_file: Path) -> None:
    result = CliRunner().invoke(command.app, ["list", "--flow", str(flow_file)])

    (uri,) = world.counted_uris()
    assert result.output == f"{uri}\t2\t{len(world.body(world.key(uri)))}\n"


def test_the_command_lists_what_it_can_read_and_names_what_it_cannot(world: FilingWorld, flow_file: Path) -> None:
    (uri,) = world.counted_uris()
    (manifest,) = (key for key in world.object_keys() if "_manifests" in key)
    broken = manifest.replace("/file/", "/file/0")
    world.s3.put_object(Bucket=world.tables.bucket, Key=broken, Body=b"{")

    result = CliRunner().invoke(command.app, ["list", "--flow", str(flow_file)])

    assert (result.exit_code, result.stdout) == (1, f"{uri}\t2\t{len(world.body(world.key(uri)))}\n")
    assert result.stderr == f"{world.uri(broken)} is no manifest (1 faults)\n"


@pytest.mark.parametrize("name", ["list", "verify"])
def test_the_command_refuses_a_flow_that_files_nothing(tmp_path: Path, name: str) -> None:
    path = tmp_path / "flow.json"
    exporter = {"id": "marquez", "type": "OpenLineageAssetExporter", "uri": "http://marquez:5000"}
    task = {"id": "ship_lineage", "type": "AssetShipper", "assetExporters": [exporter]}
    path.write_text(json.dumps({"id": "ship", "namespace": "company.platform", "tasks": [task]}))

    result = CliRunner().invoke(command.app, [name, "--flow", str(path)])

    assert result.exit_code == 2, result.exception
    assert "the flow has no FileAssetExporter" in result.stderr


def test_the_command_says_how_many_orphans_expire(
    world: FilingWorld, flow_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = leave_behind(world, world.counted_uris()[0])
    monkeypatch.setattr(command, "utc_now", lambda: utc_now() + timedelta(days=1))

    result = CliRunner().invoke(command.app, ["verify", "--flow", str(flow_file), "--expire-orphans"])

    assert (result.exit_code, result.output.splitlines()[1:]) == (
        0,
        [f"  orphan: {left}", "  tagged: 1 orphans expire", "  each event stands in exactly one file"],
    )
