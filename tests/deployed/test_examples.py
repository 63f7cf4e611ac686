"""The examples of docs/record.md, each run: a job's way to hand in its report."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
import uuid
import zipfile
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from docs.examples.airflow_callbacks import reports
from docs.examples.reported import reported
from tests.support import scenarios
from tests.support.shared import SHARED
from tools.emulator import ROOT

if TYPE_CHECKING:
    from tools.emulator import Emulator
    from tools.stack import Stack

PATIENCE_SECONDS = 30.0
DBT = SHARED / "data" / "dbt" / "jaffle_shop"
JAFFLE = SHARED / "data" / "task-runs" / "jaffle_shop.jsonl"
JOB = """
def handle(event, context):
    if event["fails"]:
        raise ValueError("no such file")
    return {"rows": 1204}
"""


@pytest.fixture
def job_environment(emulator: Emulator, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a job has in its environment, with the rights of RecorderCallerPolicy and no others."""
    iam = stack.client("iam")
    name = f"job-{uuid.uuid4().hex[:8]}"
    iam.create_user(UserName=name)
    iam.attach_user_policy(UserName=name, PolicyArn=stack.outputs["RecorderCallerPolicyArn"])
    key = iam.create_access_key(UserName=name)["AccessKey"]
    credentials = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
    names = {
        "WAYBILL_RECORDER": stack.outputs["RecorderFunctionName"],
        "WAYBILL_QUEUE": stack.outputs["ReportQueueUrl"],
        "WAYBILL_NAMESPACE": "company.sales",
    }
    for variable, value in (emulator.environment | credentials | names).items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # one made with these credentials must not outlive them


def events_of(stack: Stack, execution: str) -> list[dict[str, Any]]:
    """The lineage events of an execution."""
    pages = stack.client("dynamodb").get_paginator("scan").paginate(TableName=stack.names["LineageTable"])
    bodies = (item["body"]["S"] for page in pages for item in page["Items"] if "body" in item)
    found = [body for body in map(json.loads, bodies) if isinstance(body, dict)]
    return [body for body in found if body.get("executionId") == execution]


def eventually(stack: Stack, execution: str) -> list[dict[str, Any]]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := events_of(stack, execution)):
        assert time.monotonic() < deadline, "nothing was recorded in time"
        time.sleep(0.2)
    return found


# --- boto3, as in a Glue job


@pytest.mark.usefixtures("job_environment")
def test_a_block_that_succeeds_is_reported_with_what_it_learned(stack: Stack) -> None:
    execution = uuid.uuid4().hex
    orders = {"id": "lake.orders", "type": "Table"}
    with reported(
        "company.sales", "nightly", "load_orders", inputs=["s3.raw-orders"], outputs=[orders], execution=execution
    ) as outputs:
        outputs[0]["metadata"] = {"rows": 1204}
    (event,) = events_of(stack, execution)
    assert event["state"] == "SUCCESS"
    assert [asset["id"] for asset in event["inputs"]] == ["s3.raw-orders"]
    assert [asset["id"] for asset in event["outputs"]] == ["lake.orders"]


@pytest.mark.usefixtures("job_environment")
def test_a_block_that_fails_is_reported_and_still_fails(stack: Stack) -> None:
    execution = uuid.uuid4().hex
    with (
        pytest.raises(ValueError, match="no such file"),
        reported("company.sales", "nightly", "load_orders", inputs=["s3.raw-orders"], execution=execution),
    ):
        raise ValueError("no such file")
    (event,) = events_of(stack, execution)
    assert (event["state"], event["error"]["message"]) == ("FAILED", "ValueError: no such file")


@pytest.mark.usefixtures("job_environment")
def test_a_report_that_is_refused_fails_the_job() -> None:
    with (
        pytest.raises(RuntimeError, match=r"assets.outputs\[0\].id: "),
        reported("company.sales", "nightly", "load_orders", outputs=[{"id": " ", "type": "Table"}]),
    ):
        pass


