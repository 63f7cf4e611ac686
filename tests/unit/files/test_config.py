"""The properties of a FileAssetExporter: their defaults, and what is said of a wrong one."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from waybill.errors import InvalidFlow
from waybill.export.files.config import FileAssetExporter
from waybill.export.files.keys import PARTITIONS
from waybill.export.files.series import template_of
from waybill.model.flow import parse_flow

PATH = "tasks[0].assetExporters[0]"
HIDDEN = "for Athena, Hive and Spark leave out"


def parsed(**properties: Any) -> Any:
    exporter = {"id": "file", "type": "FileAssetExporter"} | properties
    task = {"id": "export", "type": "AssetShipper", "assetExporters": [exporter]}
    return parse_flow({"id": "flow", "namespace": "company", "tasks": [task]}).shippers[0].asset_exporters[0]


def test_the_defaults_are_those_of_the_reference_product() -> None:
    assert parsed().model_dump(by_alias=True, exclude={"id", "type"}) == {
        "format": "ION",
        "maxLinesPerFile": 100_000,
        "maxBytesPerFile": 256 * 1024 * 1024,
        "logFilePrefix": "kestra-log-file",
        "bucket": None,
        "key": "lineage",
        "compression": "none",
        "partitioning": "none",
        "content": "lineage",
        "mappings": {},
        "defaultNamespace": "default",
        "kmsKey": None,
    }


@pytest.mark.parametrize(
    ("properties", "fault"),
    [
        ({"format": "PARQUET"}, "format: must be 'ION' or 'JSON'"),
        ({"maxLinesPerFile": 0}, "maxLinesPerFile: must be greater than or equal to 1"),
        ({"maxBytesPerFile": 1}, "maxBytesPerFile: must be greater than or equal to 1024"),
        ({"logFilePrefix": "a/b"}, "logFilePrefix: must have 1 to 100 letters, digits and ! _ . * ' ( ) -"),
        (
            {"bucket": "Company_Lineage"},
            "bucket: must be the name of a bucket, such as company-lineage, or the ARN of an access point",
        ),
        ({"key": "x" * 351}, "key: is 351 bytes long; the most is 350"),
        ({"key": " "}, "key: must not be blank"),
        ({"logFilePrefix": "_x"}, f"logFilePrefix: must not begin with . or _, {HIDDEN} such files"),
        ({"logFilePrefix": ".x"}, f"logFilePrefix: must not begin with . or _, {HIDDEN} such files"),
        ({"maxLinesPerFile": True}, "maxLinesPerFile: must be a valid integer"),
        ({"maxLinesPerFile": "100"}, "maxLinesPerFile: must be a valid integer"),
        ({"maxBytesPerFile": 1e6}, "maxBytesPerFile: must be a valid integer"),
        (
            {"kmsKey": "nonsense key"},
            "kmsKey: must be the ARN of a key or alias, such as arn:aws:kms:eu-central-1:111122223333:key/…",
        ),
        ({"compression": "snappy"}, "compression: must be 'none', 'gzip' or 'zstd'"),
        ({"partitioning": "week"}, "partitioning: must be 'none', 'month', 'day' or 'hour'"),
        ({"content": "all"}, "content: must be 'lineage' or 'openlineage'"),
        ({"content": "openlineage"}, "content: openlineage is read as JSON; set format: JSON"),
        ({"maxLines": 5}, "maxLines: unknown property; did you mean maxLinesPerFile?"),
    ],
)
def test_a_faulty_property_is_named_with_what_to_do(properties: dict[str, Any], fault: str) -> None:
    with pytest.raises(InvalidFlow) as refused:
        parsed(**properties)
    assert refused.value.faults == (f"{PATH}.{fault}",)


def test_a_fault_in_the_key_of_an_upload_is_named_where_it_stands() -> None:
    document = {
        "id": "flow",
        "namespace": "company",
        "tasks": [
            {
                "id": "export",
                "type": "AssetShipper",
                "assetExporters": [{"id": "file", "type": "FileAssetExporter"}],
            },
            {
                "id": "upload",
                "type": "io.kestra.plugin.aws.s3.Upload",
                "bucket": "company-lineage",
                "key": "kestra/{{ execution.id }}",
                "from": "{{ outputs.export.outputs.file.uris }}",
            },
        ],
    }
    with pytest.raises(InvalidFlow, match=r"^tasks\[1\]\.key: \{\{ execution\.id \}\} is not known; use"):
        parse_flow(document)


def test_every_partitioning_has_a_folder() -> None:
    assert list(get_args(FileAssetExporter.model_fields["partitioning"].annotation)) == list(PARTITIONS)
    for name in PARTITIONS:
        assert template_of(parsed(partitioning=name)).root == "lineage/"


def test_the_longest_name_fits_a_key_of_s3() -> None:
    longest = parsed(
        id="x" * 150, logFilePrefix="p" * 100, key="k" * 350, partitioning="hour", format="JSON", compression="zstd"
    )
    folder = len("k" * 350 + "/dt=2026-12-01/hour=09/")
    name = len("-".join(["p" * 100, "f" * 150, "t" * 150, longest.id, "20261201T090000Z", "o" * 8, "s" * 12, "a" * 12]))
    manifest = len(
        "k" * 350 + "/_manifests/" + "/".join(["n" * 150, "f" * 150, "t" * 150, longest.id, "d" * 24]) + ".json"
    )
    assert max(folder + name + len("-00001.json.zst"), manifest) <= 1024
