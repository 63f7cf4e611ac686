"""`waybill failures`: what failed for good is seen, and tried again."""

from __future__ import annotations

import json
import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from tests.support.scenarios import report
from waybill.cli import app
from waybill.store import aws

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.emulator import Emulator
    from tools.stack import Stack

PATIENCE_SECONDS = 30.0
QUEUES = ("ReportDeadLetterQueue", "FailureQueue")


@pytest.fixture(autouse=True)
def _empty_queues(stack: Stack, emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in emulator.environment.items():
        monkeypatch.setenv(name, value)
    aws.client.cache_clear()
    aws.single_try_client.cache_clear()
    for queue in QUEUES:
        stack.client("sqs").purge_queue(QueueUrl=stack.names[queue])
    yield
    aws.client.cache_clear()
    aws.single_try_client.cache_clear()


def put(stack: Stack, queue: str, body: Any) -> None:
    stack.client("sqs").send_message(QueueUrl=stack.names[queue], MessageBody=json.dumps(body))


def left(stack: Stack) -> list[int]:
    """How many messages each queue holds."""
    wanted = ["ApproximateNumberOfMessages"]
    read = [
        stack.client("sqs").get_queue_attributes(QueueUrl=stack.names[queue], AttributeNames=wanted)["Attributes"]
        for queue in QUEUES
    ]
    return [int(attributes["ApproximateNumberOfMessages"]) for attributes in read]


def failed_run(stack: Stack) -> None:
    """Let a run of a flow fail for good; the emulator keeps it only when the function is called by its bare name."""
    flow = {"id": "broken", "namespace": "company.platform", "tasks": []}
    stack.client("lambda").invoke(
        FunctionName=stack.names["ShipperFunction"], InvocationType="Event", Payload=json.dumps(flow).encode()
    )
    deadline = time.monotonic() + PATIENCE_SECONDS
    while left(stack) != [0, 1]:
        assert time.monotonic() < deadline, "nothing came in time"
        time.sleep(0.2)


def run(stack: Stack, *command: str) -> tuple[int, list[str], list[str]]:
    """The exit code of a command, what it said, and its errors."""
    result = CliRunner().invoke(app, ["failures", *command, "--stack", stack.name])
    return result.exit_code, result.stdout.splitlines(), result.stderr.splitlines()


def events_of(stack: Stack, flow_id: str) -> int:
    items = stack.client("dynamodb").scan(TableName=stack.names["LineageTable"])["Items"]
    return sum(flow_id in item.get("body", {}).get("S", "") for item in items if "#" in item["bucket"]["S"][:15])


def test_nothing_failed(stack: Stack) -> None:
    assert run(stack, "list") == (0, ["Nothing failed for good."], [])
    assert run(stack, "retry") == (0, [], [])


def test_what_failed_is_listed_with_its_reason_and_stays(stack: Stack) -> None:
    failed_run(stack)
    put(stack, "ReportDeadLetterQueue", report(flowId="nightly"))
    for _ in range(2):
        _, lines, _ = run(stack, "list")
        (of_report,) = (line for line in lines if "ReportDeadLetterQueue" in line)
        (of_run,) = (line for line in lines if "FailureQueue" in line)
        assert "report company.data/nightly.build_fct_orders" in of_report
        assert "failed five times" in of_report
        assert "run of company.platform/broken" in of_run
        assert "tasks: " in of_run
    assert left(stack) == [1, 1]


def test_reports_are_handed_in_again_and_runs_are_dropped(stack: Stack) -> None:
    failed_run(stack)
    sent, on_the_bus = report(), report()
    put(stack, "ReportDeadLetterQueue", sent)
    put(stack, "FailureQueue", {"detail-type": "Task Run Report", "source": "job", "detail": on_the_bus})
    code, lines, errors = run(stack, "retry")
    assert (code, errors) == (0, [])
    assert sorted(lines) == sorted(
        [
            f"report company.data/{sent['flowId']}.build_fct_orders: recorded",
            f"report company.data/{on_the_bus['flowId']}.build_fct_orders: recorded",
            "run of company.platform/broken: dropped; the flow's next run goes on where it stopped",
        ]
    )
    assert left(stack) == [0, 0]
    assert [events_of(stack, document["flowId"]) for document in (sent, on_the_bus)] == [1, 1]


def test_an_invocation_that_lambda_kept_is_made_again(stack: Stack) -> None:
    sent = report()
    arn = f"arn:aws:lambda:us-east-1:000000000000:function:{stack.names['RecorderFunction']}:live"
    put(
        stack,
        "FailureQueue",
        {
            "version": "1.0",
            "requestContext": {"requestId": str(uuid.uuid4()), "functionArn": arn, "condition": "RetriesExhausted"},
            "requestPayload": {"detail-type": "Task Run Report", "detail": sent},
            "responsePayload": {"errorType": "ProvisionedThroughputExceededException", "errorMessage": "slow down"},
        },
    )
    assert any("ProvisionedThroughputExceededException: slow down" in line for line in run(stack, "list")[1])
    assert run(stack, "retry")[0] == 0
    assert events_of(stack, sent["flowId"]) == 1


def test_what_is_refused_again_stays_and_says_why(stack: Stack) -> None:
    bad = report(flowId="nightly")
    del bad["state"]
    put(stack, "ReportDeadLetterQueue", bad)
    code, _, errors = run(stack, "retry")
    assert code == 1
    assert errors[0].startswith("report company.data/nightly.build_fct_orders: ")
    assert errors[-1].startswith("state: ")
    assert left(stack) == [1, 0]


def listed(stack: Stack) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads("\n".join(run(stack, "list", "--json")[1]))
    return found


def test_a_report_that_is_refused_is_seen_whole_mended_handed_in_and_dropped(stack: Stack) -> None:
    bad = report(flowId="nightly")
    del bad["state"], bad["taskId"]
    put(stack, "ReportDeadLetterQueue", bad)
    put(stack, "ReportDeadLetterQueue", report(flowId="other"))

    (failure,) = (each for each in listed(stack) if each["reason"] != "failed five times")
    assert failure == {
        "id": failure["id"],
        "queue": "ReportDeadLetterQueue",
        "what": "report company.data/nightly.?",
        "time": failure["time"],
        "reason": "refused: taskId: is required; state: is required",
    }
    assert abs(datetime.fromisoformat(failure["time"]) - datetime.now(UTC)) < timedelta(minutes=1)
    for _ in range(2):
        _, lines, _ = run(stack, "show", failure["id"])
        assert json.loads("\n".join(lines)) == failure | {"payload": bad}

    assert run(stack, "drop", failure["id"]) == (0, [f"{failure['id']} report company.data/nightly.?: dropped"], [])
    assert left(stack) == [1, 0]
    assert [each["what"] for each in listed(stack)] == ["report company.data/other.build_fct_orders"]


def test_all_are_dropped_at_once(stack: Stack) -> None:
    put(stack, "ReportDeadLetterQueue", report())
    put(stack, "FailureQueue", {"detail-type": "Task Run Report", "source": "job", "detail": report()})
    assert run(stack, "drop", "all")[0] == 0
    assert left(stack) == [0, 0]


def test_why_a_report_that_lies_elsewhere_failed_is_not_known(stack: Stack) -> None:
    put(stack, "ReportDeadLetterQueue", {"report": "s3://reports/one.json"})
    (failure,) = listed(stack)
    assert failure["reason"] == "refused, or failed five times"


@pytest.mark.parametrize("command", ["show", "drop"])
def test_a_failure_that_is_not_there_is_named_and_the_others_stay(stack: Stack, command: str) -> None:
    put(stack, "ReportDeadLetterQueue", report())
    code, lines, errors = run(stack, command, "none")
    assert (code, lines, errors) == (1, [], ["none: is no failure; `waybill failures list` shows them"])
    assert left(stack) == [1, 0]
