"""`waybill schedules`: flows of the user's own, as rules that invoke the stack's functions."""

from __future__ import annotations

import json
import re
import uuid
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from typer.testing import CliRunner

from waybill.cli import app
from waybill.cli.schedules import NOT_SHOWN
from waybill.cli.stack import Stack as FoundStack
from waybill.errors import InvalidFlow
from waybill.schedules.rules import LARGEST_INPUT, LONGEST_NAME, Schedules
from waybill.store import aws

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tools.emulator import Emulator
    from tools.stack import Stack


@pytest.fixture(autouse=True)
def _clients_of_the_emulator(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in emulator.environment.items():
        monkeypatch.setenv(name, value)
    aws.client.cache_clear()
    yield
    aws.client.cache_clear()


@pytest.fixture
def schedules(stack: Stack) -> Schedules:
    return Schedules(FoundStack(stack.name))


BOTH_DAYS = "'0 0 1 * 1' names days of the month and of the week; make two triggers of it, one for each"
OPENLINEAGE = {"id": "marquez", "type": "OpenLineageAssetExporter", "uri": "http://marquez:5000"}
FILES = {"id": "file", "type": "FileAssetExporter"}


def flow(exporter: dict[str, Any] = OPENLINEAGE, **more: Any) -> dict[str, Any]:
    """A flow of its own with one trigger."""
    task = {"id": "ship", "type": "AssetShipper", "assetExporters": [exporter]}
    triggers = [{"id": "hourly", "type": "io.kestra.plugin.core.trigger.Schedule", "cron": "@hourly"}]
    return {
        "id": f"flow_{uuid.uuid4().hex[:8]}",
        "namespace": "company.sales",
        "tasks": [task],
        "triggers": triggers,
    } | more


def name_of(document: dict[str, Any]) -> str:
    return f"{document['namespace']}/{document['id']}"


def target_of(stack: Stack, rule: str) -> dict[str, Any]:
    (target,) = stack.client("events").list_targets_by_rule(Rule=rule)["Targets"]
    found: dict[str, Any] = target
    return found


def test_a_trigger_becomes_a_rule_that_hands_the_flow_to_the_shipper(stack: Stack, schedules: Schedules) -> None:
    document = flow()
    (rule,) = schedules.add(document)
    assert (rule.flow, rule.trigger, rule.expression, rule.enabled, rule.function, rule.document) == (
        name_of(document),
        "hourly",
        "cron(0 * * * ? *)",
        True,
        "ShipperFunction",
        "in the rule",
    )
    target = target_of(stack, rule.name)
    assert target["Arn"] == stack.outputs["ShipperFunctionArn"]
    assert json.loads(target["Input"]) == {name: value for name, value in document.items() if name != "triggers"}
    assert target["DeadLetterConfig"]["Arn"].rsplit(":", 1)[1] in stack.outputs["FailureQueueUrl"]


def test_a_flow_that_only_files_runs_where_there_are_no_secrets(stack: Stack, schedules: Schedules) -> None:
    (rule,) = schedules.add(flow(FILES))
    assert rule.function == "FileExporterFunction"
    assert target_of(stack, rule.name)["Arn"] == stack.outputs["FileExporterFunctionArn"]


def test_what_a_rule_hands_over_is_what_the_function_takes(stack: Stack, schedules: Schedules) -> None:
    small, large = flow(FILES), flow(FILES, description="d" * LARGEST_INPUT)
    for document in (small, large):
        (rule,) = schedules.add(document)
        answer = stack.invoke(rule.function, json.loads(target_of(stack, rule.name)["Input"]))
        assert answer["outputs"]["ship"]["complete"] is True


def test_a_document_too_large_for_a_rule_lies_in_the_bucket_until_it_is_removed(
    stack: Stack, schedules: Schedules
) -> None:
    document = flow(description="d" * LARGEST_INPUT)
    (rule,) = schedules.add(document)
    key = f"waybill/flows/{name_of(document)}.json"
    assert rule.document == f"s3://{stack.names['LineageBucket']}/{key}"
    assert json.loads(target_of(stack, rule.name)["Input"]) == {"flow": rule.document}
    found = stack.client("s3").get_object(Bucket=stack.names["LineageBucket"], Key=key)["Body"].read()
    assert json.loads(found)["id"] == document["id"]
    schedules.remove(name_of(document))
    listed = stack.client("s3").list_objects_v2(Bucket=stack.names["LineageBucket"], Prefix=key)
    assert listed["KeyCount"] == 0


def test_a_flow_that_is_added_again_has_the_triggers_that_it_has_now(schedules: Schedules) -> None:
    trigger = {"type": "Schedule", "cron": "0 6 * * 1"}
    document = flow(triggers=[trigger | {"id": "monday"}, trigger | {"id": "night", "cron": "@daily"}])
    assert [rule.trigger for rule in schedules.add(document)] == ["monday", "night"]
    document["triggers"] = [trigger | {"id": "monday", "disabled": True}]
    (rule,) = schedules.add(document)
    assert (rule.trigger, rule.enabled) == ("monday", False)


def test_removed_a_flow_has_no_rule_and_others_keep_theirs(stack: Stack, schedules: Schedules) -> None:
    stays, goes = flow(), flow()
    schedules.add(stays)
    schedules.add(goes)
    assert len(schedules.remove(name_of(goes))) == 1
    assert schedules.of(name_of(goes)) == []
    assert len(schedules.of(name_of(stays))) == 1
    rules = stack.client("events").list_rules()["Rules"]
    assert [rule for rule in rules if "ShipLineage" in rule["Name"]], "the stack's own are not touched"
    assert {rule.flow for rule in schedules.all()}.isdisjoint({name_of(goes), "?"})


def test_the_same_id_in_two_namespaces_is_two_flows(schedules: Schedules) -> None:
    document = flow()
    schedules.add(document)
    schedules.add(document | {"namespace": "company.finance"})
    for namespace in ("company.sales", "company.finance"):
        assert len(schedules.of(f"{namespace}/{document['id']}")) == 1


def test_a_rules_name_is_one_that_eventbridge_takes(schedules: Schedules) -> None:
    (rule,) = schedules.add(flow(id="a" * 120))
    assert len(rule.name) == LONGEST_NAME
    assert re.fullmatch(r"[\w.-]+", rule.name)


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ({"triggers": []}, ["triggers: the flow has none; add one, or say when with --schedule 'rate(1 hour)'"]),
        (
            {"triggers": [{"id": "x", "type": "Schedule", "cron": "0 0 1 * 1", "timezone": "Europe/Berlin"}]},
            [
                "triggers[0].timezone: rules run in UTC; write the cron in UTC and leave it out",
                f"triggers[0].cron: {BOTH_DAYS}",
            ],
        ),
    ],
)
def test_what_no_rule_can_say_is_refused_and_nothing_made(
    schedules: Schedules, changes: dict[str, Any], faults: list[str]
) -> None:
    document = flow(**changes)
    with pytest.raises(InvalidFlow) as caught:
        schedules.add(document)
    assert list(caught.value.faults) == faults
    assert schedules.of(name_of(document)) == []


