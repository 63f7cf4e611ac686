"""The EventBridge rules that run flows, one per trigger, tagged as the stack's.

A rule belongs to a stack by its tag `waybill:stack`, and to a flow by `waybill:flow` (`<namespace>/<id>`). Its target
is the stack's ShipperFunction, or FileExporterFunction when every exporter writes files; what it cannot deliver goes to
the stack's FailureQueue. The template lets EventBridge invoke the functions by rules named after the stack.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from waybill.cli.stack import StackNotFound
from waybill.errors import InvalidFlow
from waybill.export.files.config import FileAssetExporter
from waybill.model.flow import parse_flow
from waybill.schedules.cron import checked_rate, eventbridge_expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from waybill.cli.stack import Stack
    from waybill.model.flow import Flow, Schedule

LARGEST_INPUT = 8_192
"""Characters of a target's input that EventBridge takes; a larger document is put in the stack's bucket."""

LONGEST_NAME = 64
BY_HAND = "schedule"
"""What stands for a trigger's id in the name of a rule whose expression was given beside the document."""

IN_THE_RULE = "in the rule"
"""What stands for the address of a document that its rules hold themselves."""

_UTC = (None, "UTC", "Etc/UTC", "GMT", "Z")
_STACK, _FLOW, _TRIGGER = "waybill:stack", "waybill:flow", "waybill:trigger"
_FUNCTIONS = {True: "FileExporterFunction", False: "ShipperFunction"}


@dataclass(frozen=True, slots=True)
class ScheduledFlow:
    """One rule.

    Attributes:
        name: of the rule.
        flow: `<namespace>/<id>` of the flow that it runs.
        trigger: the id of the trigger that it was made from.
        expression: EventBridge's, in UTC.
        enabled: whether it runs.
        document: where the flow document is: `in the rule`, or its `s3://` address.
        function: the logical id of the function that it invokes.
    """

    name: str
    flow: str
    trigger: str
    expression: str
    enabled: bool
    document: str
    function: str


