"""Each alarm goes off by the fault that it stands for, and by no other.

The emulator evaluates alarms and counts errors, throttles and durations of functions; `tests/support/cloudwatch.py`
does what it leaves out of CloudWatch. Thresholds of time are made small, for nobody waits a quarter of an hour.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from samtranslator.yaml_helper import yaml_parse

from tests.support.cloudwatch import CloudWatch
from tests.support.scenarios import SETTLED_SECONDS, report
from tools.emulator import ROOT, Emulator
from tools.stack import FunctionFailed, Stack, deploy
from waybill.clock import utc_now
from waybill.ids import uuid7_floor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FUNCTIONS = ("RecorderFunction", "ShipperFunction", "FileExporterFunction", "CatalogFunction")
NOT_ON_AN_EMULATOR = dict.fromkeys(
    ("ShipLineageSilentAlarm", "ExportLineageSilentAlarm"), "an emulator takes no missing data for a sign"
)
PARAMETERS = {"SettleSeconds": "1", "LagAlarmSeconds": "2", "LineageRetentionDays": "1"}
OLD = timedelta(hours=13)
PATIENCE_SECONDS = 30.0


class Backend(BaseHTTPRequestHandler):
    """Answers by what its address says: takes, refuses, is in trouble for its first tries, or is down."""

    protocol_version = "HTTP/1.1"
    tries: Counter[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        how = self.path.split("/")[1]
        self.tries[how] += 1
        statuses = {"refuses": 422, "down": 503, "troubled": 503 if self.tries[how] <= 8 else 201}
        self.send_response(statuses.get(how, 201))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture(scope="module")
def backend() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Backend,), {"tries": Counter()}))
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass
class Watched:
    """A stack whose alarms are sent to a topic, and from there to a queue."""

    stack: Stack
    backend: str
    inbox: str
    cloudwatch: CloudWatch = field(init=False)
    _notified: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.cloudwatch = CloudWatch(self.stack)

    def record(self, count: int = 1, **changes: Any) -> dict[str, Any]:
        sent = report(**changes)
        for _ in range(count):
            self.stack.invoke("RecorderFunction", sent | {"taskRunId": str(uuid.uuid4()), "taskId": uuid.uuid4().hex})
        time.sleep(SETTLED_SECONDS)
        return sent

    def flow(self, how: str = "takes", **task: Any) -> dict[str, Any]:
        exporter: dict[str, Any] = {"id": "backend", "type": "OpenLineageAssetExporter", "uri": f"{self.backend}/{how}"}
        exporter |= {"timeout": {"giveUp": 1 if how == "down" else 20}}
        shipper = {"id": "ship", "type": "AssetShipper", "lookbackPeriod": "PT20H", "assetExporters": [exporter]}
        return {"id": f"flow_{uuid.uuid4().hex}", "namespace": "company.platform", "tasks": [shipper | task]}

    def items(self, flow_id: str) -> list[dict[str, Any]]:
        """The log items of a flow's events."""
        found = self.stack.client("dynamodb").scan(TableName=self.stack.names["LineageTable"])["Items"]
        return [item for item in found if flow_id in item.get("body", {}).get("S", "") and "#" in item["bucket"]["S"]]

    def put(self, item: dict[str, Any]) -> None:
        self.stack.client("dynamodb").put_item(TableName=self.stack.names["LineageTable"], Item=item)

    def notified(self) -> set[str]:
        """The names of the alarms that were sent to the topic so far."""
        sqs = self.stack.client("sqs")
        while messages := sqs.receive_message(QueueUrl=self.inbox, MaxNumberOfMessages=10).get("Messages", ()):
            for message in messages:
                self._notified.add(json.loads(json.loads(message["Body"])["Message"])["AlarmName"])
                sqs.delete_message(QueueUrl=self.inbox, ReceiptHandle=message["ReceiptHandle"])
        return self._notified


@pytest.fixture(scope="module")
def watched(backend: str) -> Iterator[Watched]:
    with Emulator() as emulator:
        before = Stack(emulator.url)
        topic = before.client("sns").create_topic(Name="alarms")["TopicArn"]
        inbox = before.client("sqs").create_queue(QueueName="inbox")["QueueUrl"]
        queue = before.client("sqs").get_queue_attributes(QueueUrl=inbox, AttributeNames=["QueueArn"])
        before.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue["Attributes"]["QueueArn"])
        yield Watched(deploy(emulator, parameters=PARAMETERS | {"AlarmTopicArn": topic}), backend, inbox)


