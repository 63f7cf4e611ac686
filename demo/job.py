"""The main job on a deployed stack: record reports, ship their lineage, file it. Nothing here draws."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tools.stack import FunctionFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tools.stack import Stack

PATIENCE_SECONDS = 20.0
PAUSE_SECONDS = 0.5
API_KEY_PARAMETER = "/waybill/secrets/demo-api-key"


class Functions(Protocol):
    """A stack, as far as its functions go."""

    def invoke(self, function: str, payload: Any) -> Any:
        """Invoke a function, named by its logical id, and return its answer."""
        ...


class DemoFault(Exception):
    """The demo cannot go on. The message says why."""


@dataclass(slots=True)
class Delivery:
    """What the runs of a flow's task delivered.

    Attributes:
        size: lineage events, over all runs.
        end_fetched_date: as the last run said.
        uris: of the files that a file exporter wrote.
    """

    size: int = 0
    end_fetched_date: str | None = None
    uris: list[str] = field(default_factory=list)


def read_reports(path: Path) -> list[dict[str, Any]]:
    """Read task run reports, one JSON object a line.

    Raises:
        DemoFault: there is no such file, it holds no report, or a line is no JSON object.
    """
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise DemoFault(f"{path}: {error.strerror}") from None
    reports = [_report(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not reports:
        raise DemoFault(f"{path}: holds no report; it needs one JSON object a line")
    return reports


def _report(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        report = json.loads(line)
    except ValueError as error:
        raise DemoFault(f"{path}:{number}: is not JSON: {error}") from None
    if not isinstance(report, dict):
        raise DemoFault(f"{path}:{number}: must be a JSON object")
    return report


def record(stack: Functions, reports: Sequence[dict[str, Any]], say: Callable[[str], None]) -> list[str]:
    """Record reports one after the other, and return the ids of their lineage events, each once.

    Raises:
        DemoFault: the recorder refuses a report; says which and why.
    """
    events: dict[str, None] = {}
    for number, report in enumerate(reports, 1):
        say(f"report {number} of {len(reports)}, {len(events)} lineage events so far")
        try:
            answer = stack.invoke("RecorderFunction", report)
        except FunctionFailed as error:
            raise DemoFault(f"report {number}: {error.error_type}\n{error.error_message}") from None
        events.update(dict.fromkeys(answer["lineageEvents"]))
    say(f"{len(events)} lineage events of {len(reports)} task runs")
    return list(events)


def deliver(
    stack: Functions, function: str, flow: dict[str, Any], expected: int, say: Callable[[str], None]
) -> Delivery:
    """Run a flow until its first task has delivered what is expected: what was just recorded settles first.

    Raises:
        DemoFault: nothing more comes, and not all has come.
        FunctionFailed: the function ended with an error.
    """
    delivery = Delivery()
    give_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        complete = run_once(stack, function, flow, delivery)
        say(f"{delivery.size} of {expected} lineage events")
        if complete and delivery.size >= expected:
            return delivery
        if time.monotonic() > give_up:
            raise DemoFault(f"{function} delivered {delivery.size} lineage events of {expected}")
        time.sleep(PAUSE_SECONDS)


def run_once(stack: Functions, function: str, flow: dict[str, Any], delivery: Delivery) -> bool:
    """Run a flow once, add what its first task delivered, and tell whether it came to the end of the log.

    Raises:
        FunctionFailed: the function ended with an error.
    """
    output = stack.invoke(function, flow)["outputs"][flow["tasks"][0]["id"]]
    delivery.size += output["size"]
    delivery.end_fetched_date = output["endFetchedDate"]
    for exporter in output["outputs"].values():
        delivery.uris += exporter.get("uris", [])
    return bool(output["complete"])


def keep_secret(stack: Stack, value: str) -> str:
    """Put a secret where the shipper may read it, and return its name."""
    stack.client("ssm").put_parameter(Name=API_KEY_PARAMETER, Value=value, Type="SecureString", Overwrite=True)
    return API_KEY_PARAMETER


def fetch(stack: Stack, uris: Iterable[str], folder: Path) -> list[dict[str, Any]]:
    """Copy files of JSON lines from S3 into a folder, and return the lines of them all."""
    folder.mkdir(parents=True, exist_ok=True)
    lines: list[dict[str, Any]] = []
    for uri in uris:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        body = stack.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        (folder / Path(key).name).write_bytes(body)
        lines += [json.loads(line) for line in body.splitlines()]
    return lines
