"""The ways into the deployed functions, and where goes what fails."""

from __future__ import annotations

import copy
import json
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tools.emulator import ROOT, Emulator
from tools.stack import FunctionFailed, Stack, deploy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_SECONDS = 30.0


def report(**changes: Any) -> dict[str, Any]:
    """A valid report of a task run of its own."""
    document: dict[str, Any] = json.loads((ROOT / "events" / "record_success.json").read_text())
    return copy.deepcopy(document) | {"taskRunId": str(uuid.uuid4()), "flowId": f"wiring_{uuid.uuid4().hex}"} | changes


def events_of(stack: Stack, flow_id: str) -> list[dict[str, Any]]:
    """The lineage events in the log that belong to a flow."""
    pages = stack.client("dynamodb").get_paginator("scan").paginate(TableName=stack.names["LineageTable"])
    bodies = (item["body"]["S"] for page in pages for item in page["Items"] if "body" in item)
    return [body for body in map(json.loads, bodies) if isinstance(body, dict) and body.get("flowId") == flow_id]


def eventually(look: Callable[[], Any]) -> Any:
    """What `look` finds, as soon as it finds something."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, "nothing came in time"
        time.sleep(0.2)
    return found


def test_a_report_on_the_bus_is_recorded_whatever_its_source(stack: Stack) -> None:
    sent = report()
    entry = {"Source": "anybody", "DetailType": "Task Run Report", "Detail": json.dumps(sent)}
    stack.client("events").put_events(Entries=[entry | {"EventBusName": stack.names["LineageBus"]}])
    assert len(eventually(lambda: events_of(stack, sent["flowId"]))) == 1


def test_of_a_batch_only_the_refused_report_fails_and_ends_in_the_dead_letter_queue(stack: Stack) -> None:
    good, bad = report(), report()
    del bad["taskRunId"]
    sqs, queue = stack.client("sqs"), stack.outputs["ReportQueueUrl"]
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "1"})  # five tries in five seconds
    entries = [{"Id": name, "MessageBody": json.dumps(document)} for name, document in (("good", good), ("bad", bad))]
    sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    dead = stack.outputs["ReportDeadLetterQueueUrl"]
    (message,) = eventually(lambda: sqs.receive_message(QueueUrl=dead, WaitTimeSeconds=1).get("Messages"))
    assert json.loads(message["Body"]) == bad
    assert len(events_of(stack, good["flowId"])) == 1
    assert events_of(stack, bad["flowId"]) == []


def test_a_refused_report_names_its_fault_and_writes_nothing(stack: Stack) -> None:
    bad = report()
    del bad["taskRunId"]
    with pytest.raises(FunctionFailed) as caught:
        stack.invoke("RecorderFunction", bad)
    assert caught.value.error_type == "InvalidReport"
    assert caught.value.error_message.startswith("taskRunId: ")
    assert events_of(stack, bad["flowId"]) == []


def test_a_large_report_is_taken_from_the_bucket(stack: Stack) -> None:
    sent = report()
    key = f"reports/{uuid.uuid4()}.json"
    stack.client("s3").put_object(Bucket=stack.names["LineageBucket"], Key=key, Body=json.dumps(sent).encode())
    answer = stack.invoke("RecorderFunction", {"report": f"s3://{stack.names['LineageBucket']}/{key}"})
    assert answer["state"] == "SUCCESS"
    assert len(events_of(stack, sent["flowId"])) == 1


def test_what_failed_for_good_waits_in_the_failure_queue_with_its_payload(stack: Stack) -> None:
    flow = {"id": "broken", "namespace": "company.platform", "tasks": []}
    stack.client("lambda").invoke(
        FunctionName=stack.names["ShipperFunction"], InvocationType="Event", Payload=json.dumps(flow).encode()
    )
    queue = stack.outputs["FailureQueueUrl"]
    (message,) = eventually(
        lambda: stack.client("sqs").receive_message(QueueUrl=queue, WaitTimeSeconds=1).get("Messages")
    )
    assert json.loads(message["Body"])["requestPayload"] == flow


@pytest.fixture(scope="module")
def enforcing() -> Iterator[Stack]:
    """A stack on an emulator that checks every call of a function against its role."""
    with Emulator(enforce_iam=True) as emulator:
        yield deploy(emulator)


def test_each_function_may_do_what_it_does(enforcing: Stack) -> None:
    for line in (ROOT / "events" / "demo" / "warehouse.jsonl").read_text().splitlines()[:3]:
        assert enforcing.invoke("RecorderFunction", json.loads(line))["state"] == "SUCCESS"
    time.sleep(2.5)
    files = {"id": "file", "type": "FileAssetExporter", "format": "JSON"}
    tasks = [{"id": "export", "type": "AssetShipper", "lookbackPeriod": "PT1H", "assetExporters": [files]}]
    for function in ("ShipperFunction", "FileExporterFunction"):
        flow = {"id": f"of_{function.lower()}", "namespace": "company.platform", "tasks": tasks}
        output = enforcing.invoke(function, flow)["outputs"]["export"]
        assert output["size"] == 3
        assert len(output["outputs"]["file"]["uris"]) == 1