def all_is_well(watched: Watched) -> None:
    sent = watched.record()
    watched.stack.invoke("ShipperFunction", watched.flow(flowId=sent["flowId"]))


def refused(watched: Watched) -> None:
    sent = watched.record()
    watched.stack.invoke("ShipperFunction", watched.flow("refuses", flowId=sent["flowId"]))


def committed_late(watched: Watched) -> None:
    """An event's write commits behind the position that a run has stored."""
    sent = watched.record(2)
    flow = watched.flow(flowId=sent["flowId"])
    watched.stack.invoke("ShipperFunction", flow)
    (item, *_) = watched.items(sent["flowId"])
    event = json.loads(item["body"]["S"]) | {"id": str(uuid.uuid4())}
    earlier = uuid7_floor(utc_now() - timedelta(seconds=SETTLED_SECONDS + 2))
    watched.put(item | {"id": {"S": earlier}, "body": {"S": json.dumps(event)}})
    watched.stack.invoke("ShipperFunction", flow)


def cannot_be_read(watched: Watched) -> None:
    sent = watched.record()
    (item, *_) = watched.items(sent["flowId"])
    watched.put(item | {"body": {"S": "{"}})
    watched.stack.invoke("ShipperFunction", watched.flow())


def in_trouble(watched: Watched) -> None:
    sent = watched.record(12)
    watched.stack.invoke("ShipperFunction", watched.flow("troubled", flowId=sent["flowId"]))


def refused_report(watched: Watched) -> None:
    fails(watched, "RecorderFunction", {"namespace": "company.data"})


def refused_flow(watched: Watched) -> None:
    fails(watched, "FileExporterFunction", {"id": "nothing", "namespace": "company.data", "tasks": []})


def refused_request(watched: Watched) -> None:
    fails(watched, "CatalogFunction", {})


def fails(watched: Watched, function: str, payload: Any) -> None:
    with pytest.raises(FunctionFailed):
        watched.stack.invoke(function, payload)


def lost_store(watched: Watched) -> None:
    """The catalog's table is not where the function looks for it; it answers that it cannot."""
    functions, name = watched.stack.client("lambda"), watched.stack.names["CatalogFunction"]
    environment = functions.get_function_configuration(FunctionName=name)["Environment"]
    gone = {"Variables": environment["Variables"] | {"CATALOG_TABLE": "gone"}}
    functions.update_function_configuration(FunctionName=name, Environment=gone)
    event = json.loads((ROOT / "events" / "catalog_search.json").read_text())
    watched.cloudwatch.answered(watched.stack.invoke("CatalogFunction", event)["statusCode"])
    functions.update_function_configuration(FunctionName=name, Environment=environment)


def down(watched: Watched) -> None:
    sent = watched.record()
    time.sleep(2)
    fails(watched, "ShipperFunction", watched.flow("down", flowId=sent["flowId"]))


def down_for_half_of_retention(watched: Watched) -> None:
    """An event of half a day ago has not been shipped, and the log keeps a day."""
    sent = watched.record()
    (item, *_) = watched.items(sent["flowId"])
    then = utc_now() - OLD
    bucket = then.strftime("%Y-%m-%dT%H#") + item["bucket"]["S"].split("#")[1]
    watched.put(item | {"bucket": {"S": bucket}, "id": {"S": uuid7_floor(then)}})
    begun = {"S": (then - timedelta(hours=2)).strftime("%Y-%m-%dT%H")}
    watched.stack.client("dynamodb").update_item(
        TableName=watched.stack.names["LineageTable"],
        Key={"bucket": {"S": "shards"}, "id": {"S": "0000"}},
        UpdateExpression="SET begun = :begun",
        ExpressionAttributeValues={":begun": begun},
    )
    fails(watched, "ShipperFunction", watched.flow("down", flowId=sent["flowId"]))


