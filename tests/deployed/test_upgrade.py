"""A stack of the first published state, its code and its template, updated to this one: it goes on where it stopped.

There has been no release; what stands for the first is the state that was published first. Both stacks run code of
their own time, so that whatever the first stored, in whatever format, is read by today's.
"""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from demo.receiver import Receiver, Refused
from tests.support.scenarios import LARGE
from tools.build import sam
from tools.emulator import ROOT, Emulator, client_environment
from tools.stack import FunctionFailed, Stack, deploy
from waybill.cli import app
from waybill.store import aws

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIRST = "2d03d39f9563c3e6fbc3f44fc58144c2dc846e88"
"""The commit that was published first."""
BUILT_FROM = ("template.yaml", "samconfig.toml", "functions", "layers")
FUNCTIONS = ("RecorderFunction", "ShipperFunction", "FileExporterFunction", "CatalogFunction")
DATA = (
    *("LineageTable", "CatalogTable", "KeyValueTable", "LineageBucket", "LineageBus"),
    *("ReportQueue", "ReportDeadLetterQueue", "FailureQueue"),
)
SHARDS = {"LogShards": "2"}
"""So few that the event which is not taken stands before others in its shard."""
SETTLED_SECONDS = 2.2
REFUSED_JOB = "ingest_app.copy_customers"
"""The job of the first report: its event is the oldest of its shard."""
REFUSED_SECONDS = 1.0
ORDERS = "warehouse.marts.fct_orders"
QUESTIONS = (
    "/assets",
    f"/assets/{ORDERS}",
    f"/assets/{ORDERS}/dependencies",
    "/assets/usages/search",
    "/assets/lineage-events/search",
    "/namespaces/company.data",
)
"""What the catalog is asked before the update and after it."""


# --- the first stack


def first_sources(folder: Path) -> Path:
    """Put the sources of the first stack into a folder, and return its template."""
    found = subprocess.run(
        ["git", "archive", FIRST, *BUILT_FROM],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if found.returncode != 0:
        pytest.fail(
            f"this clone does not hold commit {FIRST}, which the test upgrades from; `git fetch --unshallow` gets it: "
            f"{found.stderr.decode().strip()}"
        )
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "template.yaml"


def deploy_first(emulator: Emulator, folder: Path) -> Stack:
    """Build and deploy the first stack."""
    template = first_sources(folder)
    settings = ("--config-file", str(folder / "samconfig.toml"), "--config-env", "local")
    sam("build", *settings, "--template-file", str(template), "--build-dir", str(folder / "build"))
    parameters = {"Stage": "local", "SettleSeconds": "2", "EmulatorUrl": emulator.url} | SHARDS
    sam(
        *("deploy", *settings, "--template-file", str(folder / "build" / "template.yaml"), "--stack-name", "waybill"),
        *("--parameter-overrides", *(f"{name}={value}" for name, value in parameters.items())),
        environment=client_environment(emulator.url),
    )
    return Stack(emulator.url)


# --- what is done with it


class Backend(Receiver):
    """Takes every event, but for those of one job, which it refuses late until told otherwise."""

    refused = ""

    def keep(self, body: bytes) -> None:
        if json.loads(body)["job"]["name"] == self.refused:
            time.sleep(REFUSED_SECONDS)
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "not now")
        super().keep(body)


def flow(name: str, exporter: dict[str, Any]) -> dict[str, Any]:
    task = {"id": "export", "type": "AssetShipper", "lookbackPeriod": "PT1H", "assetExporters": [exporter]}
    return {"id": name, "namespace": "company.platform", "tasks": [task]}


def openlineage(backend: Receiver, on_rejected: str) -> dict[str, Any]:
    return {"id": "backend", "type": "OpenLineageAssetExporter", "uri": backend.url, "onRejected": on_rejected}


FILE = flow("file", {"id": "file", "type": "FileAssetExporter", "format": "JSON"})


def exported(stack: Stack, function: str, document: dict[str, Any]) -> dict[str, Any]:
    """Run a flow, and return what its task says."""
    output: dict[str, Any] = stack.invoke(function, document)["outputs"]["export"]
    return output


