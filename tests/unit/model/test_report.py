"""The task run report: what is refused, and how it is said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.shared import shared
from waybill.errors import InvalidReport
from waybill.model.asset import AssetRef
from waybill.model.event import event_from_body, event_of
from waybill.model.report import bundles_of, parse_report

KEY = "01a23113-7d5a-7356-af9b-a8369f1f849a"


def report(**changes: Any) -> dict[str, Any]:
    return {
        "namespace": "company.sales",
        "flowId": "load",
        "executionId": "execution-1",
        "taskId": "customers",
        "taskRunId": "run-1",
        "state": "SUCCESS",
        "startDate": "2026-12-01T09:00:00Z",
        "endDate": "2026-12-01T09:00:05.250Z",
    } | changes


def output(**changes: Any) -> dict[str, Any]:
    return {"outputs": [{"id": "sales.customers", "type": "Table"} | changes]}


def faults_of(document: Any) -> list[str]:
    with pytest.raises(InvalidReport) as refused:
        parse_report(document)
    return list(refused.value.faults)


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in report().items() if key != name}


ASSET_ID = "must start with a letter or digit and hold only letters, digits and . _ : -"
NAMESPACE = "must start with a lower-case letter or digit and hold only lower-case letters, digits and . _ -"


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (without("taskRunId"), "taskRunId: is required"),
        (
            report(startDate="2026-12-01T09:00:00"),
            "startDate: has no time zone; add Z or an offset such as +01:00",
        ),
        (report(endDate=1764580000), "endDate: must be an ISO 8601 time such as 2026-12-01T09:00:00Z"),
        (report(endDate="2026-12-01"), "endDate: must be an ISO 8601 time such as 2026-12-01T09:00:00Z"),
        (
            report(assets=output(id="x" * 151)),
            "assets.outputs[0].id: is 151 characters long; the most is 150",
        ),
        (report(assets=output(id=":x")), f"assets.outputs[0].id: {ASSET_ID}"),
        (report(assets=output(id="x\n")), f"assets.outputs[0].id: {ASSET_ID}"),
        (report(assets=output(namespace="Sales")), f"assets.outputs[0].namespace: {NAMESPACE}"),
        (report(assets=output(type=" ")), "assets.outputs[0].type: must not be blank"),
        (report(assets={"inputs": [{}]}), "assets.inputs[0].id: is required"),
        (report(assets={"inputs": [{"id": "a b"}]}), f"assets.inputs[0].id: {ASSET_ID}"),
        (
            report(assets={"inputs": [{"id": "a", "typ": "Table"}]}),
            "assets.inputs[0].typ: unknown property; did you mean type?",
        ),
        (report(namespace="Company"), f"namespace: {NAMESPACE}"),
        (
            report(state="DONE"),
            "state: must be 'SUCCESS', 'WARNING', 'FAILED', 'KILLED', 'CANCELLED' or 'SKIPPED'",
        ),
        (report(flowid="load"), "flowid: unknown property; did you mean flowId?"),
        (report(assets={"enableAuto": "yes"}), "assets.enableAuto: must be a valid boolean"),
        ("a report", "document: must be a JSON object"),
    ],
)
def test_a_fault_is_named_by_its_path(document: Any, fault: str) -> None:
    assert faults_of(document) == [fault]


def test_all_faults_are_named_at_once() -> None:
    document = without("taskRunId") | {"state": "?", "assets": output(id="")}

    assert [fault.split(":")[0] for fault in faults_of(document)] == ["taskRunId", "state", "assets.outputs[0].id"]


def test_unknown_keys_of_an_output_are_metadata() -> None:
    (declared,) = parse_report(report(assets=output(owner="sales", metadata={"system": "s3"}))).assets.outputs

    assert declared.metadata == {"owner": "sales", "system": "s3"}


def test_a_faulty_emit_is_left_out_whole_and_named() -> None:
    emits = [{"inputs": [{"id": "a"}]}, {"inputs": [{"id": "b"}], "outputs": [{"id": "-c", "type": "Table"}]}]

    found = bundles_of(parse_report(report(assets={"enableAuto": True}, emits=emits)))

    assert [bundle.inputs for bundle in found.bundles] == [(AssetRef("a"),)]
    assert found.faults == (f"emits[1].outputs[0].id: {ASSET_ID}",)


def test_without_enable_auto_emits_are_dropped() -> None:
    found = bundles_of(parse_report(report(assets={"inputs": [{"id": "a"}]}, emits=[{"inputs": [{"id": "b"}]}])))

    assert [bundle.inputs for bundle in found.bundles] == [(AssetRef("a"),)]


def test_the_event_of_a_report_reads_back_from_the_log_as_it_was() -> None:
    error = {"message": "no space left", "stackTrace": "line 1"}
    parsed = parse_report(report(error=error, labels={"team": "sales"}, assets=output(namespace="sales")))
    event = event_of(parsed, bundles_of(parsed).bundles[0], 0)

    assert event_from_body(KEY, event.to_body()).as_json() == event.as_json() | {"created": "2026-12-01T10:08:10.586Z"}
    assert event.as_json() == {
        "id": event.id,
        "namespace": "company.sales",
        "flowId": "load",
        "executionId": "execution-1",
        "taskId": "customers",
        "taskRunId": "run-1",
        "state": "SUCCESS",
        "startDate": "2026-12-01T09:00:00.000Z",
        "endDate": "2026-12-01T09:00:05.250Z",
        "error": error,
        "labels": {"team": "sales"},
        "inputs": [],
        "outputs": [{"id": "sales.customers", "type": "Table", "namespace": "sales"}],
    }


def test_the_same_report_always_gives_the_same_event_ids() -> None:
    def event_id(**changes: Any) -> str:
        parsed = parse_report(report(assets=output(), **changes))
        return event_of(parsed, bundles_of(parsed).bundles[0], 0).id

    assert event_id() == event_id(state="FAILED")
    assert event_id() != event_id(taskRunId="run-2")


def test_the_reports_of_a_real_run_are_taken() -> None:
    lines = shared("data/task-runs/jaffle_shop.jsonl").read_text().splitlines()

    reports = [parse_report(json.loads(line)) for line in lines]

    assert [each.job for each in reports][:2] == [
        "jaffle.analytics/dbt_build.raw_payments",
        "jaffle.analytics/dbt_build.raw_customers",
    ]


def test_a_fault_of_an_emit_is_named_within_the_report() -> None:
    emits = ["x", {"inputs": [{"id": "a", "typ": "Table"}]}, {"input": []}]

    found = bundles_of(parse_report(report(assets={"enableAuto": True}, emits=emits)))

    assert found.faults == (
        "emits[0]: must be a JSON object",
        "emits[1].inputs[0].typ: unknown property; did you mean type?",
        "emits[2].input: unknown property; did you mean inputs?",
    )
