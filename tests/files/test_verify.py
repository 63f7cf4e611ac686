"""`waybill files`: what manifests, files and the log say of each other."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
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
NOTHING: dict[str, Any] = {"compared": True, "missing": [], "double": [], "damaged": {}, "orphans": [], "rejected": []}


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
    world.event()
    world.file(flow)
    key = world.event("load.others", ago=90)
    assert check(world, flow) == NOTHING, "a late commit is found by the next run"
    world.clock.turn(minutes=30)
    world.file(flow)
    (_, late) = (manifest for manifest in sorted(world.manifests(), key=lambda one: str(one["created"])))
    (file,) = late["files"]
    assert file["first"] == key

    world.s3.delete_object(Bucket=world.tables.bucket, Key=world.key(late_key(world, late)))

    assert check(world, flow) == NOTHING | {"missing": world.event_ids()[:1], "orphans": [file["uri"]]}


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

    assert list(check(world, flow)["damaged"]) == [uri]


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
