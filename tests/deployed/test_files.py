"""Filing on the deployed stack, whose emulator checks each call against the role of the function."""

from __future__ import annotations

import gzip
import json
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from amazon.ion import simpleion

from tools.stack import FunctionFailed, Stack, deploy
from waybill.export.files.compression import decompressed

if TYPE_CHECKING:
    from tools.emulator import Emulator

SETTLED_SECONDS = 3.0
GUIDE = """
id: ship_lineage_to_s3
namespace: company.platform

tasks:
  - id: export_lineage
    type: io.kestra.plugin.ee.assets.AssetShipper
    assetExporters:
      - id: file
        type: io.kestra.plugin.ee.assets.FileAssetExporter
        format: JSON

  - id: upload
    type: io.kestra.plugin.aws.s3.Upload
    region: "{{ secret('AWS_DEFAULT_REGION') }}"
    accessKeyId: "{{ secret('AWS_ACCESS_KEY_ID') }}"
    secretKeyId: "{{ secret('AWS_SECRET_KEY_ID') }}"
    bucket: company-lineage
    key: "kestra/{{ execution.startDate | date('yyyy-MM-dd') }}"
    from: "{{ outputs.export_lineage.outputs.file.uris }}"

triggers:
  - id: daily
    type: io.kestra.plugin.core.trigger.Schedule
    cron: "@daily"
"""


def recorded(stack: Stack, count: int) -> str:
    """Record task runs of a flow of this test's own, and return its id once they may be read."""
    flow_id = f"filed_{uuid.uuid4().hex[:8]}"
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    for number in range(count):
        report = {
            "namespace": "company.data",
            "flowId": flow_id,
            "executionId": str(uuid.uuid4()),
            "taskId": "load",
            "taskRunId": str(uuid.uuid4()),
            "state": "SUCCESS",
            "startDate": now,
            "endDate": now,
            "assets": {"outputs": [{"id": f"{flow_id}.table_{number}", "type": "io.kestra.plugin.ee.assets.Table"}]},
        }
        stack.invoke("RecorderFunction", report)
    time.sleep(SETTLED_SECONDS)
    return flow_id


def flow(flow_id: str, **properties: Any) -> dict[str, Any]:
    exporter = {"id": "file", "type": "FileAssetExporter", "format": "JSON"} | properties
    task = {"id": "export", "type": "AssetShipper", "flowId": flow_id, "assetExporters": [exporter]}
    return {"id": f"file_{flow_id}", "namespace": "company.platform", "tasks": [task]}


def body(stack: Stack, uri: str) -> bytes:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    content: bytes = stack.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    return content


def test_a_flow_files_into_the_bucket_of_the_stack_and_goes_on_from_there(stack: Stack) -> None:
    flow_id = recorded(stack, 3)

    first = stack.invoke("FileExporterFunction", flow(flow_id, maxLinesPerFile=2))["outputs"]["export"]
    second = stack.invoke("FileExporterFunction", flow(flow_id, maxLinesPerFile=2))["outputs"]["export"]

    uris = first["outputs"]["file"]["uris"]
    lines = [json.loads(line) for uri in uris for line in body(stack, uri).splitlines()]
    assert (first["size"], len(uris), second["size"], second["outputs"]["file"]["uris"]) == (3, 2, 0, [])
    assert sorted(line["outputs"][0]["id"] for line in lines) == [f"{flow_id}.table_{number}" for number in range(3)]
    assert all(uri.startswith(f"s3://{stack.names['LineageBucket']}/lineage/") for uri in uris)
    (manifest,) = first["outputs"]["file"]["manifests"]
    assert [file["uri"] for file in json.loads(body(stack, manifest))["files"]] == uris


def test_every_format_and_compression_works_in_the_function(stack: Stack) -> None:
    flow_id = recorded(stack, 1)
    exporters: list[dict[str, Any]] = [
        {"id": "ion", "format": "ION"},
        {"id": "zstd", "format": "JSON", "compression": "zstd"},
        {"id": "openlineage", "format": "JSON", "compression": "gzip", "content": "openlineage"},
    ]
    document = flow(flow_id)
    document["tasks"][0]["assetExporters"] = [one | {"type": "FileAssetExporter"} for one in exporters]

    outputs = stack.invoke("FileExporterFunction", document)["outputs"]["export"]["outputs"]

    ion, zstd, openlineage = (body(stack, *outputs[one["id"]]["uris"]) for one in exporters)
    event: Any = simpleion.loads(ion)
    assert event["flowId"] == flow_id
    assert json.loads(b"".join(decompressed([zstd], "zstd")))["id"] == event["id"]
    assert json.loads(gzip.decompress(openlineage))["job"]["name"] == f"{flow_id}.load"


def test_a_bucket_that_the_function_may_not_write_to_is_named_and_the_position_stays(stack: Stack) -> None:
    flow_id = recorded(stack, 1)
    stack.client("s3").create_bucket(Bucket="somebody-elses")

    with pytest.raises(FunctionFailed) as failed:
        stack.invoke("FileExporterFunction", flow(flow_id, bucket="somebody-elses"))

    assert failed.value.error_type == "ExportFailed"
    assert "in s3://somebody-elses: no permission" in failed.value.error_message
    assert stack.invoke("FileExporterFunction", flow(flow_id))["outputs"]["export"]["size"] == 1


@pytest.mark.parametrize(
    ("properties", "fault"),
    [
        ({"format": "XML"}, "tasks[0].assetExporters[0].format: must be 'ION' or 'JSON'"),
        ({"format": "PARQUET"}, "tasks[0].assetExporters[0].format: must be 'ION' or 'JSON'"),
        (
            {"key": "a/{{ now() }}"},
            (
                "tasks[0].assetExporters[0].key: {{ now() }} is not known; use "
                "{{ execution.startDate | date('yyyy-MM-dd') }} for the start of the run "
                "or {{ event.created | date('yyyy-MM-dd') }} for the recording time"
            ),
        ),
    ],
)
def test_a_faulty_flow_is_refused_by_path(stack: Stack, properties: dict[str, Any], fault: str) -> None:
    with pytest.raises(FunctionFailed) as failed:
        stack.invoke("FileExporterFunction", flow("any", **properties))

    assert (failed.value.error_type, failed.value.error_message) == ("InvalidFlow", fault)


def test_the_flow_of_the_guide_word_for_word_with_a_bucket_of_the_companys(emulator: Emulator) -> None:
    stack = deploy(emulator, name="with-a-bucket", parameters={"ExportBucket": "company-lineage"})
    stack.client("s3").create_bucket(Bucket="company-lineage")
    recorded(stack, 2)

    answer = stack.invoke("FileExporterFunction", yaml.safe_load(GUIDE))

    (uri,) = answer["outputs"]["export_lineage"]["outputs"]["file"]["uris"]
    assert uri.startswith(f"s3://company-lineage/kestra/{time.strftime('%Y-%m-%d', time.gmtime())}/kestra-log-file-")
    assert len(body(stack, uri).splitlines()) == 2
