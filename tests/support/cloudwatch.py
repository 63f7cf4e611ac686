"""What CloudWatch does and the emulator does not: take metrics out of logs, and measure queues."""

from __future__ import annotations

import json
import operator
import time
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from waybill.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.stack import Stack

LOGS = ("RecorderLog", "ShipperLog", "FileExporterLog", "CatalogLog")
QUEUES = ("ReportQueue", "ReportDeadLetterQueue", "FailureQueue")


class CloudWatch:
    """The metrics and alarms of a stack."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._client = stack.client("cloudwatch")
        self._seen: set[tuple[str, int, str]] = set()

    def measure(self) -> None:
        """Take in what came since the last time; the emulator looks at its alarms then."""
        for namespace, data in (("Waybill", list(self._from_logs())), ("AWS/SQS", list(self._of_queues()))):
            if data:
                self._client.put_metric_data(Namespace=namespace, MetricData=data)

    def answered(self, status: int) -> None:
        """Count an answer of the catalog's API."""
        dimensions = [{"Name": "ApiId", "Value": self._stack.names["CatalogApi"]}]
        datum = _datum("5xx", dimensions, float(status >= HTTPStatus.INTERNAL_SERVER_ERROR), "Count")
        self._client.put_metric_data(Namespace="AWS/ApiGateway", MetricData=[datum])

    def firing(self) -> set[str]:
        """The logical ids of the alarms that are in alarm, with what came measured.

        The emulator takes every metric of an alarm's name for the alarm's; of those, the ones that are meant are kept.
        """
        self.measure()
        names = {physical: logical for logical, physical in self._stack.names.items()}
        pages = self._client.get_paginator("describe_alarms").paginate(StateValue="ALARM")
        found = (alarm for page in pages for alarm in page["MetricAlarms"])
        return {names[alarm["AlarmName"]] for alarm in found if self._is_meant(alarm)}

    def _is_meant(self, alarm: dict[str, Any]) -> bool:
        """Whether the metric with just the alarm's dimensions is beyond its threshold."""
        now = utc_now()
        read = self._client.get_metric_statistics(
            **{name: alarm[name] for name in ("Namespace", "MetricName", "Dimensions", "Period")},
            Statistics=[alarm["Statistic"]],
            StartTime=now - timedelta(seconds=alarm["Period"]),
            EndTime=now + timedelta(seconds=1),
        )
        beyond = operator.ge if alarm["ComparisonOperator"].startswith("GreaterThanOrEqual") else operator.gt
        return any(beyond(point[alarm["Statistic"]], alarm["Threshold"]) for point in read["Datapoints"])

    def alarm(self, logical_id: str) -> dict[str, Any]:
        """An alarm as it is set."""
        names = [self._stack.names[logical_id]]
        (found,) = self._client.describe_alarms(AlarmNames=names)["MetricAlarms"]
        alarm: dict[str, Any] = found
        return alarm

    def scale(self, logical_id: str, factor: float) -> None:
        """Set an alarm off at a fraction of its threshold, for what would take too long to wait for."""
        alarm = self.alarm(logical_id)
        kept = ("AlarmName", "Namespace", "MetricName", "Dimensions", "Statistic", "Period", "EvaluationPeriods")
        settings = {name: alarm[name] for name in (*kept, "ComparisonOperator", "TreatMissingData", "AlarmActions")}
        self._client.put_metric_alarm(**settings, Threshold=alarm["Threshold"] * factor)

    def _from_logs(self) -> Iterator[dict[str, Any]]:
        logs = self._stack.client("logs")
        for group in LOGS:
            pages = logs.get_paginator("filter_log_events").paginate(logGroupName=self._stack.names[group])
            for event in (event for page in pages for event in page["events"]):
                identity = (event["logStreamName"], event["timestamp"], event["message"])
                if identity not in self._seen and event["message"].startswith('{"_aws"'):
                    self._seen.add(identity)
                    yield from _embedded(json.loads(event["message"]))

    def _of_queues(self) -> Iterator[dict[str, Any]]:
        sqs = self._stack.client("sqs")
        for logical_id in QUEUES:
            url = self._stack.names[logical_id]
            read = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
            dimensions = [{"Name": "QueueName", "Value": read["QueueArn"].rsplit(":", 1)[1]}]
            visible = float(read["ApproximateNumberOfMessages"])
            yield _datum("ApproximateNumberOfMessagesVisible", dimensions, visible, "Count")
            if logical_id == "ReportQueue":
                yield _datum("ApproximateAgeOfOldestMessage", dimensions, self._age(url) if visible else 0, "Seconds")

    def _age(self, url: str) -> float:
        answer = self._stack.client("sqs").receive_message(
            QueueUrl=url, VisibilityTimeout=0, MaxNumberOfMessages=10, MessageSystemAttributeNames=["SentTimestamp"]
        )
        sent = [int(message["Attributes"]["SentTimestamp"]) / 1000 for message in answer.get("Messages", ())]
        return time.time() - min(sent, default=time.time())


def _embedded(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The data of a document in CloudWatch's embedded format."""
    for directive in document["_aws"]["CloudWatchMetrics"]:
        for names in directive["Dimensions"]:
            dimensions = [{"Name": name, "Value": document[name]} for name in names]
            for metric in directive["Metrics"]:
                (value,) = document[metric["Name"]]
                yield _datum(metric["Name"], dimensions, value, metric["Unit"])


def _datum(name: str, dimensions: list[dict[str, str]], value: float, unit: str) -> dict[str, Any]:
    return {"MetricName": name, "Dimensions": dimensions, "Value": value, "Unit": unit}
