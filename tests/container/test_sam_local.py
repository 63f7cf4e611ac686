"""`make up`, then `sam local invoke` in the image of the Lambda runtime, against the emulator of this machine.

Every function is invoked, with every file of `events/`. Where no container engine is, those tests are skipped and say
so; with `CI=true` they fail instead.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from samtranslator.yaml_helper import yaml_parse

from demo.receiver import Receiver
from tools.bridge import bridge_address
from tools.build import sam
from tools.emulator import ROOT, EmulatorError, answers, free_port
from tools.up import BUILD, Standing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.stack import Stack


def event(file: str) -> Any:
    return json.loads((ROOT / "events" / f"{file}.json").read_text())


IMAGE = "public.ecr.aws/lambda/python:3.13"
MARQUEZ_PORT = 5000
SETTLED_SECONDS = 2.5
EVENTS = 8
"""So many lineage events do the files record: the queue holds two reports, and one report emits two."""
OUTPUTS = 12
"""So many outputs do they have; the report in S3 has five."""
TABLE = "io.kestra.plugin.ee.assets.Table"
FUNCTIONS = {
    "record": "RecorderFunction",
    "ship": "ShipperFunction",
    "file": "FileExporterFunction",
    "catalog": "CatalogFunction",
}
"""Whose event a file of `events/` is, by the first word of its name."""
STEPS = (
    (("record_success",),),
    (("record_failure", "record_emitted"), ("record_from_bus", "record_from_queue")),
    (("record_from_s3",),),
    (
        ("ship_lineage_to_marquez", "ship_by_pointer", "ship_filtered", "ship_with_mappings"),
        ("catalog_get", "catalog_lock", "catalog_search", "file_lineage", "file_lineage_to_company_bucket"),
    ),
)
"""In which order the files are tried: step after step, and in a step each row beside the others."""
TABLES = (
    *("warehouse.marts.daily_revenue", "warehouse.marts.dim_customers", "warehouse.marts.fct_orders"),
    *("warehouse.staging.stg_orders", "warehouse.staging.stg_payments"),
)
MAPPED_NAMESPACE = "postgres://warehouse:5432"
REPORT_IN_S3 = event("record_success") | {
    "taskRunId": "7c0a5f4e-3d1b-4b7f-9a56-2f8e6d4c1b03",
    "assets": {
        "outputs": [
            {
                "id": name,
                "type": TABLE,
                "namespace": "company.data",
                "metadata": {"lineage_namespace": MAPPED_NAMESPACE},
            }
            for name in TABLES
        ]
    },
}
"""It declares what `ship_with_mappings` wants of every table."""
TIME = re.compile(r'"\d{4}-\d\d-\d\dT[\d:.]+Z"')
ADDRESS = re.compile(r'"s3://[^"]+"')


def missing() -> str:
    """What this machine lacks to run a function in a container, or nothing."""
    if shutil.which("docker") is None:
        return "no docker command; ../shared/lambda-runtime/up installs an engine on Debian"
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:  # noqa: S607
        return "no Docker engine answers; ../shared/lambda-runtime/up starts one"
    if subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True, check=False).returncode:  # noqa: S607
        return f"the image {IMAGE} is not here; docker pull it, or ../shared/lambda-runtime/up makes a stand-in"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((bridge_address(), MARQUEZ_PORT))
        except OSError as error:
            return f"{bridge_address()}:{MARQUEZ_PORT}, where the guide's flow finds Marquez, cannot be had: {error}"
    return ""


def in_ci() -> bool:
    """Whether a test that cannot be run here must not be left out."""
    return os.environ.get("CI", "").lower() in ("1", "true")


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    """A stack that stays until the tests of this file are done, away from one that `make up` has left running."""
    standing = Standing(f"http://127.0.0.1:{free_port()}", tmp_path_factory.mktemp("up"))
    try:
        yield standing
    finally:
        standing.down()


@pytest.fixture(scope="module")
def stack(standing: Standing) -> Stack:
    return standing.up()


def test_make_up_leaves_a_stack_that_answers_and_says_its_names(standing: Standing, stack: Stack) -> None:
    written = json.loads(standing.names.read_text())["Parameters"]
    assert written == {
        "LINEAGE_TABLE": stack.names["LineageTable"],
        "CATALOG_TABLE": stack.names["CatalogTable"],
        "KEY_VALUE_TABLE": stack.names["KeyValueTable"],
        "LINEAGE_BUCKET": stack.names["LineageBucket"],
        "LINEAGE_BUS": stack.names["LineageBus"],
        "STACK_NAME": "waybill",
        "AWS_ENDPOINT_URL": standing.url.replace("127.0.0.1", "host.docker.internal"),
    }


def test_samconfig_names_what_make_up_writes() -> None:
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())["default"]["local_invoke"]["parameters"]
    up = Standing(folder=BUILD)
    assert ROOT / config["env_vars"] == up.names
    assert ROOT / config["parameter_overrides"].removeprefix("file://") == up.parameters
    assert ROOT / config["template_file"] == up.built / "template.yaml"
    assert config["add_host"] == ["host.docker.internal:host-gateway", "marquez:host-gateway"]


# --- every file of events/


def invoke(standing: Standing, file: str) -> Any:
    """The answer that the function of a file of `events/` gives in a container, or why there is none."""
    try:
        output = sam(
            *("local", "invoke", function_of(file), "--event", f"events/{file}.json"),
            *("--config-file", str(ROOT / "samconfig.toml"), "--template-file", str(standing.built / "template.yaml")),
            *("--env-vars", str(standing.names), "--parameter-overrides", f"file://{standing.parameters}"),
        )
    except EmulatorError as error:
        return str(error)
    return unpacked(json.loads(output))


def function_of(file: str) -> str:
    return FUNCTIONS[file.partition("_")[0]]


def unpacked(answer: Any) -> Any:
    """An answer with its body as JSON, and without what differs from day to day: times, and addresses of files."""
    if isinstance(answer.get("body"), str):
        answer = answer | {"body": json.loads(answer["body"])}
    return json.loads(ADDRESS.sub('"an address"', TIME.sub('"a time"', json.dumps(answer))))


def put_what_events_point_to(stack: Stack) -> None:
    """A report and a flow that two of the files name, and the bucket that a third files in."""
    s3 = stack.client("s3")
    bucket, _, key = event("record_from_s3")["report"].removeprefix("s3://").partition("/")
    for name in (bucket, "company-lineage"):
        s3.create_bucket(Bucket=name)
    s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(REPORT_IN_S3))
    stack.client("ssm").put_parameter(
        Name=event("ship_by_pointer")["flow"].removeprefix("ssm:"),
        Type="String",
        Value=json.dumps(event("ship_lineage_to_marquez")),
    )


@dataclass(frozen=True)
class Invoked:
    """What came of invoking every function with every event of its.

    Attributes:
        answers: by the name of the file.
        received: what came to Marquez.
    """

    answers: dict[str, Any]
    received: list[dict[str, Any]]


@pytest.fixture(scope="module")
def invoked(standing: Standing, stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Invoked:
    """Invoke them all, once for all tests: each takes seconds, so those that do not meet run side by side."""
    if lacking := missing():
        (pytest.fail if in_ci() else pytest.skip)(lacking)
    put_what_events_point_to(stack)
    answers: dict[str, Any] = {}

    def in_turn(files: tuple[str, ...]) -> None:
        answers.update({file: invoke(standing, file) for file in files})

    received = tmp_path_factory.mktemp("marquez") / "received.jsonl"
    with Receiver(received, host=bridge_address(), port=MARQUEZ_PORT), ThreadPoolExecutor() as threads:
        for step in STEPS:
            if step is STEPS[-1]:
                time.sleep(SETTLED_SECONDS)
            list(threads.map(in_turn, step))
    return Invoked(answers, [json.loads(line) for line in received.read_text().splitlines()])


@pytest.fixture
def functions() -> set[str]:
    """The logical ids of the template's functions."""
    resources = yaml_parse((ROOT / "template.yaml").read_text())["Resources"]
    return {name for name, resource in resources.items() if resource["Type"] == "AWS::Serverless::Function"}


