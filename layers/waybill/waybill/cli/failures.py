"""`waybill failures`: what could not be done, in the stack's two queues for it: seen, tried again, or dropped.

`ReportDeadLetterQueue` holds reports as they were sent. `FailureQueue` holds what Lambda writes of an asynchronous
invocation that failed for good (https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html), and
events that a rule could not deliver.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waybill.cli.stack import DEFAULT_STACK, FunctionFailed, Stack, StackName
from waybill.cli.tables import AsJson, shortened, show_json, show_table
from waybill.clock import iso_of_millis
from waybill.errors import InvalidReport, InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

app = typer.Typer(no_args_is_help=True)

QUEUES = ("ReportDeadLetterQueue", "FailureQueue")
_HIDDEN_SECONDS = 120
_REPORT = "RecorderFunction"
_NOT_KNOWN = "refused, or failed five times"
EVERY = "all"

Ids = Annotated[list[str], typer.Argument(help="Ids, as `list` shows them, or `all`.")]


@dataclass(frozen=True, slots=True)
class Failure:
    """What could not be done.

    Attributes:
        queue: the logical id of the queue that it is in.
        id: of its message.
        time: when it was put into a queue first, ISO 8601.
        receipt: what SQS wants to hear when it is deleted.
        payload: what the function was given, or would have been.
        is_report: whether it is a report; a run of a flow otherwise.
        reason: what is known of why it failed.
    """

    queue: str
    id: str
    time: str
    receipt: str
    payload: Any
    is_report: bool
    reason: str

    def as_json(self) -> dict[str, Any]:
        """Return the failure as users see it, without its payload."""
        return {"id": self.id, "queue": self.queue, "what": _named(self), "time": self.time, "reason": self.reason}


@app.command(name="list")
def list_(*, as_json: AsJson = False, stack: StackName = DEFAULT_STACK) -> None:
    """Show what failed for good, since when, and why, as far as that is known."""
    with _held(Stack(stack)) as found:
        if as_json:
            show_json([failure.as_json() for failure in found])
            return
        rows = [
            (failure.id, failure.queue, _named(failure), failure.time, shortened(failure.reason)) for failure in found
        ]
        show_table(("id", "queue", "what", "since", "why"), rows, "Nothing failed for good.")


@app.command()
def show(ids: Ids, stack: StackName = DEFAULT_STACK) -> None:
    """Show failures whole: why, and as `payload` the report, or what else the function was given."""
    with _held(Stack(stack)) as found:
        for failure in _chosen(found, ids):
            show_json(failure.as_json() | {"payload": failure.payload})


@app.command()
def drop(ids: Ids, stack: StackName = DEFAULT_STACK) -> None:
    """Forget failures: what was handed in again after it was mended, or is not wanted."""
    deployed = Stack(stack)
    with _held(deployed) as found:
        for failure in _chosen(found, ids):
            _delete(deployed, failure)
            found.remove(failure)
            typer.echo(f"{failure.id} {_named(failure)}: dropped")


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
            _delete(deployed, failure)
            typer.echo(f"{_named(failure)}: {outcome}")
    _give_back(deployed, failed_again)
    if failed_again:
        raise typer.Exit(1)


def failures(stack: Stack) -> Iterator[Failure]:
    """Yield what is in the queues of a stack; for two minutes nobody else sees it."""
    for queue in QUEUES:
        while messages := _messages(stack, queue):
            yield from (_failure(queue, message) for message in messages)


@contextmanager
def _held(stack: Stack) -> Iterator[list[Failure]]:
    """Yield all there is. What is still in the list at the end goes back to its queue."""
    found: list[Failure] = []
    try:
        found.extend(failures(stack))
        yield found
    finally:
        _give_back(stack, found)


def _chosen(found: Sequence[Failure], ids: Sequence[str]) -> list[Failure]:
    """Return the failures that are named.

    Raises:
        InvalidRequest: one of them does not exist.
    """
    if EVERY in ids:
        return list(found)
    missing = set(ids) - {failure.id for failure in found}
    if missing:
        raise InvalidRequest([f"{each}: is no failure; `waybill failures list` shows them" for each in sorted(missing)])
    return [failure for failure in found if failure.id in ids]


def _delete(stack: Stack, failure: Failure) -> None:
    stack.client("sqs").delete_message(**_place(stack, failure))


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
        AttributeNames=["SentTimestamp"],
        MessageAttributeNames=["All"],
    )
    messages: list[dict[str, Any]] = answer.get("Messages", [])
    return messages


def _failure(queue: str, message: dict[str, Any]) -> Failure:
    time = iso_of_millis(int(message["Attributes"]["SentTimestamp"]))
    payload, is_report, reason = _read(queue, message)
    return Failure(queue, message["MessageId"], time, message["ReceiptHandle"], payload, is_report, reason)


def _read(queue: str, message: dict[str, Any]) -> tuple[Any, bool, str]:
    """Return what the function was given, whether it is a report, and why it failed."""
    try:
        body = json.loads(message["Body"])
    except json.JSONDecodeError:
        return message["Body"], True, "is not JSON"
    if queue == "ReportDeadLetterQueue":
        return body, True, _refusal(body)
    if isinstance(body, dict) and "requestPayload" in body:
        error = body.get("responsePayload") or {}
        reason = f"{error.get('errorType', '')}: {'; '.join(str(error.get('errorMessage', '')).splitlines())}"
        is_report = _REPORT in body.get("requestContext", {}).get("functionArn", "")
        return body["requestPayload"], is_report, reason.strip(": ")
    attributes = message.get("MessageAttributes", {})
    reason = attributes.get("ERROR_MESSAGE", attributes.get("ERROR_CODE", {})).get("StringValue", "not delivered")
    return body, isinstance(body, dict) and body.get("detail-type") == "Task Run Report", reason


def _refusal(report: Any) -> str:
    """Say why a report is refused; the queue does not tell it from one that failed again and again."""
    from waybill.model.report import parse_report

    if isinstance(report, dict) and report.keys() == {"report"}:
        return _NOT_KNOWN  # the report itself lies elsewhere
    try:
        parse_report(report)
    except InvalidReport as error:
        return f"refused: {'; '.join(error.faults)}"
    return "failed five times"


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
