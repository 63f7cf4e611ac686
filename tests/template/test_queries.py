"""The tables that Athena gets: their columns are what is written, their places where it is written."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import pytest
import sqlglot

from tests.support.shipping import NOON, lineage_event
from tests.template.intrinsics import Resolver
from waybill.clock import iso
from waybill.export.files.config import FileAssetExporter
from waybill.export.files.keys import PARTITIONS
from waybill.export.files.lines import json_lines
from waybill.export.files.manifest import FOLDER, FileEntry, Manifest, Rejection
from waybill.export.files.series import template_of
from waybill.export.ports import Delivery
from waybill.model.asset import Asset

if TYPE_CHECKING:
    from tests.template.conftest import Resources

TABLES = ("LineageFilesTable", "LineageManifestsTable", "LineageView")
SCALARS = {"string": str, "int": int, "bigint": int, "boolean": bool}


def table(template: dict[str, Any], logical_id: str, **parameters: str) -> Any:
    properties = Resolver(template, {"QueryDatabase": "lake"} | parameters).resolve(template["Resources"][logical_id])
    return properties["Properties"]["TableInput"]


def columns(table_input: dict[str, Any]) -> dict[str, str]:
    return {column["Name"]: column["Type"] for column in table_input["StorageDescriptor"]["Columns"]}


def fits(kind: str, value: Any) -> bool:
    """Tell whether a value of JSON has exactly the shape of a Hive type; text stands for any JSON below it."""
    if kind.startswith("array<"):
        return isinstance(value, list) and all(fits(kind[6:-1], item) for item in value)
    if kind == "map<string,string>":
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    if kind.startswith("struct<"):
        fields = dict(field.split(":", 1) for field in kind[7:-1].split(","))
        lower = {name.lower(): item for name, item in value.items()}
        return set(fields) == set(lower) and all(fits(fields[name], lower[name]) for name in fields)
    return isinstance(value, SCALARS[kind]) or (kind == "string" and isinstance(value, dict))


def full_line() -> dict[str, Any]:
    """A line in which everything is said that an event and an asset can say."""
    asset = Asset(
        id="a",
        type="t",
        namespace="n",
        display_name="A",
        description="d",
        metadata={"k": [1]},
        created=NOON,
        updated=NOON,
    )
    event = lineage_event(
        flow_revision=1,
        execution_start_date=iso(NOON),
        error={"message": "m", "stackTrace": "s"},
        labels={"team": "a"},
        created=iso(NOON),
    )
    line: dict[str, Any] = json.loads(json_lines()(Delivery("key", event, (asset,), (asset,))))
    return line


def full_manifest() -> dict[str, Any]:
    manifest = Manifest(
        namespace="n", flow_id="f", task_id="t", exporter_id="e", state_key="k", start="s", end="e", attempt="a",
        created=NOON, format="JSON", compression="none", content="lineage", lines=1,
        files=(FileEntry(uri="u", lines=1, bytes=1, sha256="s", first="a", last="b"),),
        rejected=(Rejection(id="i", reason="r"),),
    )  # fmt: skip
    document: dict[str, Any] = json.loads(manifest.model_dump_json(by_alias=True))
    return document


@pytest.mark.parametrize(
    ("logical_id", "written"), [("LineageFilesTable", full_line()), ("LineageManifestsTable", full_manifest())]
)
def test_the_columns_are_what_is_written(template: dict[str, Any], logical_id: str, written: dict[str, Any]) -> None:
    kinds = columns(table(template, logical_id))
    values = {name.lower(): value for name, value in written.items()}

    assert set(kinds) == set(values)
    assert [name for name, kind in kinds.items() if not fits(kind, values[name])] == []


@pytest.mark.parametrize(
    ("parameters", "root"),
    [({}, "<LineageBucket>/lineage/"), ({"ExportBucket": "b", "ExportPrefix": "x/y/"}, "b/x/y/")],
)
def test_the_tables_lie_where_the_schedule_files(
    template: dict[str, Any], resources: Resources, parameters: dict[str, str], root: str
) -> None:
    rule = resources["FileExporterFunctionExportLineage"]["Properties"]["Targets"][0]["Input"]
    (exporter,) = json.loads(Resolver(template, parameters).resolve(rule))["tasks"][0]["assetExporters"]
    key = template_of(FileAssetExporter.model_validate(exporter | {"bucket": "lake"}))
    files = table(template, "LineageFilesTable", **parameters)

    assert f"{exporter['bucket']}/{key.folder(NOON, NOON)}" == f"{root}dt=2026-12-01/"
    assert files["StorageDescriptor"]["Location"] == f"s3://{root}"
    assert files["Parameters"]["storage.location.template"] == f"s3://{root}dt=${{dt}}/"
    assert (
        table(template, "LineageManifestsTable", **parameters)["StorageDescriptor"]["Location"]
        == f"s3://{root}{FOLDER}"
    )


def test_days_are_projected_as_the_exporter_writes_them(template: dict[str, Any]) -> None:
    files = table(template, "LineageFilesTable")
    pattern = files["Parameters"]["projection.dt.format"]

    assert PARTITIONS["day"] == f"dt={{{{ event.created | date('{pattern}') }}}}"
    assert files["PartitionKeys"] == [{"Name": "dt", "Type": "string"}]
    assert {name: files["Parameters"][f"projection.{name}"] for name in ("enabled", "dt.type", "dt.range")} == {
        "enabled": "true",
        "dt.type": "date",
        "dt.range": "2026-01-01,NOW",
    }


def test_the_view_counts_only_files_that_a_manifest_names(template: dict[str, Any]) -> None:
    view = table(template, "LineageView")
    text = view["ViewOriginalText"].removeprefix("/* Presto View: ").removesuffix(" */")
    definition = json.loads(b64decode(text))
    query = sqlglot.parse_one(definition["originalSql"], dialect="trino")

    selected = [expression.alias_or_name for expression in query.expressions]
    assert selected == [column["name"] for column in definition["columns"]] == list(columns(view))
    used = {column.name for column in query.find_all(sqlglot.exp.Column)}
    known = set(columns(table(template, "LineageFilesTable"))) | {"dt", "files", "$path", "uri", "file", "asset"}
    assert used - known == set()
    assert query.args["where"].sql(dialect="trino") == (
        'WHERE "$path" IN (SELECT uri FROM lineage_manifests '
        "CROSS JOIN UNNEST(TRANSFORM(files, file -> file.uri)) AS named(uri))"
    )
    assert (definition["catalog"], definition["schema"], view["TableType"]) == (
        "awsdatacatalog",
        "lake",
        "VIRTUAL_VIEW",
    )


def test_a_stack_has_a_database_only_when_it_is_named(template: dict[str, Any]) -> None:
    assert {template["Resources"][name]["Condition"] for name in ("QueryCatalog", *TABLES)} == {"HasQueryDatabase"}
    assert [Resolver(template, {"QueryDatabase": name}).holds("HasQueryDatabase") for name in ("", "lake")] == [
        False,
        True,
    ]


@pytest.mark.parametrize("role", ["ShipperFunctionRole", "FileExporterFunctionRole"])
def test_files_are_written_under_their_prefix_and_nowhere_else(
    template: dict[str, Any], resources: Resources, role: str
) -> None:
    parameters = {"ExportBucket": "company-lineage", "ExportPrefix": "x/", "ExportKmsKeyArn": "arn:aws:kms:key"}
    policies = Resolver(template, parameters).resolve(resources[role]["Properties"]["Policies"])
    statements = [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]
    written = {
        statement["Sid"]: statement["Resource"]
        for statement in statements
        if {"s3:PutObject", "s3:ListBucket", "kms:GenerateDataKey"} & set(_listed(statement["Action"]))
    }

    assert written.pop("PutAsideLargeLetters", None) in (None, "<LineageBucket.Arn>/dead-letters/*")
    assert written == {
        "WriteFiles": "<LineageBucket.Arn>/lineage/*",
        "FindManifests": "<LineageBucket.Arn>",
        "WriteFilesElsewhere": "arn:<AWS::Partition>:s3:::company-lineage/x/*",
        "FindManifestsElsewhere": "arn:<AWS::Partition>:s3:::company-lineage",
        "EncryptFiles": "arn:aws:kms:key",
    }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize(("days", "rule"), [("0", []), ("90", [("lineage/", "90")])])
def test_files_expire_only_when_asked_to(template: dict[str, Any], days: str, rule: list[tuple[str, str]]) -> None:
    bucket = Resolver(template, {"ExportRetentionDays": days}).resolve(template["Resources"]["LineageBucket"])
    rules = bucket["Properties"]["LifecycleConfiguration"]["Rules"]

    assert [(one["Prefix"], one["ExpirationInDays"]) for one in rules if one["Id"] == "ExpireFiles"] == rule
    (uncommitted,) = (one for one in rules if one["Id"] == "ExpireUncommittedFiles")
    assert (uncommitted["TagFilters"], uncommitted["ExpirationInDays"]) == (
        [{"Key": "waybill", "Value": "uncommitted"}],
        7,
    )