# --- what they answer


def recorded(event: str, *more: str, state: str = "SUCCESS", **assets: list[str]) -> dict[str, Any]:
    """The recorder's answer: ids of lineage events, and what became of the assets."""
    none: dict[str, list[str]] = {"created": [], "updated": [], "failed": []}
    return {"state": state, "lineageEvents": [event, *more], "assets": none | assets}


def exported(task: str, events: int, outputs: dict[str, Any]) -> dict[str, Any]:
    """The answer to a flow with one task."""
    output = {"size": events, "endFetchedDate": "a time", "complete": True, "outputs": outputs}
    return {"outputs": {task: output}}


def delivered(task: str, events: int) -> dict[str, Any]:
    return exported(task, events, {"marquez": {"delivered": events, "rejected": 0, "skipped": 0, "retried": 0}})


def filed(task: str, events: int) -> dict[str, Any]:
    output = {"uris": ["an address"], "lines": events, "rejected": 0, "manifests": ["an address"]}
    return exported(task, events, {"file": output})


def answered(body: dict[str, Any]) -> dict[str, Any]:
    """The catalog's answer, as an HTTP API wants it."""
    head = {"isBase64Encoded": False, "headers": {"Content-Type": "application/json"}, "cookies": []}
    return {"statusCode": 200, "body": body} | head


def table(name: str, **more: Any) -> dict[str, Any]:
    """A table as the catalog shows it; `record_from_s3` has given each the metadata that `ship_with_mappings` wants."""
    times = {"created": "a time", "updated": "a time"}
    found = {"id": name, "type": TABLE, "namespace": "company.data", "deleted": False}
    return found | times | more | {"metadata": more.get("metadata", {}) | {"lineage_namespace": MAPPED_NAMESPACE}}


