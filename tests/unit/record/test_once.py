"""A report is recorded once, wherever its processing was cut short (DESIGN 3, "Once")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from aws_lambda_powertools import Logger
from botocore.exceptions import EndpointConnectionError

from tests.support.breaking import BreakingClient, Failing
from tests.support.stack_in_memory import report
from waybill.model.asset import TABLE
from waybill.record import wiring
from waybill.record.recorder import Recorder
from waybill.store.aws import client, single_try_client

if TYPE_CHECKING:
    from tests.support.stack_in_memory import StackInMemory

OUTPUTS = [{"id": "orders", "type": TABLE, "owner": "sales"}, {"id": "payments", "type": TABLE, "tags": ["a"]}]
ASSETS = {"inputs": [{"id": "shop"}], "outputs": OUTPUTS, "enableAuto": True}
EMITS = [{"inputs": [{"id": "orders"}], "outputs": [{"id": ":no", "type": TABLE}]}, {"inputs": [{"id": "orders"}]}]
REPORT = report(assets=ASSETS, emits=EMITS)


@pytest.fixture
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waybill.store.log.time.sleep", lambda _: None)


def record_until(stack: StackInMemory, failing: Failing, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Record the report with clients that fail."""
    with monkeypatch.context() as patch:
        patch.setattr(wiring, "client", lambda name: BreakingClient(client(name), failing))
        patch.setattr(wiring, "single_try_client", lambda *named: BreakingClient(single_try_client(*named), failing))
        return wiring.recorder_of(stack.settings, Logger(service="test")).record(REPORT)


def left_by(stack: StackInMemory) -> dict[str, Any]:
    """What a recording leaves behind, without times."""
    assets = stack.assets.get_many(["orders", "payments", "shop"]).values()
    return {
        "events": sorted(event.id for event in stack.events()),
        "assets": [asset.model_dump(exclude={"created", "updated"}) for asset in sorted(assets, key=lambda a: a.id)],
        "uses": stack.uses(),
        "index": sorted(
            (item["pk"]["S"], item["sk"]["S"])
            for item in stack.items(stack.settings.catalog_table)
            if item["pk"]["S"].startswith("meta#")
        ),
    }


def test_the_same_report_again_records_nothing_and_gives_the_same_answer(stack: StackInMemory) -> None:
    first = stack.recorder.record(REPORT)
    before = stack.items(stack.settings.catalog_table)

    assert stack.recorder.record(REPORT) == first
    assert stack.items(stack.settings.catalog_table) == before
    assert len(stack.events()) == 2


def test_the_first_content_wins(stack: StackInMemory) -> None:
    first = stack.recorder.record(REPORT)

    assert (
        stack.recorder.record(REPORT | {"state": "FAILED", "assets": {"outputs": [OUTPUTS[0]]}, "emits": []}) == first
    )
    assert {event.state for event in stack.events()} == {"SUCCESS"}


def test_another_attempt_of_the_same_task_is_another_report(stack: StackInMemory) -> None:
    first = stack.recorder.record(REPORT)
    second = stack.recorder.record(REPORT | {"taskRunId": "run-2"})

    assert set(first["lineageEvents"]).isdisjoint(second["lineageEvents"])
    assert second["assets"]["updated"] == ["orders", "payments"]


@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.parametrize("carried_out", [False, True], ids=["request lost", "answer lost"])
def test_wherever_a_report_was_cut_short_its_next_delivery_finishes_it(
    stack: StackInMemory, stack_of_comparison: StackInMemory, monkeypatch: pytest.MonkeyPatch, *, carried_out: bool
) -> None:
    """Same event ids, outputs completed, the answer as if nothing had happened, and no answer before that."""
    expected, everything = stack_of_comparison.recorder.record(REPORT), left_by(stack_of_comparison)
    at = 0
    while True:
        at += 1
        failing = Failing(at, carried_out=carried_out)
        try:
            record_until(stack, failing, monkeypatch)
        except EndpointConnectionError:
            assert stack.recorder.record(REPORT) == expected, f"cut short at call {at}"
            assert left_by(stack) == everything, f"cut short at call {at}"
            stack.empty()
        else:
            break
    assert at > 12


def test_what_another_run_wrote_in_between_is_not_written_over(
    stack: StackInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output had been written before the report was cut short, so its next delivery leaves it alone."""
    announce = "waybill.record.announce.StateChanges.announce"
    with monkeypatch.context() as patch:
        patch.setattr(announce, lambda *_: (_ for _ in ()).throw(EndpointConnectionError(endpoint_url="bus")))
        with pytest.raises(EndpointConnectionError):
            stack.recorder.record(REPORT)
    stack.write("orders", owner="finance")

    answer = stack.recorder.record(REPORT)

    assert answer["assets"]["created"] == ["orders", "payments", "shop"]
    assert stack.asset("orders").metadata == {"owner": "finance"}


def test_two_deliveries_at_once_give_one_answer_and_one_change(
    stack: StackInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second delivery runs while the first is between the log and the catalog."""
    answers: list[dict[str, Any]] = []
    finish = Recorder._finish

    def deliver_again(recorder: Recorder, *arguments: Any) -> dict[str, Any]:
        if not answers:
            answers.append({})
            answers[0] = stack.recorder.record(REPORT)
        return finish(recorder, *arguments)

    monkeypatch.setattr(Recorder, "_finish", deliver_again)
    first = stack.recorder.record(REPORT)

    assert answers == [first]
    assert stack.asset("orders").created == stack.asset("orders").updated
