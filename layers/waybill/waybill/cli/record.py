"""`waybill record`: hands in task run reports by hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waybill.cli.stack import DEFAULT_STACK, FunctionFailed, Stack, StackName
from waybill.errors import InvalidReport

if TYPE_CHECKING:
    from collections.abc import Iterator

app = typer.Typer()

LARGEST_INVOCATION = 5_500_000
"""Bytes of a report that an invocation carries; a larger one goes through the bucket of the stack."""

File = Annotated[
    Path, typer.Argument(help="One report as JSON, or one a line; - reads standard input.", metavar="FILE")
]


@app.command()
def record(file: File, stack: StackName = DEFAULT_STACK) -> None:
    """Hand in the task run reports of a file, one after the other, and print the answer to each as a line of JSON.

    A report that is refused does not stop the others; the exit code is then 1.
    """
    recorder = Stack(stack)
    refused = 0
    for place, report in _reports(file):
        try:
            typer.echo(json.dumps(_hand_in(recorder, report)))
        except FunctionFailed as error:
            refused += 1
            typer.secho(f"{place}: {error}", err=True, fg=typer.colors.RED)
    if refused:
        raise typer.Exit(1)


def _reports(file: Path) -> Iterator[tuple[str, Any]]:
    """Yield each report with its place in the file.

    Raises:
        InvalidReport: a line is no JSON, or the file cannot be read.
    """
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidReport([f"{file}: cannot be read ({error})"]) from None
    try:
        yield str(file), json.loads(text)
    except json.JSONDecodeError:
        yield from _lines(file, text)


def _lines(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            report = json.loads(line)
        except json.JSONDecodeError as error:
            raise InvalidReport([f"{file}:{number}: is not JSON ({error})"]) from None
        yield f"{file}:{number}", report


def _hand_in(stack: Stack, report: Any) -> Any:
    body = json.dumps(report).encode()
    if len(body) <= LARGEST_INVOCATION:
        return stack.invoke("RecorderFunction", report)
    bucket, key = stack.physical_id("LineageBucket"), f"reports/{_name(body)}.json"
    stack.client("s3").put_object(Bucket=bucket, Key=key, Body=body)
    return stack.invoke("RecorderFunction", {"report": f"s3://{bucket}/{key}"})


def _name(body: bytes) -> str:
    import hashlib

    return hashlib.sha256(body).hexdigest()[:32]