def test_a_rate_that_eventbridge_does_not_take_is_refused(schedules: Schedules) -> None:
    document = flow()
    with pytest.raises(InvalidFlow) as caught:
        schedules.add(document, "rate(1 minutes)")
    assert caught.value.faults == ("--schedule: EventBridge does not take rate(1 minutes); write rate(1 minute)",)
    assert schedules.of(name_of(document)) == []


def test_the_commands_add_list_and_remove(stack: Stack, tmp_path: Path) -> None:
    document = flow()
    del document["triggers"]
    file = tmp_path / "flow.yaml"
    file.write_text(yaml.safe_dump(document))
    run = CliRunner().invoke

    added = run(app, ["schedules", "add", "--flow", str(file), "--schedule", "rate(2 hours)", "--stack", stack.name])
    assert added.exit_code == 0, added.output
    listed = run(app, ["schedules", "list", "--stack", stack.name]).output
    (line,) = (line for line in listed.splitlines() if name_of(document) in line)
    assert "rate(2 hours)" in line
    assert listed.splitlines()[-1] == NOT_SHOWN
    found = json.loads(run(app, ["schedules", "list", "--json", "--stack", stack.name]).output)
    (rule,) = (rule for rule in found if rule["flow"] == name_of(document))
    assert rule == {
        "name": f"{stack.name}-{document['id']}-schedule-{rule['name'][-8:]}",
        "flow": name_of(document),
        "trigger": "schedule",
        "expression": "rate(2 hours)",
        "enabled": True,
        "document": "in the rule",
        "function": "ShipperFunction",
    }
    removed = run(app, ["schedules", "remove", name_of(document), "--stack", stack.name])
    assert removed.output == f"{name_of(document)}: schedule runs no more\n"
    again = run(app, ["schedules", "remove", name_of(document), "--stack", stack.name])
    assert (again.exit_code, again.stderr.splitlines()[0]) == (
        1,
        f"no rule of stack {stack.name} runs {name_of(document)}; `waybill schedules list` shows those there are",
    )


@pytest.mark.parametrize("description", ["", "d" * LARGEST_INPUT], ids=["in the rule", "in the bucket"])
def test_a_flow_whose_stack_is_gone_can_be_removed(
    schedules: Schedules, monkeypatch: pytest.MonkeyPatch, description: str
) -> None:
    document = flow(description=description)
    schedules.add(document)
    monkeypatch.setattr(FoundStack, "resources", {})

    assert [rule.trigger for rule in schedules.remove(name_of(document))] == ["hourly"]
    assert schedules.of(name_of(document)) == []