class Schedules:
    """The rules of a stack.

    Args:
        stack: whose functions the rules invoke.
    """

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._events: Any = stack.client("events")

    def add(self, document: Any, expression: str | None = None) -> list[ScheduledFlow]:
        """Make the rules of a flow, and take away those that it had and has no more.

        Args:
            document: the flow document.
            expression: EventBridge's, such as `rate(2 hours)`, in place of the document's triggers.

        Raises:
            InvalidFlow: the document is refused, has no trigger, or one that EventBridge cannot say.
        """
        flow = parse_flow(document)
        wanted = planned(flow, expression)
        before = {rule.name for rule in self.of(f"{flow.namespace}/{flow.id}")}
        target = self._target(flow, document)
        names = [self._put(flow, trigger, cron, enabled, target) for trigger, cron, enabled in wanted]
        for name in before - set(names):
            self._delete(name)
        return self.of(f"{flow.namespace}/{flow.id}")

    def all(self) -> list[ScheduledFlow]:
        """Return every rule that was added to the stack."""
        pages = self._events.get_paginator("list_rules").paginate(NamePrefix=f"{self._stack.name}-")
        rules = (found for page in pages for rule in page["Rules"] if (found := self._ours(rule)))
        return sorted(rules, key=lambda rule: (rule.flow, rule.trigger))

    def of(self, flow: str) -> list[ScheduledFlow]:
        """Return the rules of a flow, named `<namespace>/<id>`."""
        return [rule for rule in self.all() if rule.flow == flow]

    def remove(self, flow: str) -> list[ScheduledFlow]:
        """Delete the rules of a flow, named `<namespace>/<id>`, and return what they were.

        Its position stays, so that a flow that is added again goes on where it was.
        """
        rules = self.of(flow)
        for rule in rules:
            self._delete(rule.name)
        if any(rule.document != IN_THE_RULE for rule in rules):
            self._delete_document(flow, {rule.document for rule in rules})
        return rules

    def _put(self, flow: Flow, trigger: str, expression: str, enabled: bool, target: dict[str, Any]) -> str:  # noqa: FBT001
        name = rule_name(self._stack.name, flow, trigger)
        tags = {_STACK: self._stack.name, _FLOW: f"{flow.namespace}/{flow.id}", _TRIGGER: trigger}
        self._events.put_rule(
            Name=name,
            ScheduleExpression=expression,
            State="ENABLED" if enabled else "DISABLED",
            Description=f"Runs the flow {flow.namespace}/{flow.id}.",
            Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
        )
        failed = self._events.put_targets(Rule=name, Targets=[target])["FailedEntries"]
        if failed:
            raise InvalidFlow([f"triggers.{trigger}: EventBridge did not take the target: {failed[0]}"])
        return name

    def _target(self, flow: Flow, document: Any) -> dict[str, Any]:
        function = _function_of(flow)
        queue = self._stack.client("sqs").get_queue_attributes(
            QueueUrl=self._stack.outputs["FailureQueueUrl"], AttributeNames=["QueueArn"]
        )
        return {
            "Id": function,
            "Arn": self._stack.outputs[f"{function}Arn"],
            "Input": self._input(flow, document),
            "RetryPolicy": {"MaximumRetryAttempts": 8, "MaximumEventAgeInSeconds": 3300},
            "DeadLetterConfig": {"Arn": queue["Attributes"]["QueueArn"]},
        }

    def _input(self, flow: Flow, document: Any) -> str:
        if isinstance(document, dict):
            document = {name: value for name, value in document.items() if name != "triggers"}
        text = json.dumps(document, separators=(",", ":"))
        if len(text) <= LARGEST_INPUT:
            return text
        address = self._address(f"{flow.namespace}/{flow.id}")
        bucket, _, key = address.removeprefix("s3://").partition("/")
        self._stack.client("s3").put_object(Bucket=bucket, Key=key, Body=text.encode())
        return json.dumps({"flow": address})

    def _address(self, flow: str) -> str:
        """Return where the document of a flow lies when it is too large for its rules."""
        return f"s3://{self._stack.physical_id('LineageBucket')}/{self._stack.parameters['FlowPrefix']}{flow}.json"

    def _delete_document(self, flow: str, documents: set[str]) -> None:
        """Delete a flow's document from the stack's bucket; in the bucket that a deleted stack left it stays."""
        try:
            address = self._address(flow)
        except StackNotFound:
            return
        if address in documents:
            bucket, _, key = address.removeprefix("s3://").partition("/")
            self._stack.client("s3").delete_object(Bucket=bucket, Key=key)

    def _delete(self, name: str) -> None:
        targets = self._events.list_targets_by_rule(Rule=name)["Targets"]
        if targets:
            self._events.remove_targets(Rule=name, Ids=[target["Id"] for target in targets])
        self._events.delete_rule(Name=name)

    def _ours(self, rule: dict[str, Any]) -> ScheduledFlow | None:
        listed = self._events.list_tags_for_resource(ResourceARN=rule["Arn"])["Tags"]
        tags = {tag["Key"]: tag["Value"] for tag in listed}
        if tags.get(_STACK) != self._stack.name:
            return None
        (target, *_) = self._events.list_targets_by_rule(Rule=rule["Name"])["Targets"] or [{}]
        pointer = json.loads(target.get("Input", "null"))
        return ScheduledFlow(
            name=rule["Name"],
            flow=tags.get(_FLOW, "?"),
            trigger=tags.get(_TRIGGER, "?"),
            expression=rule["ScheduleExpression"],
            enabled=rule["State"] == "ENABLED",
            document=pointer["flow"] if isinstance(pointer, dict) and "flow" in pointer else IN_THE_RULE,
            function=target.get("Id", "?"),
        )


def planned(flow: Flow, expression: str | None) -> list[tuple[str, str, bool]]:
    """Return each rule that a flow is to have: the trigger's id, the expression, whether it is on.

    Raises:
        InvalidFlow: there is none, or EventBridge cannot say one.
    """
    if expression is not None:
        try:
            return [(BY_HAND, checked_rate(expression), True)]
        except ValueError as error:
            raise InvalidFlow([f"--schedule: {error}"]) from None
    if not flow.triggers:
        raise InvalidFlow(["triggers: the flow has none; add one, or say when with --schedule 'rate(1 hour)'"])
    faults: list[str] = []
    rules = list(_translated(flow.triggers, faults))
    if faults:
        raise InvalidFlow(faults)
    return rules


def _translated(triggers: tuple[Schedule, ...], faults: list[str]) -> Iterator[tuple[str, str, bool]]:
    for position, trigger in enumerate(triggers):
        if trigger.timezone not in _UTC:
            faults.append(f"triggers[{position}].timezone: rules run in UTC; write the cron in UTC and leave it out")
        try:
            yield trigger.id, eventbridge_expression(trigger.cron), not trigger.disabled
        except ValueError as error:
            faults.append(f"triggers[{position}].cron: {error}")


def rule_name(stack: str, flow: Flow, trigger: str) -> str:
    """Return the name of a trigger's rule: readable, unique, of what EventBridge allows."""
    whole = f"{flow.namespace}/{flow.id}/{trigger}"
    digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9._-]", "-", f"{flow.id}-{trigger}")
    room = LONGEST_NAME - len(stack) - len(digest) - 2
    return f"{stack}-{readable[: max(room, 0)]}-{digest}"


def _function_of(flow: Flow) -> str:
    exporters = [exporter for task in flow.shippers for exporter in task.asset_exporters]
    return _FUNCTIONS[all(isinstance(exporter, FileAssetExporter) for exporter in exporters)]
