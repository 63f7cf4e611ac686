"""What the functions log at INFO: structured, found by flow, task and event, with no secret and no asset's metadata."""

from __future__ import annotations

import json
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.scenarios import KEY, Scenarios, receiver, report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.stack import Stack

SETTLED_SECONDS = 2.2
GROUPS = ("RecorderLog", "ShipperLog", "FileExporterLog", "CatalogLog")
HIDDEN = "nobody-reads-this-in-a-log"
PATIENCE_SECONDS = 10.0


def lines(stack: Stack, group: str) -> list[str]:
    pages = stack.client("logs").get_paginator("filter_log_events").paginate(logGroupName=stack.names[group])
    return [event["message"] for page in pages for event in page["events"]]


def entries(stack: Stack, group: str, **keys: str) -> list[dict[str, Any]]:
    """The structured lines of a log that have these keys, once there are some."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = [json.loads(line) for line in lines(stack, group) if line.startswith('{"level"')]
        if chosen := [entry for entry in found if keys.items() <= entry.items()]:
            return chosen
        time.sleep(0.2)
    raise AssertionError(f"{group} has no line with {keys}")


@pytest.fixture(scope="module")
def scenarios(stack: Stack) -> Iterator[Scenarios]:
    fast = receiver(0)
    url = next(fast)
    yield Scenarios(stack, url, url)
    next(fast, None)


@pytest.fixture(scope="module")
def logged(scenarios: Scenarios) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A report with confidential metadata, and the flows that shipped and filed it."""
    sent = report()
    sent["assets"]["outputs"][0] |= {"description": HIDDEN, "metadata": {"owner": HIDDEN}}
    scenarios.stack.invoke("RecorderFunction", sent)
    time.sleep(SETTLED_SECONDS)
    shipping = scenarios.flow(scenarios.by_secret, scenarios.by_parameter | {"id": "other"}, flowId=sent["flowId"])
    filing = scenarios.flow(scenarios.files(), flowId=sent["flowId"])
    scenarios.run("ShipperFunction", shipping)
    scenarios.run("FileExporterFunction", filing)
    scenarios.ask("GET", f"/assets/{sent['assets']['outputs'][0]['id']}")
    return sent, shipping, filing


def test_a_report_is_found_by_its_task_run_and_its_events(stack: Stack, logged: tuple[dict[str, Any], ...]) -> None:
    (sent, _, _) = logged
    (entry,) = entries(stack, "RecorderLog", taskRunId=sent["taskRunId"])
    assert entry["job"] == f"company.data/{sent['flowId']}.{sent['taskId']}"
    assert (entry["level"], entry["message"], entry["state"]) == ("INFO", "recorded", "SUCCESS")
    assert [uuid.UUID(event).version for event in entry["lineageEvents"]] == [5]


@pytest.mark.parametrize(("group", "position"), [("ShipperLog", 1), ("FileExporterLog", 2)])
def test_a_run_is_found_by_its_flow_and_tells_what_each_exporter_did(
    stack: Stack, logged: tuple[dict[str, Any], ...], group: str, position: int
) -> None:
    flow = logged[position]
    (entry,) = entries(stack, group, flow=f"company.platform/{flow['id']}")
    (task,) = flow["tasks"]
    assert (entry["message"], entry["task"], entry["size"], entry["complete"]) == ("shipped", "ship", 1, True)
    assert set(entry["exporters"]) == {exporter["id"] for exporter in task["assetExporters"]}
    assert entry["function_request_id"]


@pytest.mark.usefixtures("logged")
def test_no_log_holds_a_secret_or_an_assets_metadata(stack: Stack) -> None:
    for group in GROUPS:
        text = "\n".join(lines(stack, group))
        assert text, group
        assert KEY not in text, group
        assert HIDDEN not in text, group