def failed_for_good(watched: Watched) -> None:
    watched.stack.client("lambda").invoke(
        FunctionName=watched.stack.names["ShipperFunction"], InvocationType="Event", Payload=b'{"id": "nothing"}'
    )
    await_messages(watched, "FailureQueue")


def dead_reports(watched: Watched) -> None:
    sqs, queue = watched.stack.client("sqs"), watched.stack.names["ReportQueue"]
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "1"})
    sqs.send_message(QueueUrl=queue, MessageBody="{}")
    await_messages(watched, "ReportDeadLetterQueue")


def await_messages(watched: Watched, queue: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    wanted = ["ApproximateNumberOfMessages"]
    while time.monotonic() < deadline:
        read = watched.stack.client("sqs").get_queue_attributes(
            QueueUrl=watched.stack.names[queue], AttributeNames=wanted
        )
        if read["Attributes"]["ApproximateNumberOfMessages"] != "0":
            return
        time.sleep(0.2)
    raise AssertionError(f"nothing came to {queue}")


def waiting_reports(watched: Watched) -> None:
    """Nobody takes reports from the queue; the alarm is for 0.9 s in place of 900."""
    functions = watched.stack.client("lambda")
    (mapping,) = functions.list_event_source_mappings()["EventSourceMappings"]
    functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
    time.sleep(1)
    watched.stack.client("sqs").send_message(QueueUrl=watched.stack.names["ReportQueue"], MessageBody="{}")
    time.sleep(1)
    watched.cloudwatch.scale("ReportsWaitAlarm", 0.001)


def throttled(function: str) -> Callable[[Watched], None]:
    def throttle(watched: Watched) -> None:
        functions, name = watched.stack.client("lambda"), watched.stack.names[function]
        functions.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
        with pytest.raises(functions.exceptions.TooManyRequestsException):
            functions.invoke(FunctionName=name, Payload=b"{}")

    return throttle


def slow(function: str) -> Callable[[Watched], None]:
    """A function takes longer than 1/100,000 of its limit, on which its alarm is set for this."""

    def take_time(watched: Watched) -> None:
        watched.cloudwatch.scale(f"{function.removesuffix('Function')}DurationAlarm", 0.00001)

    return take_time


FAULTS: list[tuple[Callable[[Watched], None], set[str]]] = [
    (all_is_well, set()),
    (refused, {"DeadLettersAlarm"}),
    (committed_late, {"LateCommitsAlarm"}),
    (cannot_be_read, {"ParkedAlarm"}),
    (in_trouble, {"BreakerOpenedAlarm"}),
    (refused_report, {"RecorderErrorsAlarm"}),
    (refused_flow, {"FileExporterErrorsAlarm"}),
    (refused_request, {"CatalogErrorsAlarm"}),
    (lost_store, {"CatalogUnavailableAlarm"}),
    (down, {"ExporterStoppedAlarm", "LagAlarm", "ShipperErrorsAlarm"}),
    (down_for_half_of_retention, {"HalfOfRetentionAlarm"}),
    (failed_for_good, {"FailuresAlarm"}),
    (dead_reports, {"ReportDeadLettersAlarm"}),
    (waiting_reports, {"ReportsWaitAlarm"}),
    *((slow(name), {f"{name.removesuffix('Function')}DurationAlarm"}) for name in FUNCTIONS),
    *((throttled(name), {f"{name.removesuffix('Function')}ThrottlesAlarm"}) for name in FUNCTIONS),
]


@pytest.mark.parametrize(("fault", "alarms"), FAULTS, ids=["+".join(sorted(alarms)) for _, alarms in FAULTS])
def test_a_fault_sets_off_its_alarm_and_no_other(
    watched: Watched, fault: Callable[[Watched], None], alarms: set[str]
) -> None:
    before = watched.cloudwatch.firing()
    fault(watched)
    assert watched.cloudwatch.firing() - before == alarms
    assert watched.notified() >= {watched.stack.names[alarm] for alarm in alarms}


def test_every_alarm_has_its_fault() -> None:
    template = yaml_parse((ROOT / "template.yaml").read_text())
    there = {name for name, one in template["Resources"].items() if one["Type"] == "AWS::CloudWatch::Alarm"}
    assert set().union(*(alarms for _, alarms in FAULTS)) == there - set(NOT_ON_AN_EMULATOR)