def test_a_job_that_does_not_know_the_recorder_is_told_so_before_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAYBILL_RECORDER", raising=False)
    worked = False
    with (
        pytest.raises(RuntimeError, match="set WAYBILL_RECORDER to the stack's output RecorderFunctionName"),
        reported("company.sales", "nightly", "load_orders"),
    ):
        worked = True
    assert not worked


# --- Airflow


def task_instance(run_id: str, **changes: Any) -> SimpleNamespace:
    """What a callback of Airflow gets to know of a task (`airflow.models.taskinstance.TaskInstance`)."""
    now = datetime.now(UTC)
    known = {"dag_id": "nightly", "run_id": run_id, "task_id": "load_orders", "map_index": -1, "try_number": 1}
    return SimpleNamespace(**known | {"start_date": now, "end_date": now} | changes)


@pytest.mark.usefixtures("job_environment")
def test_airflows_callbacks_report_each_try(stack: Stack) -> None:
    run_id = f"scheduled__{uuid.uuid4().hex}"
    callbacks = reports(inputs=["s3.raw-orders"], outputs=[{"id": "lake.orders", "type": "Table"}])
    first, second = task_instance(run_id, end_date=None), task_instance(run_id, try_number=2)
    callbacks["on_retry_callback"]({"task_instance": first, "exception": ValueError("no such file")})
    eventually(stack, run_id)
    callbacks["on_success_callback"]({"task_instance": second})
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found := events_of(stack, run_id)) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert [event["state"] for event in sorted(found, key=lambda event: event["taskRunId"])] == ["FAILED", "SUCCESS"]


# --- Step Functions


@pytest.fixture(scope="module")
def machine(stack: Stack) -> str:
    """A state machine with the example's definition, and a job for it; its role has RecorderCallerPolicy."""
    iam, functions = stack.client("iam"), stack.client("lambda")
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "states.amazonaws.com"}}
    role = iam.create_role(
        RoleName="nightly", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    )["Role"]["Arn"]
    iam.attach_role_policy(RoleName="nightly", PolicyArn=stack.outputs["RecorderCallerPolicyArn"])
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("app.py", JOB)
    job = functions.create_function(
        FunctionName="job", Runtime="python3.13", Handler="app.handle", Role=role, Code={"ZipFile": code.getvalue()}
    )["FunctionArn"]
    may_run = {"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": job}
    iam.put_role_policy(
        RoleName="nightly",
        PolicyName="Job",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [may_run]}),
    )
    definition = (ROOT / "docs" / "examples" / "step_functions.asl.json").read_text()
    for name, value in (("JobFunction", job), ("RecorderFunctionName", stack.outputs["RecorderFunctionName"])):
        definition = definition.replace(f"${{{name}}}", value)  # as SAM's DefinitionSubstitutions does
    states = stack.client("stepfunctions")
    arn: str = states.create_state_machine(name="nightly", definition=definition, roleArn=role)["stateMachineArn"]
    return arn


def run(stack: Stack, machine: str, *, fails: bool) -> tuple[str, str]:
    """The name of an execution, and the status in which it ended."""
    states = stack.client("stepfunctions")
    execution = states.start_execution(stateMachineArn=machine, input=json.dumps({"fails": fails}))["executionArn"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := states.describe_execution(executionArn=execution))["status"] == "RUNNING":
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return found["name"], found["status"]


def test_a_state_machine_reports_a_job_that_succeeded(stack: Stack, machine: str) -> None:
    name, status = run(stack, machine, fails=False)
    assert status == "SUCCEEDED"
    (event,) = events_of(stack, name)
    assert (event["state"], event["taskRunId"]) == ("SUCCESS", f"{name}.load_orders")
    assert [asset["id"] for asset in event["outputs"]] == ["lake.orders"]


def test_a_state_machine_reports_a_job_that_failed_and_fails(stack: Stack, machine: str) -> None:
    name, status = run(stack, machine, fails=True)
    assert status == "FAILED"
    (event,) = events_of(stack, name)
    assert event["state"] == "FAILED"
    assert "no such file" in event["error"]["stackTrace"]


