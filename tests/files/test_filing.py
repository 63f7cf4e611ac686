"""What a run of a file exporter leaves in S3 and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from waybill.export.files import exporter
from waybill.model.asset import AssetRef
from waybill.model.flow import parse_flow

if TYPE_CHECKING:
    from tests.support.filing import FilingWorld

GUIDE = {
    "id": "ship_lineage_to_s3",
    "namespace": "company.platform",
    "tasks": [
        {
            "id": "export_lineage",
            "type": "io.kestra.plugin.ee.assets.AssetShipper",
            "assetExporters": [
                {"id": "file", "type": "io.kestra.plugin.ee.assets.FileAssetExporter", "format": "JSON"}
            ],
        },
        {
            "id": "upload",
            "type": "io.kestra.plugin.aws.s3.Upload",
            "region": "{{ secret('AWS_DEFAULT_REGION') }}",
            "accessKeyId": "{{ secret('AWS_ACCESS_KEY_ID') }}",
            "secretKeyId": "{{ secret('AWS_SECRET_KEY_ID') }}",
            "bucket": "company-lineage",
            "key": "kestra/{{ execution.startDate | date('yyyy-MM-dd') }}",
            "from": "{{ outputs.export_lineage.outputs.file.uris }}",
        },
    ],
    "triggers": [{"id": "daily", "type": "io.kestra.plugin.core.trigger.Schedule", "cron": "@daily"}],
}
"""Step 4 of the guide, as JSON."""


def test_the_flow_of_the_guide_uploads_each_day_as_json(world: FilingWorld) -> None:
    world.s3.create_bucket(Bucket="company-lineage")
    world.fill(["load.customers"] * 3, ago=90)

    outputs = world.ship(parse_flow(GUIDE))["outputs"]["file"]

    (uri,) = outputs["uris"]
    assert uri.startswith(
        "s3://company-lineage/kestra/2026-12-01/kestra-log-file-ship_lineage_to_s3-export_lineage-file-"
    )
    assert uri.endswith("-00001.json")
    assert [document["id"] for document in world.documents([uri])] == world.event_ids()
    world.clock.turn(days=1)
    world.event()
    (next_day,) = world.ship(parse_flow(GUIDE))["outputs"]["file"]["uris"]
    assert next_day.startswith("s3://company-lineage/kestra/2026-12-02/")
    assert world.object_keys() == []


def test_a_line_is_the_event_with_its_assets_as_they_are_now(world: FilingWorld) -> None:
    world.catalog.put("raw", type="table", namespace="company.data", metadata={"owner": "sales", "columns": [{"n": 1}]})
    world.catalog.put("clean", type="table", deleted=True)
    key = world.event(inputs=(AssetRef("raw", "table"),), outputs=(AssetRef("clean", "table"),), labels={"team": "a"})

    (document,) = world.documents(world.file()["uris"])

    (event_id,) = world.event_ids()
    assert document == {
        "id": event_id,
        "namespace": "company.platform",
        "flowId": "load",
        "taskId": "customers",
        "executionId": "execution",
        "taskRunId": document["taskRunId"],
        "state": "SUCCESS",
        "startDate": "2026-12-01T12:00:00.000Z",
        "endDate": "2026-12-01T12:00:00.000Z",
        "labels": {"team": "a"},
        "created": "2026-12-01T11:59:00.000Z",
        "timestamp": "2026-12-01T11:59:00.000Z",
        "inputs": [
            {
                "id": "raw",
                "type": "table",
                "namespace": "company.data",
                "metadata": {"owner": "sales", "columns": [{"n": 1}]},
                "deleted": False,
            }
        ],
        "outputs": [],
    }
    assert world.manifests()[0]["files"][0]["first"] == key


def test_a_file_ends_when_it_has_its_lines(world: FilingWorld) -> None:
    keys = world.fill((f"load.task_{number % 5}" for number in range(25)), ago=900, apart=30)

    outputs = world.file(maxLinesPerFile=10)

    assert [len(world.lines(uri)) for uri in outputs["uris"]] == [10, 10, 5]
    assert [document["id"] for document in world.documents(outputs["uris"])] == world.event_ids()
    (manifest,) = world.manifests()
    assert [(file["first"], file["last"]) for file in manifest["files"]] == [
        (keys[0], keys[9]),
        (keys[10], keys[19]),
        (keys[20], keys[24]),
    ]


def test_a_file_ends_when_it_has_its_bytes(world: FilingWorld) -> None:
    world.fill(["load.customers"] * 5, ago=60)

    outputs = world.file(maxBytesPerFile=1024)

    assert [len(world.lines(uri)) for uri in outputs["uris"]] == [2, 2, 1]


@pytest.mark.parametrize(
    ("partitioning", "folders"),
    [
        ("none", ["lake"]),
        ("month", ["lake/month=2026-11", "lake/month=2026-12"]),
        ("day", ["lake/dt=2026-11-30", "lake/dt=2026-12-01"]),
        ("hour", ["lake/dt=2026-11-30/hour=22", "lake/dt=2026-12-01/hour=10", "lake/dt=2026-12-01/hour=11"]),
    ],
)
def test_a_file_ends_at_the_border_of_a_partition(world: FilingWorld, partitioning: str, folders: list[str]) -> None:
    for minutes in (830, 825, 100, 2):
        world.event(ago=minutes * 60)

    outputs = world.file(world.filing(partitioning=partitioning, key="lake", lookback="P1D"))

    assert [_folder(world, uri) for uri in outputs["uris"]] == folders
    assert [document["id"] for document in world.documents(outputs["uris"])] == world.event_ids()


@pytest.mark.parametrize(
    ("key", "folder"),
    [
        ("lake", "lake"),
        ("lake/", "lake"),
        ("{{ event.created | date('yyyy/MM') }}", "2026/12"),
        ("run-{{ execution.startDate | date(\"yyyy-MM-dd'T'HHmm\") }}/x", "run-2026-12-01T1200/x"),
    ],
)
def test_the_key_says_the_folder(world: FilingWorld, key: str, folder: str) -> None:
    world.event()

    (uri,) = world.file(key=key)["uris"]

    assert _folder(world, uri) == folder


@pytest.mark.parametrize(("compression", "suffix"), [("none", ".json"), ("gzip", ".json.gz"), ("zstd", ".json.zst")])
def test_files_are_compressed_as_asked(world: FilingWorld, compression: str, suffix: str) -> None:
    world.fill(["load.customers"] * 5, ago=60)

    (uri,) = world.file(compression=compression)["uris"]

    assert uri.endswith(f"-00001{suffix}")
    assert [document["id"] for document in world.documents([uri])] == world.event_ids()


def test_a_run_without_events_writes_nothing(world: FilingWorld) -> None:
    outputs = world.file()

    assert (outputs["uris"], outputs["lines"], world.object_keys()) == ([], 0, [])


def test_a_backlog_of_many_files_is_committed_in_batches(world: FilingWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "MOST_FILES", 20)
    world.fill(["load.customers"] * 150, ago=600, apart=1)

    outputs = world.file(maxLinesPerFile=1)

    counts = [len(manifest["files"]) for manifest in world.manifests()]
    assert (sum(counts), len(outputs["uris"]), len(counts) > 1, max(counts) < 20 + 64) == (150, 150, True, True)
    assert [document["id"] for document in world.documents(outputs["uris"])] == world.event_ids()


def test_the_manifest_says_what_counts(world: FilingWorld) -> None:
    world.fill(["load.customers"] * 3, ago=60)

    outputs = world.file(compression="gzip")

    (manifest,) = world.manifests()
    (file,) = manifest["files"]
    (uri,) = outputs["uris"]
    body = world.body(uri.removeprefix(f"s3://{world.tables.bucket}/"))
    assert (file["uri"], file["lines"], file["bytes"]) == (uri, 3, len(body))
    assert outputs["manifests"] == [
        f"s3://{world.tables.bucket}/lineage/_manifests/company.platform/ship/ship_lineage/file/{manifest['start']}.json"
    ]
    described = {name: manifest[name] for name in ("flowId", "format", "compression", "content", "lines", "version")}
    assert described == {
        "flowId": "ship",
        "format": "JSON",
        "compression": "gzip",
        "content": "lineage",
        "lines": 3,
        "version": 1,
    }


def _folder(world: FilingWorld, uri: str) -> str:
    return uri.removeprefix(f"s3://{world.tables.bucket}/").rpartition("/")[0]