def ask(stack: Stack, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """The status and the body of an answer of the catalog."""
    event = json.loads((ROOT / "events" / "catalog_search.json").read_text())
    event |= {"rawPath": path, "rawQueryString": "", "queryStringParameters": {}, "body": body and json.dumps(body)}
    event["requestContext"]["http"] |= {"method": method, "path": path}
    answer = stack.invoke("CatalogFunction", event)
    return answer["statusCode"], json.loads(answer["body"])


def answered_ahead(stack: Stack, name: str) -> int:
    """How many events a flow of the first stack has stored as done above the place that its position stands at."""
    items = stack.client("dynamodb").scan(TableName=stack.names["KeyValueTable"])["Items"]
    (body,) = (
        item["body"]["S"]
        for item in items
        if item["key"]["S"].startswith(f"AssetShipper-state_{name}_export#position#")
    )
    return sum(len(shard["answered"]) for shard in json.loads(body)["shards"].values())


def filed(stack: Stack) -> list[dict[str, Any]]:
    """Every line of every file in the bucket."""
    s3, bucket = stack.client("s3"), stack.names["LineageBucket"]
    keys = [found["Key"] for found in s3.list_objects_v2(Bucket=bucket, Prefix="lineage/")["Contents"]]
    bodies = [s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys if "/_manifests/" not in key]
    return [json.loads(line) for body in bodies for line in body.splitlines()]


def code(stack: Stack) -> dict[str, list[str]]:
    """The layers of what each function's alias stands for."""
    read = stack.client("lambda").get_function_configuration
    found = {name: read(FunctionName=stack.names[name], Qualifier="live") for name in FUNCTIONS}
    return {name: [layer["Arn"] for layer in one["Layers"]] for name, one in found.items()}


@dataclass
class Upgraded:
    """A stack that is updated in the middle of its work, and what it was given before and after.

    Attributes:
        stack: as it is now.
        stopping: the backend of a flow that stopped at the event that was refused, and had sent others behind it.
        setting_aside: the backend of a flow that put that event aside and went on.
        answers: every report that was recorded, with the answer to it.
        names, code, seen: of before: physical names, layers of the functions, answers of the catalog.
        again: the answers to the reports of before, handed in again.
        seen_now: what the catalog answered right after the update.
    """

    stack: Stack
    stopping: Backend
    setting_aside: Backend
    answers: list[tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    code: dict[str, list[str]] = field(default_factory=dict)
    seen: list[tuple[int, Any]] = field(default_factory=list)
    again: list[dict[str, Any]] = field(default_factory=list)
    seen_now: list[tuple[int, Any]] = field(default_factory=list)

    @property
    def stopped(self) -> dict[str, Any]:
        return flow("stopped", openlineage(self.stopping, "FAIL"))

    @property
    def aside(self) -> dict[str, Any]:
        return flow("aside", openlineage(self.setting_aside, "DEAD_LETTER"))

    @property
    def events(self) -> Counter[str]:
        """Every lineage event by its id: what is to be filed, each once."""
        return Counter(event for _, answer in self.answers for event in answer["lineageEvents"])

    @property
    def runs(self) -> Counter[str]:
        """The run of every lineage event: what a backend is to receive, each once."""
        return Counter({report["taskRunId"]: len(answer["lineageEvents"]) for report, answer in self.answers})

    def record(self, *reports: dict[str, Any]) -> None:
        self.answers += [(report, self.stack.invoke("RecorderFunction", report)) for report in reports]

    def ask_catalog(self) -> list[tuple[int, Any]]:
        return [ask(self.stack, "GET", question) for question in QUESTIONS]

    def work_until_the_middle(self) -> None:
        """Let every flow do a part of its work: what waits then is an event that was refused, and two new ones."""
        reports = [json.loads(line) for line in (ROOT / "events" / "demo" / "warehouse.jsonl").read_text().splitlines()]
        self.record(*reports)
        self.stopping.refused = self.setting_aside.refused = REFUSED_JOB
        time.sleep(SETTLED_SECONDS)
        with pytest.raises(FunctionFailed, match=f"{REFUSED_JOB} was refused"):
            exported(self.stack, "ShipperFunction", self.stopped)
        assert answered_ahead(self.stack, "stopped") > 0
        assert exported(self.stack, "ShipperFunction", self.aside)["outputs"]["backend"]["rejected"] == 1
        assert exported(self.stack, "FileExporterFunction", FILE)["size"] == sum(self.events.values())
        large = {"state": "FAILED", "error": {"message": "out of memory", "stackTrace": "x" * LARGE}}
        self.record(another(reports[1]), another(reports[2]) | large)

    def settle_the_catalog(self) -> None:
        assert ask(self.stack, "PUT", "/namespaces/company.data", {"readers": ["*"]})[0] == HTTPStatus.OK
        assert ask(self.stack, "POST", f"/assets/{ORDERS}/lock", {"ttl": "PT1H"})[0] == HTTPStatus.OK


def another(report: dict[str, Any]) -> dict[str, Any]:
    """The report of another run of the same task."""
    return report | {"taskRunId": str(uuid4())}


@contextmanager
def commands_for(emulator: Emulator) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in emulator.environment.items():
            patch.setenv(name, value)
        aws.client.cache_clear()
        aws.single_try_client.cache_clear()
        yield
    aws.client.cache_clear()
    aws.single_try_client.cache_clear()


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    folder = tmp_path_factory.mktemp("first")
    with (
        Emulator(enforce_iam=True) as emulator,
        Backend(folder / "stopping.jsonl") as stopping,
        Backend(folder / "setting_aside.jsonl") as setting_aside,
        commands_for(emulator),
    ):
        work = Upgraded(deploy_first(emulator, folder / "sources"), stopping, setting_aside)
        work.work_until_the_middle()
        work.settle_the_catalog()
        work.names, work.code, work.seen = dict(work.stack.names), code(work.stack), work.ask_catalog()
        work.stack = deploy(emulator, parameters=SHARDS)
        stopping.refused = setting_aside.refused = ""
        work.seen_now = work.ask_catalog()
        work.again = [work.stack.invoke("RecorderFunction", report) for report, _ in work.answers]
        work.record(another(work.answers[0][0]))
        time.sleep(SETTLED_SECONDS)
        yield work


# --- what came of it


def test_what_holds_data_is_the_same_as_before(upgraded: Upgraded) -> None:
    assert {name: upgraded.stack.names[name] for name in DATA} == {name: upgraded.names[name] for name in DATA}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_invoked_is_code_of_today(upgraded: Upgraded, function: str) -> None:
    names = upgraded.stack.names.items()
    layers = [arn for layer in ("DependenciesLayer", "WaybillLayer") for name, arn in names if name.startswith(layer)]
    assert code(upgraded.stack)[function] == layers
    assert upgraded.code[function] != layers


def test_a_report_of_before_still_has_its_answer(upgraded: Upgraded) -> None:
    before = [answer for _, answer in upgraded.answers[: len(upgraded.again)]]
    assert upgraded.again == before


def test_a_flow_that_had_stopped_sends_what_was_left_and_nothing_twice(upgraded: Upgraded) -> None:
    sent = len(upgraded.stopping.events())
    output = exported(upgraded.stack, "ShipperFunction", upgraded.stopped)
    left = upgraded.runs.total() - sent
    assert output["outputs"]["backend"] == {"delivered": left, "rejected": 0, "skipped": 0, "retried": 0}
    assert Counter(event["run"]["runId"] for event in upgraded.stopping.events()) == upgraded.runs


def test_a_dead_letter_of_before_is_sent_again_and_then_nothing_is_missing(upgraded: Upgraded) -> None:
    output = exported(upgraded.stack, "ShipperFunction", upgraded.aside)
    assert output["outputs"]["backend"] == {"delivered": 3, "rejected": 0, "skipped": 0, "retried": 0}
    document = upgraded.setting_aside.path.with_suffix(".flow.json")
    document.write_text(json.dumps(upgraded.aside))
    replayed = CliRunner().invoke(app, ["dead-letters", "replay", "all", "--flow", str(document)])
    assert replayed.exit_code == 0, replayed.output
    assert Counter(event["run"]["runId"] for event in upgraded.setting_aside.events()) == upgraded.runs


def test_filing_goes_on_where_it_stopped(upgraded: Upgraded) -> None:
    assert exported(upgraded.stack, "FileExporterFunction", FILE)["size"] == 3
    assert Counter(line["id"] for line in filed(upgraded.stack)) == upgraded.events


def test_the_catalog_answers_as_before(upgraded: Upgraded) -> None:
    assert [status for status, _ in upgraded.seen] == [HTTPStatus.OK] * len(QUESTIONS)
    assert upgraded.seen_now == upgraded.seen


def test_a_lock_of_before_is_held(upgraded: Upgraded) -> None:
    event = json.loads((ROOT / "events" / "catalog_lock.json").read_text())
    event["requestContext"]["authorizer"]["iam"]["userArn"] += "-of-others"
    answer = upgraded.stack.invoke("CatalogFunction", event)
    assert answer["statusCode"] == HTTPStatus.LOCKED, answer


def test_a_schedule_invokes_what_it_invoked_before(upgraded: Upgraded) -> None:
    rules = upgraded.stack.client("events").list_rules()["Rules"]
    (rule,) = (rule["Name"] for rule in rules if "ShipLineage" in rule["Name"])
    (target,) = upgraded.stack.client("events").list_targets_by_rule(Rule=rule)["Targets"]
    assert target["Arn"] == upgraded.stack.outputs["ShipperFunctionArn"]
    assert target["Arn"].endswith(":live")
