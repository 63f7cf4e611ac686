"""The flow document: the guides' flows as they stand, and faults named by path."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
import yaml

from tests.support.shared import shared
from waybill.errors import InvalidFlow
from waybill.export.files.config import FileAssetExporter
from waybill.export.openlineage.config import OpenLineageAssetExporter
from waybill.model.flow import BARE_TASKS_ID, AssetShipper, Flow, parse_flow

GUIDE = "seeds/export-lineage-to-openlineage.txt"
TABLE = "io.kestra.plugin.ee.assets.Table"
DATASET = "io.kestra.plugin.ee.assets.Dataset"


def guide_block(first_line: str) -> Any:
    """The YAML of the guide that begins with a line, up to the first line of prose after it."""
    text = shared(GUIDE).read_text()
    block = text[re.search(rf"^{re.escape(first_line)}$", text, re.MULTILINE).start() :]  # type: ignore[union-attr]
    return yaml.safe_load(re.split(r"\n(?=[A-Z]|outputs\.)", block, maxsplit=1)[0])


def guide_tasks(number: int) -> Any:
    """The bare task list of the guide's step 2 or 3."""
    text = shared(GUIDE).read_text()
    step = text[text.index(f"Step {number}:") : text.index(f"Step {number + 1}:")]
    block = step[re.search(r"^- id: ", step, re.MULTILINE).start() :]  # type: ignore[union-attr]
    return yaml.safe_load(re.split(r"\n(?=[A-Z]|outputs\.)", block, maxsplit=1)[0])


def flow(**task: Any) -> dict[str, Any]:
    """A flow of one task with one exporter, changed as asked."""
    exporters = [{"id": "marquez", "type": "OpenLineageAssetExporter", "uri": "http://marquez:5000"}]
    shipper = {"id": "ship", "type": "AssetShipper", "assetExporters": exporters} | task
    return {"id": "flow", "namespace": "company.platform", "tasks": [shipper]}


def faults_of(document: Any) -> list[str]:
    with pytest.raises(InvalidFlow) as refused:
        parse_flow(document)
    return list(refused.value.faults)


def shipper_of(parsed: Flow) -> AssetShipper:
    (task,) = parsed.shippers
    return task


def test_the_guides_first_flow_is_taken_as_it_stands() -> None:
    parsed = parse_flow(guide_block("id: ship_lineage_to_marquez"))

    task = shipper_of(parsed)
    (exporter,) = task.asset_exporters
    assert (parsed.id, parsed.namespace, task.id) == ("ship_lineage_to_marquez", "company.platform", "ship_lineage")
    assert task.lookback_period == timedelta(days=7)
    assert isinstance(exporter, OpenLineageAssetExporter)
    assert (exporter.id, exporter.uri) == ("marquez", "http://marquez:5000")
    assert [trigger.cron for trigger in parsed.triggers] == ["@hourly"]


def test_the_guides_second_step_maps_assets() -> None:
    (exporter,) = shipper_of(parse_flow(guide_tasks(2))).asset_exporters

    assert isinstance(exporter, OpenLineageAssetExporter)
    assert {kind: (each.namespace, each.name) for kind, each in exporter.mappings.items()} == {
        TABLE: ("lineage_namespace", None)
    }


def test_the_guides_third_step_filters() -> None:
    parsed = parse_flow(guide_tasks(3))

    task = shipper_of(parsed)
    assert (parsed.id, parsed.namespace) == (BARE_TASKS_ID, BARE_TASKS_ID)
    assert (task.flow_namespace, task.asset_types) == ("company.data", (TABLE, DATASET))


def test_the_guides_upload_becomes_bucket_and_key_of_the_file_exporter_and_its_credentials_are_ignored() -> None:
    parsed = parse_flow(guide_block("id: ship_lineage_to_s3"))

    (exporter,) = shipper_of(parsed).asset_exporters
    assert isinstance(exporter, FileAssetExporter)
    assert (exporter.format, exporter.bucket, exporter.key) == (
        "JSON",
        "company-lineage",
        "kestra/{{ execution.startDate | date('yyyy-MM-dd') }}",
    )
    assert parsed.warnings == ("tasks.upload: accessKeyId, secretKeyId ignored; the function's own role writes",)


@pytest.mark.parametrize("prefix", ["", "io.kestra.plugin.ee.assets."])
def test_a_type_is_taken_whole_or_by_its_last_part(prefix: str) -> None:
    assert shipper_of(parse_flow(flow(type=f"{prefix}AssetShipper"))).type == "AssetShipper"


def test_the_defaults_are_those_of_the_reference_product() -> None:
    task = shipper_of(parse_flow(flow()))

    assert (task.lookback_period, task.offset_key, task.delete) == (timedelta(days=1), "AssetShipper-state", False)
    file = FileAssetExporter(id="file", type="FileAssetExporter")
    assert (file.format, file.max_lines_per_file, file.log_file_prefix) == ("ION", 100_000, "kestra-log-file")


