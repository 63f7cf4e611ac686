"""A stack of the first template, with data in it, updated to this one: everything of it keeps working.

There has been no release, so what stands for the first is the template that first recorded, shipped and filed, with the
code of today: roles that SAM made, no aliases, no alarms of shipping. After a release, FIRST and its code are that.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tools.build import sam
from tools.emulator import ROOT, Emulator, client_environment
from tools.stack import Stack, deploy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIRST = "ea5f7b8c"
"""The commit of that template."""
DATA = ("LineageTable", "CatalogTable", "KeyValueTable", "LineageBucket", "LineageBus", "ReportQueue", "FailureQueue")
SETTLED_SECONDS = 2.2


def first_template(folder: Path) -> Path:
    """Put the first template beside the code of today, and return it."""
    found = subprocess.run(
        ["git", "show", f"{FIRST}:template.yaml"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode != 0:
        pytest.skip(f"this clone does not hold commit {FIRST}, whose template the test upgrades from")
    for name in ("functions", "layers"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    template = folder / "template.yaml"
    template.write_text(found.stdout)
    return template


def deploy_first(emulator: Emulator, folder: Path) -> Stack:
    """Deploy the stack of the first template."""
    template = first_template(folder)
    sam(
        *("build", "--config-file", str(ROOT / "samconfig.toml"), "--config-env", "local"),
        *("--template-file", str(template), "--build-dir", str(folder / "build")),
    )
    sam(
        *("deploy", "--config-file", str(ROOT / "samconfig.toml"), "--config-env", "local"),
        *("--template-file", str(folder / "build" / "template.yaml"), "--stack-name", "waybill"),
        *("--parameter-overrides", "Stage=local", "SettleSeconds=2", f"EmulatorUrl={emulator.url}"),
        environment=client_environment(emulator.url),
    )
    return Stack(emulator.url)


@dataclass(frozen=True)
class Upgraded:
    """A stack after its update, and what was known of it before.

    Attributes:
        names: the physical names before.
        reports: what was recorded before, with the answers.
        waiting: a report that was recorded before and not shipped.
    """

    stack: Stack
    names: dict[str, str]
    reports: list[tuple[dict[str, Any], dict[str, Any]]]
    waiting: dict[str, Any]


FILES = {"id": "file", "type": "FileAssetExporter", "format": "JSON"}
TASK = {"id": "export", "type": "AssetShipper", "lookbackPeriod": "PT1H", "assetExporters": [FILES]}
FLOW = {"id": "nightly", "namespace": "company.platform", "tasks": [TASK]}


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    with Emulator(enforce_iam=True) as emulator:
        before = deploy_first(emulator, tmp_path_factory.mktemp("first"))
        lines = (ROOT / "events" / "demo" / "warehouse.jsonl").read_text().splitlines()
        reports = [(report, before.invoke("RecorderFunction", report)) for report in map(json.loads, lines)]
        time.sleep(SETTLED_SECONDS)
        assert before.invoke("FileExporterFunction", FLOW)["outputs"]["export"]["size"] == len(reports) + 1
        waiting = reports[0][0] | {"taskRunId": str(uuid.uuid4())}
        before.invoke("RecorderFunction", waiting)
        names = dict(before.names)
        yield Upgraded(deploy(emulator), names, reports, waiting)


def test_what_holds_data_is_the_same_as_before(upgraded: Upgraded) -> None:
    assert {name: upgraded.stack.names[name] for name in DATA} == {name: upgraded.names[name] for name in DATA}


def test_a_report_of_before_still_has_its_answer(upgraded: Upgraded) -> None:
    for report, answer in upgraded.reports:
        assert upgraded.stack.invoke("RecorderFunction", report) == answer


def test_shipping_goes_on_where_it_stopped(upgraded: Upgraded) -> None:
    fresh = upgraded.reports[1][0] | {"taskRunId": str(uuid.uuid4())}
    assert upgraded.stack.invoke("RecorderFunction", fresh)["assets"]["failed"] == []
    time.sleep(SETTLED_SECONDS)
    output = upgraded.stack.invoke("FileExporterFunction", FLOW)["outputs"]["export"]
    assert output["size"] == 2, "the one that waited, and the one that came after the update"
    (uri,) = output["outputs"]["file"]["uris"]
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    lines = upgraded.stack.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read().decode().splitlines()
    assert {json.loads(line)["taskRunId"] for line in lines} == {
        upgraded.waiting["taskRunId"],
        fresh["taskRunId"],
    }


def test_the_catalog_knows_the_assets_of_before(upgraded: Upgraded) -> None:
    event = json.loads((ROOT / "events" / "catalog_search.json").read_text())
    answer = upgraded.stack.invoke("CatalogFunction", event)
    assert answer["statusCode"] == 200, answer
    found = {asset["id"] for asset in json.loads(answer["body"])["results"]}
    assert "warehouse.marts.fct_orders" in found


def test_what_invoked_a_function_invokes_its_alias_now(upgraded: Upgraded) -> None:
    rules = upgraded.stack.client("events").list_rules()["Rules"]
    (rule,) = (rule["Name"] for rule in rules if "ShipLineage" in rule["Name"])
    (target,) = upgraded.stack.client("events").list_targets_by_rule(Rule=rule)["Targets"]
    assert target["Arn"] == upgraded.stack.outputs["ShipperFunctionArn"]
    assert target["Arn"].endswith(":live")
