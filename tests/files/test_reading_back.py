"""Others read what is written: DuckDB the JSON and its partitions, Amazon's own library the Ion."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from amazon.ion import simpleion

from tools.emulator import ROOT
from waybill.model.asset import AssetRef

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.filing import FilingWorld

OWNED = {"owner": "sales", "rows": 12, "share": 0.25, "tags": ["a", None], "nested": {"a-b": True, "null": None}}


def downloaded(world: FilingWorld, folder: Path) -> Path:
    """Copy the bucket into a folder, key by key, as a data lake sees it."""
    for key in world.object_keys():
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(world.body(key))
    return folder


@pytest.mark.parametrize(
    ("compression", "pattern"), [("none", "*.json"), ("gzip", "*.json.gz"), ("zstd", "*.json.zst")]
)
def test_duckdb_reads_the_json_and_finds_the_partitions(
    world: FilingWorld, tmp_path: Path, compression: str, pattern: str
) -> None:
    world.catalog.put("clean", type="table", namespace="company.data", metadata={"owner": "sales"})
    for minutes in (830, 825, 100, 2):
        world.event(ago=minutes * 60)
    world.file(world.filing(partitioning="day", compression=compression, lookback="P1D", key="lake"))

    lake = downloaded(world, tmp_path) / "lake"
    rows = duckdb.execute(
        f"""
        SELECT dt, count(*), count(DISTINCT id), max(outputs[1].metadata.owner),
               min(created) = TIMESTAMPTZ '2026-11-30T22:10:00Z'
        FROM read_json('{lake}/dt=*/{pattern}', hive_partitioning = true)
        GROUP BY dt ORDER BY dt
        """  # noqa: S608
    ).fetchall()

    assert [(str(dt), *rest) for dt, *rest in rows] == [
        ("2026-11-30", 2, 2, "sales", True),
        ("2026-12-01", 2, 2, "sales", False),
    ]


def test_duckdb_finds_by_the_manifests_which_files_count(world: FilingWorld, tmp_path: Path) -> None:
    world.fill(["load.customers"] * 5, ago=60)
    world.file(maxLinesPerFile=2)

    bucket = downloaded(world, tmp_path)
    counted = duckdb.execute(
        f"SELECT file.uri FROM (SELECT unnest(files) AS file FROM read_json('{bucket}/lineage/_manifests/**/*.json'))"  # noqa: S608
    ).fetchall()

    assert [uri for (uri,) in counted] == world.counted_uris()


def test_the_query_of_the_docs_reads_keys_that_differ_only_in_case(
    world: FilingWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "files.md").read_text(), re.DOTALL)[0]
    world.catalog.put("raw", type="table", metadata={"Owner": "a", "owner": {"Name": 1, "name": "b"}})
    world.event(ago=60, inputs=(AssetRef("raw"),), labels={"Env": "1", "env": "2"})
    world.event("load.others", ago=50, inputs=(), labels={"ENV": "3"}, error={"message": "m", "Message": "n"})
    world.file(key="lake", partitioning="day", compression="gzip")
    downloaded(world, tmp_path)

    monkeypatch.chdir(tmp_path)
    read = query.replace("company-lineage", world.tables.bucket).strip().rstrip(";")
    rows = duckdb.execute(
        f"SELECT labels, inputs[1] ->> '$.metadata.owner.name' FROM ({read}) ORDER BY created"  # noqa: S608
    ).fetchall()

    assert rows == [({"Env": '"1"', "env": '"2"'}, "b"), ({"ENV": '"3"'}, None)]


def test_the_query_of_the_docs_reads_what_counts_and_nothing_else(
    world: FilingWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "files.md").read_text(), re.DOTALL)[0]
    world.fill(["load.customers"] * 3, ago=60)
    (uri,) = world.file(key="lake", partitioning="day", compression="gzip")["uris"]
    orphan = world.key(uri).replace("-00001", "-00002")
    world.s3.put_object(Bucket=world.tables.bucket, Key=orphan, Body=world.body(world.key(uri)))
    downloaded(world, tmp_path)

    monkeypatch.chdir(tmp_path)
    read = duckdb.execute(query.replace("company-lineage", world.tables.bucket)).fetchnumpy()

    assert sorted(map(str, read["id"])) == sorted(world.event_ids())


def test_amazon_ion_reads_the_ion_with_times_as_timestamps(world: FilingWorld) -> None:
    world.catalog.put("raw", type="table", metadata=OWNED, created=datetime(2026, 1, 1, tzinfo=UTC))
    world.event(inputs=(AssetRef("raw"),), outputs=(), error={"message": 'it said "no"\n\x01 \u2028 é 😀'})

    (uri,) = world.file(format="ION")["uris"]

    (line,) = world.lines(uri)
    event: Any = simpleion.loads(line)
    assert uri.endswith(".ion")
    assert (event["state"], event["error"]["message"]) == ("SUCCESS", 'it said "no"\n\x01 \u2028 é 😀')
    assert [event[name] for name in ("created", "timestamp", "startDate")] == [
        datetime(2026, 12, 1, 11, 59, tzinfo=UTC),
        datetime(2026, 12, 1, 11, 59, tzinfo=UTC),
        datetime(2026, 12, 1, 12, tzinfo=UTC),
    ]
    (asset,) = event["inputs"]
    assert asset["created"] == datetime(2026, 1, 1, tzinfo=UTC)
    assert simpleion.dumps(asset["metadata"], binary=False) == (
        "$ion_1_0 {owner:\"sales\",rows:12,share:0.25,tags:[\"a\",null],nested:{'a-b':true,'null':null}}"
    )


def test_amazon_ion_reads_keys_that_look_like_numbers_of_symbols(world: FilingWorld) -> None:
    labels = {"$10": "$11", "text": '{"$12":1,"$13":2}', '"$14': "a", "$ion": "b"}
    world.catalog.put("raw", type="table", metadata={"$15": {"$16": [{"$0": "{"}]}})
    world.event(inputs=(AssetRef("raw"),), labels=labels)

    (uri,) = world.file(format="ION")["uris"]

    (line,) = world.lines(uri)
    event: Any = simpleion.loads(line)
    assert dict(event["labels"]) == labels
    assert simpleion.dumps(event["inputs"][0]["metadata"], binary=False) == "$ion_1_0 {'$15':{'$16':[{'$0':\"{\"}]}}"


def test_ion_is_the_default_and_is_one_stream_of_values(world: FilingWorld) -> None:
    world.fill(["load.customers"] * 20, ago=60)

    (uri,) = world.file(world.filing(format="ION", compression="gzip"))["uris"]

    values: Any = simpleion.loads(b"".join(world.lines(uri)), single_value=False)
    assert [value["id"] for value in values] == world.event_ids()
    assert re.fullmatch(r".*-00001\.ion\.gz", uri)


def test_openlineage_is_one_run_event_a_line(world: FilingWorld) -> None:
    world.catalog.put(
        "clean", type="table", namespace="company.data", metadata={"lineage_namespace": "postgres://w:5432"}
    )
    world.event(inputs=())

    outputs = world.file(
        content="openlineage", mappings={"table": {"namespace": "lineage_namespace"}}, defaultNamespace="here"
    )

    (event,) = world.documents(outputs["uris"])
    assert (event["eventType"], event["job"]["name"], event["schemaURL"].rpartition("/")[2]) == (
        "COMPLETE",
        "load.customers",
        "RunEvent",
    )
    assert [(dataset["namespace"], dataset["name"]) for dataset in event["outputs"]] == [("postgres://w:5432", "clean")]


def test_an_asset_without_its_mapped_key_stops_the_export_and_the_position_stays(world: FilingWorld) -> None:
    world.catalog.put("clean", type="table")
    world.event()
    flow = world.filing(content="openlineage", mappings={"table": {"namespace": "lineage_namespace"}})

    with pytest.raises(Exception, match="lineage_namespace"):
        world.file(flow)

    world.catalog.put("clean", type="table", metadata={"lineage_namespace": "postgres://w:5432"})
    world.catalog.put("raw", type="table", metadata={"lineage_namespace": "postgres://w:5432"})
    assert world.file(flow)["lines"] == 1


def test_an_event_that_openlineage_cannot_carry_is_named_by_the_manifest(world: FilingWorld) -> None:
    world.catalog.put("clean", type="table", metadata={"ns": "bad\x00namespace"})
    world.catalog.put("raw", type="other")
    world.event()

    outputs = world.file(content="openlineage", mappings={"table": {"namespace": "ns"}})

    (manifest,) = world.manifests()
    assert (outputs["uris"], outputs["rejected"]) == ([], 1)
    assert [rejection["id"] for rejection in manifest["rejected"]] == world.event_ids()
    assert "U+0000" in manifest["rejected"][0]["reason"]