LOCK = {
    "lockedUntil": "a time",
    "acquiredAt": "a time",
    "username": "arn:aws:iam::000000000000:user/analyst",
    "ownerType": "USER",
}
ORDERS = table(
    "warehouse.marts.fct_orders",
    description="One row per order, with what was paid for it",
    metadata={"system": "postgres", "owner": "data-engineering"},
)
TABLES_FOUND = [
    table("warehouse.marts.daily_revenue"),
    table("warehouse.marts.dim_customers"),
    ORDERS | {"lock": LOCK},
    table("warehouse.staging.stg_orders", metadata={"model": "stg_orders"}),
    table("warehouse.staging.stg_payments", metadata={"model": "stg_payments"}),
]
ANSWERS = {
    "record_success": recorded(
        "958aa07f-a4e5-51b3-b58d-cf5adc4c8990",
        created=["warehouse.marts.fct_orders", "warehouse.staging.stg_orders", "warehouse.staging.stg_payments"],
    ),
    "record_failure": recorded("cf4ad620-e25a-5919-ac93-5a6f4f5263f8", state="FAILED"),
    "record_emitted": recorded(
        *("94caf58a-c7e6-56db-8fbd-6adc388dcc90", "dbf528d5-b257-5478-88d6-41381f530c43"),
        created=["warehouse.raw.orders", "warehouse.raw.settlements"],
        updated=["warehouse.staging.stg_orders", "warehouse.staging.stg_payments"],
    ),
    "record_from_bus": recorded("0936830b-5737-555f-8056-cfcdb1ed40c7", updated=["warehouse.marts.fct_orders"]),
    "record_from_queue": {"batchItemFailures": []},
    "record_from_s3": recorded(
        "40013765-0c9a-5c9b-a516-f69228234ae6",
        created=["warehouse.marts.daily_revenue"],
        updated=[name for name in TABLES if name != "warehouse.marts.daily_revenue"],
    ),
    "ship_lineage_to_marquez": delivered("ship_lineage", EVENTS),
    # It points to the same flow, which goes on from where it stopped.
    "ship_by_pointer": delivered("ship_lineage", 0),
    "ship_filtered": delivered("ship_data_lineage", EVENTS),
    "ship_with_mappings": delivered("ship_lineage", EVENTS),
    "catalog_get": answered(ORDERS),
    "catalog_lock": answered(LOCK),
    "catalog_search": answered({"results": TABLES_FOUND, "total": len(TABLES_FOUND), "nextToken": None}),
    "file_lineage": filed("export_lineage", EVENTS),
    "file_lineage_to_company_bucket": filed("export_lineage", EVENTS),
}


def test_every_file_is_tried_and_so_every_function(functions: set[str]) -> None:
    tried = {file for step in STEPS for files in step for file in files}
    assert tried == {file.stem for file in (ROOT / "events").glob("*.json")} == set(ANSWERS)
    assert {function_of(file) for file in tried} == functions


@pytest.mark.parametrize("file", ANSWERS)
def test_in_a_container_an_event_has_its_answer(invoked: Invoked, file: str) -> None:
    assert invoked.answers[file] == ANSWERS[file]


def test_marquez_receives_every_event_from_each_flow_once(invoked: Invoked) -> None:
    received = Counter((event["run"]["runId"], event["eventType"]) for event in invoked.received)
    times = len(("ship_lineage_to_marquez", "ship_filtered", "ship_with_mappings"))
    assert received == {
        ("5f0d4f0a-2f0b-4b6e-8a0e-6a2c9f1f4d32", "FAIL"): times,
        ("9d1a3f0e-6a63-4a8e-9f2e-3c5b1f7f8e21", "COMPLETE"): times,
        ("c2b9a0de-91b5-47d3-b1b5-0f1f5f5d6a43", "COMPLETE"): times * 2,  # it emitted two
        ("0e6b1c57-7a30-4a3c-8b9d-5e7d1f2a3b54", "COMPLETE"): times,
        ("1f7c2d68-8b41-4b4d-9cae-6f8e2a3b4c65", "COMPLETE"): times,
        ("2a8d3e79-9c52-4c5e-8dbf-7a9f3b4c5d76", "COMPLETE"): times,
        ("7c0a5f4e-3d1b-4b7f-9a56-2f8e6d4c1b03", "COMPLETE"): times,
    }


def test_mappings_name_the_namespace_of_a_table(invoked: Invoked) -> None:
    outputs = Counter(output["namespace"] for event in invoked.received for output in event["outputs"])
    assert outputs == {"company.data": OUTPUTS * 2, MAPPED_NAMESPACE: OUTPUTS}


def test_make_down_leaves_nothing_behind(standing: Standing, stack: Stack) -> None:
    assert stack.outputs
    assert standing.down()
    assert not answers(standing.url)
    assert list(standing.folder.iterdir()) == []
    assert not standing.down()
