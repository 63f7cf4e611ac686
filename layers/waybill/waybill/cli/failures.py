"""`waybill failures`: what could not be done, in the stack's two queues for it, and trying it again.

`ReportDeadLetterQueue` holds reports as they were sent. `FailureQueue` holds what Lambda writes of an asynchronous
invocation that failed for good (https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html), and
events that a rule could not deliver.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from waybill.cli.stack import DEFAULT_STACK, FunctionFailed, Stack, StackName

if TYPE_CHECKING:
    from collections.abc import Iterator

app = typer.Typer(no_args_is_help=True)

QUEUES = ("ReportDeadLetterQueue", "FailureQueue")
_HIDDEN_SECONDS = 120
_REPORT = "RecorderFunction"


@dataclass(frozen=True, slots=True)
class Failure:
    """What could not be done.

    Attributes:
        queue: the logical id of the queue that it is in.
        receipt: what SQS wants to hear when it is deleted.
        payload: what the function was given, or would have been.
        is_report: whether it is a report; a run of a flow otherwise.
        reason: what is known of why it failed.
    """

    queue: str
    receipt: str
    payload: Any
    is_report: bool
    reason: str


@app.command(name="list")
def list_(stack: StackName = DEFAULT_STACK) -> None:
    """Show what failed for good, and why, as far as that is known."""
    from rich.console import Console
    from rich.table import Table

    deployed = Stack(stack)
    table = Table("queue", "what", "why")
    found = list(failures(deployed))
    for failure in found:
        table.add_row(failure.queue, _named(failure), failure.reason)
    _give_back(deployed, found)
    Console().print(table if found else "Nothing failed for good.")


@app.command()
def retry(stack: StackName = DEFAULT_STACK) -> None:
    """Hand in reports again, and drop runs of flows, for their next run goes on where they stopped.

    What fails again stays where it is; the exit code is then 1.
    """
    deployed = Stack(stack)
    failed_again: list[Failure] = []
    for failure in failures(deployed):
        try:
            outcome = _tried(deployed, failure)
        except FunctionFailed as error:
            failed_again.append(failure)
            typer.secho(f"{_named(failure)}: {error}", err=True, fg=typer.colors.RED)
        else:
            deployed.client("sqs").delete_message(**_place(deployed, failure))
            typer.echo(f"{_named(failure)}: {outcome}")
    _give_back(deployed, failed_again)
    if failed_again:
        raise typer.Exit(1)


def failures(stack: Stack) -> Iterator[Failure]:
    """Yield what is in the queues of a stack; for two minutes nobody else sees it."""
    for queue in QUEUES:
        while messages := _messages(stack, queue):
            yield from (_failure(queue, message) for message in messages)


def _give_back(stack: Stack, found: list[Failure]) -> None:
    """Let others see at once what stays in its queue."""
    for failure in found:
        stack.client("sqs").change_message_visibility(**_place(stack, failure), VisibilityTimeout=0)


def _place(stack: Stack, failure: Failure) -> dict[str, str]:
    return {"QueueUrl": stack.physical_id(failure.queue), "ReceiptHandle": failure.receipt}


def _messages(stack: Stack, queue: str) -> list[dict[str, Any]]:
    answer = stack.client("sqs").receive_message(
        QueueUrl=stack.physical_id(queue),
        MaxNumberOfMessages=10,
        VisibilityTimeout=_HIDDEN_SECONDS,
        MessageAttributeNames=["All"],
    )
    messages: list[dict[str, Any]] = answer.get("Messages", [])
    return messages


def _failure(queue: str, message: dict[str, Any]) -> Failure:
    try:
        body = json.loads(message["Body"])
    except json.JSONDecodeError:
        return Failure(queue, message["ReceiptHandle"], message["Body"], is_report=True, reason="is not JSON")
    receipt = message["ReceiptHandle"]
    if queue == "ReportDeadLetterQueue":
        return Failure(queue, receipt, body, is_report=True, reason="refused, or failed five times")
    if isinstance(body, dict) and "requestPayload" in body:
        error = body.get("responsePayload") or {}
        reason = f"{error.get('errorType', '')}: {error.get('errorMessage', '')}".partition("\n")[0]
        is_report = _REPORT in body.get("requestContext", {}).get("functionArn", "")
        return Failure(queue, receipt, body["requestPayload"], is_report=is_report, reason=reason.strip(": "))
    attributes = message.get("MessageAttributes", {})
    reason = attributes.get("ERROR_MESSAGE", attributes.get("ERROR_CODE", {})).get("StringValue", "not delivered")
    is_report = isinstance(body, dict) and body.get("detail-type") == "Task Run Report"
    return Failure(queue, receipt, body, is_report=is_report, reason=reason)


def _tried(stack: Stack, failure: Failure) -> str:
    if not failure.is_report:
        return "dropped; the flow's next run goes on where it stopped"
    stack.invoke(_REPORT, failure.payload)
    return "recorded"


def _named(failure: Failure) -> str:
    """Name what failed: a task run, or a flow."""
    said = failure.payload if isinstance(failure.payload, dict) else {}
    said = said.get("detail", said) if failure.is_report else said.get("flow", said)
    if not isinstance(said, dict):
        return str(said)
    if failure.is_report:
        return f"report {said.get('namespace', '?')}/{said.get('flowId', '?')}.{said.get('taskId', '?')}"
    return f"run of {said.get('namespace', '?')}/{said.get('id', '?')}"