# --- dbt


def dbt_reports() -> str:
    metadata = ["owner=analytics", "environment=prod", "lineage_namespace=duckdb://jaffle_shop"]
    command = ["docs/examples/dbt_reports.py", str(DBT), "jaffle.analytics", "dbt_build", *metadata]
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not DBT.exists(), reason="the data of a real run is not beside this checkout")
def test_a_dbt_run_becomes_the_reports_of_its_nodes() -> None:
    found = [json.loads(line) for line in dbt_reports().splitlines()]
    assert found == [json.loads(line) for line in JAFFLE.read_text().splitlines()]


@pytest.mark.skipif(not DBT.exists(), reason="the data of a real run is not beside this checkout")
def test_the_reports_of_a_dbt_run_are_recorded_by_the_command_line(emulator: Emulator, stack: Stack) -> None:
    command = [sys.executable, "-c", "from waybill.cli import app; app()", "record", "-", "--stack", stack.name]
    done = subprocess.run(
        command, input=dbt_reports(), env=emulator.environment, capture_output=True, text=True, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["state"] for answer in answers] == ["SUCCESS"] * 8


USAGE = "usage: dbt_reports.py TARGET NAMESPACE FLOW [NAME=VALUE ...]\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, USAGE),
        (["target", "company.analytics"], 2, USAGE),
        (["target", "company.analytics", "dbt_build", "owner"], 2, USAGE),
        (
            ["demo", "company.analytics", "dbt_build"],
            1,
            "demo/run_results.json is not there; TARGET is the folder that dbt writes to\n",
        ),
    ],
)
def test_what_is_not_given_to_the_example_for_dbt_is_said_in_a_line(arguments: list[str], code: int, said: str) -> None:
    command = [sys.executable, "docs/examples/dbt_reports.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


# --- out of order


def asset(stack: Stack, asset_id: str) -> dict[str, Any]:
    """An asset as the catalog keeps it."""
    found = stack.client("dynamodb").get_item(
        TableName=stack.names["CatalogTable"], Key={"pk": {"S": f"asset#{asset_id}"}, "sk": {"S": "asset"}}
    )
    body: dict[str, Any] = json.loads(found["Item"]["body"]["S"])
    return body


def writer(asset_id: str, **changes: Any) -> dict[str, Any]:
    outputs = [{"id": asset_id, "type": "Table", "metadata": {}}]
    return scenarios.report(assets={"inputs": [], "outputs": outputs}, **changes)


def test_a_reader_that_reports_first_leaves_a_placeholder_that_the_writer_fills_in(stack: Stack) -> None:
    asset_id = f"lake.{uuid.uuid4().hex}"
    reader = scenarios.report(assets={"inputs": [{"id": asset_id}], "outputs": []})
    assert stack.invoke("RecorderFunction", reader)["assets"]["created"] == [asset_id]
    assert asset(stack, asset_id)["type"].endswith("External")
    stack.invoke("RecorderFunction", writer(asset_id))
    assert asset(stack, asset_id)["type"] == "Table"


def test_of_two_writers_the_one_that_reports_last_wins(stack: Stack) -> None:
    asset_id = f"lake.{uuid.uuid4().hex}"
    for day, owner in (("02", "new"), ("01", "old")):
        sent = writer(asset_id, startDate=f"2026-11-{day}T00:00:00Z", endDate=f"2026-11-{day}T01:00:00Z")
        sent["assets"]["outputs"][0]["metadata"] = {"owner": owner, f"of_{owner}": True}
        stack.invoke("RecorderFunction", sent)
    assert asset(stack, asset_id)["metadata"] == {"owner": "old", "of_new": True, "of_old": True}


def test_of_two_reports_of_one_task_run_the_first_counts(stack: Stack) -> None:
    asset_id = f"lake.{uuid.uuid4().hex}"
    first = writer(asset_id)
    second = first | {"state": "FAILED"}
    assert stack.invoke("RecorderFunction", second | {"state": "SUCCESS"}) == stack.invoke("RecorderFunction", second)