@pytest.mark.parametrize(
    ("document", "faults"),
    [
        (
            flow(type="io.kestra.plugin.ee.assets.LogShipper"),
            ["tasks[0].type: 'io.kestra.plugin.ee.assets.LogShipper' is not known; use AssetShipper or Upload"],
        ),
        (
            flow(assetExporters=[{"id": "kafka", "type": "KafkaExporter"}]),
            [
                (
                    "tasks[0].assetExporters[0].type: 'KafkaExporter' is not known; "
                    "use OpenLineageAssetExporter or FileAssetExporter"
                )
            ],
        ),
        (flow(assetExporters=[]), ["tasks[0].assetExporters: needs at least 1"]),
        (
            flow(lookbackPeriod="7 days"),
            ["tasks[0].lookbackPeriod: must be an ISO 8601 duration such as P7D or PT12H"],
        ),
        (
            flow(assetExporters=[{"id": "a", "type": "FileAssetExporter"}, {"id": "a", "type": "FileAssetExporter"}]),
            ["tasks[0].assetExporters[1].id: 'a' is the id of tasks[0].assetExporters[0] already; give each its own"],
        ),
        (flow(lookbackPeriode="P7D"), ["tasks[0].lookbackPeriode: unknown property; did you mean lookbackPeriod?"]),
        (
            flow(assetExporters=[{"id": "a", "type": "FileAssetExporter", "maxLines": 3}]),
            ["tasks[0].assetExporters[0].maxLines: unknown property; did you mean maxLinesPerFile?"],
        ),
        (flow() | {"trigger": []}, ["trigger: unknown property; did you mean triggers?"]),
        (
            flow() | {"triggers": [{"id": "often", "type": "Schedule", "cron": "hourly"}]},
            ["triggers[0].cron: must be a cron expression of five fields, or one such as @hourly or @daily"],
        ),
        ([], ["tasks: needs at least 1"]),
        ("a flow", ["document: must be a JSON object"]),
        ({}, ["id: is required", "namespace: is required", "tasks: is required"]),
    ],
)
def test_a_fault_is_named_by_its_path(document: Any, faults: list[str]) -> None:
    assert faults_of(document) == faults


def test_all_faults_are_named_at_once() -> None:
    document = flow(lookbackPeriod="P", assetExporters=[{"id": "a", "type": "Nothing"}], delete="yes")

    assert [fault.split(":")[0] for fault in faults_of(document)] == [
        "tasks[0].assetExporters[0].type",
        "tasks[0].lookbackPeriod",
        "tasks[0].delete",
    ]


def test_an_upload_of_something_else_is_refused() -> None:
    document = flow()
    document["tasks"].append(
        {"id": "upload", "type": "Upload", "bucket": "lineage", "key": "k", "from": "{{ inputs.file }}"}
    )

    assert faults_of(document) == [
        "tasks[1].from: must be {{ outputs.<task>.outputs.<exporter>.uris }} of a file exporter of this flow"
    ]


def uploads(*tasks: dict[str, str], **properties: str) -> dict[str, Any]:
    """Return a flow of one file exporter with these properties, and uploads of its files."""
    exporter = {"id": "file", "type": "FileAssetExporter"} | properties
    upload = {"type": "Upload", "key": "k", "from": "{{ outputs['ship.it'].outputs.file.uris }}"}
    shipper = {"id": "ship.it", "type": "AssetShipper", "assetExporters": [exporter]}
    return {"id": "flow", "namespace": "company", "tasks": [shipper, *(upload | task for task in tasks)]}


def test_an_upload_names_its_task_in_brackets_too() -> None:
    (exporter,) = shipper_of(parse_flow(uploads({"id": "a", "bucket": "lake"}))).asset_exporters

    assert isinstance(exporter, FileAssetExporter)
    assert (exporter.bucket, exporter.key) == ("lake", "k")


def test_files_that_are_uploaded_twice_are_refused() -> None:
    document = uploads({"id": "a", "bucket": "first-lake"}, {"id": "b", "bucket": "second-lake"})

    assert faults_of(document) == ["tasks[2].from: task a uploads these already; leave one out"]


@pytest.mark.parametrize("own", [{"bucket": "lake"}, {"key": "lineage"}])
def test_files_with_a_place_of_their_own_are_not_uploaded(own: dict[str, str]) -> None:
    assert faults_of(uploads({"id": "a", "bucket": "lake"}, **own)) == [
        "tasks[1].from: the exporter has bucket or key of its own; say it in one place"
    ]


def test_a_document_cannot_bring_warnings_of_its_own() -> None:
    assert faults_of(flow() | {"warnings": ["mine"]}) != []


@pytest.mark.parametrize(
    ("exporter", "fault"),
    [
        ({"type": "FileAssetExporter", "maxLine": 3}, "maxLine: unknown property; did you mean maxLinesPerFile?"),
        ({"type": "OpenLineageAssetExporter", "urll": "x"}, "urll: unknown property; did you mean uri?"),
    ],
)
def test_the_nearest_property_is_one_of_the_exporter_s_own_type(exporter: dict[str, str], fault: str) -> None:
    uri = {"uri": "http://marquez:5000"} if exporter["type"] == "OpenLineageAssetExporter" else {}

    assert faults_of(flow(assetExporters=[{"id": "a"} | uri | exporter])) == [f"tasks[0].assetExporters[0].{fault}"]


def test_a_property_of_another_exporter_is_unknown() -> None:
    exporter = {"id": "a", "type": "FileAssetExporter", "uri": "http://marquez:5000"}

    (fault,) = faults_of(flow(assetExporters=[exporter]))

    assert fault.startswith("tasks[0].assetExporters[0].uri: unknown property; known are bucket, compression,")


def test_an_empty_filter_is_refused_for_it_would_ship_nothing() -> None:
    assert faults_of(flow(assetTypes=[])) == ["tasks[0].assetTypes: needs at least 1"]
