"""The ways into the deployed functions, and where goes what fails."""

from __future__ import annotations

import copy
import json
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tools.emulator import ROOT
from tools.stack import FunctionFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.stack import Stack

PATIENCE_SECONDS = 30.0
SETTLED_SECONDS = 2.5


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

    def refused() -> bool:
        """Other tests may have left reports there, too."""
        messages = sqs.receive_message(QueueUrl=dead, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", ())
        return any(json.loads(message["Body"]) == bad for message in messages)

    eventually(refused)
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


@pytest.mark.parametrize("function", ["ShipperFunction", "FileExporterFunction"])
@pytest.mark.parametrize("pointer", ["s3", "ssm"])
def test_a_flow_that_is_pointed_to_files_what_was_recorded(stack: Stack, function: str, pointer: str) -> None:
    sent = [report(flowId=f"filed_{uuid.uuid4().hex}") for _ in range(2)]
    for document in sent:
        stack.invoke("RecorderFunction", document)
    files = {"id": "file", "type": "FileAssetExporter", "format": "JSON"}
    task = {"id": "export", "type": "AssetShipper", "lookbackPeriod": "PT1H", "flowId": sent[0]["flowId"]}
    flow = {"id": sent[0]["flowId"], "namespace": "company.platform", "tasks": [task | {"assetExporters": [files]}]}
    time.sleep(SETTLED_SECONDS)
    answer = stack.invoke(function, {"flow": pointed_to(stack, flow, pointer)})
    output = answer["outputs"]["export"]
    assert output["size"] == 1
    assert len(output["outputs"]["file"]["uris"]) == 1


def pointed_to(stack: Stack, flow: dict[str, Any], pointer: str) -> str:
    """Put a flow document where a pointer of this kind can lead to it, and return the pointer."""
    body, name = json.dumps(flow), flow["id"]
    if pointer == "ssm":
        stack.client("ssm").put_parameter(Name=f"/waybill/flows/{name}", Value=body, Type="String")
        return f"ssm:/waybill/flows/{name}"
    stack.client("s3").put_object(
        Bucket=stack.names["LineageBucket"], Key=f"waybill/flows/{name}.json", Body=body.encode()
    )
    return f"s3://{stack.names['LineageBucket']}/waybill/flows/{name}.json"
