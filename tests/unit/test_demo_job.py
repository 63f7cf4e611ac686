"""The demo's job: reports go in one by one, and flows run until what was recorded has been delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from demo import job
from demo.flows import Backend, ship_flow
from demo.job import Delivery, DemoFault, deliver, read_reports, record, run_once
from tools.stack import FunctionFailed

if TYPE_CHECKING:
    from pathlib import Path

FLOW = ship_flow(Backend("http://127.0.0.1:5000").exporter())


class ScriptedStack:
    """A stack whose functions answer what a test says, one answer after the other, the last one for ever."""

    def __init__(self, *answers: dict[str, Any] | FunctionFailed) -> None:
        self._answers = list(answers)
        self.invoked: list[tuple[str, Any]] = []

    def invoke(self, function: str, payload: Any) -> Any:
        self.invoked.append((function, payload))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, FunctionFailed):
            raise answer
        return answer


def shipped(size: int, *, complete: bool = True, end: str | None = None, **outputs: Any) -> dict[str, Any]:
    return {
        "outputs": {
            "ship_lineage": {"size": size, "endFetchedDate": end, "complete": complete, "outputs": {"marquez": outputs}}
        }
    }


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(job, "PATIENCE_SECONDS", 0.05)


@pytest.fixture
def said() -> list[str]:
    return []


def test_each_report_is_recorded_and_each_event_counted_once(said: list[str]) -> None:
    stack = ScriptedStack({"lineageEvents": ["a"]}, {"lineageEvents": ["a"]}, {"lineageEvents": ["b", "c"]})
    reports = [{"taskId": "one"}, {"taskId": "one"}, {"taskId": "two"}]

    assert record(stack, reports, said.append) == ["a", "b", "c"]
    assert stack.invoked == [("RecorderFunction", report) for report in reports]
    assert said[-1] == "3 lineage events of 3 task runs"


def test_a_refused_report_is_named_by_its_number(said: list[str]) -> None:
    refusal = FunctionFailed("RecorderFunction", {"errorType": "InvalidReport", "errorMessage": "state: is required"})

    with pytest.raises(DemoFault, match=r"^report 2: InvalidReport\nstate: is required$"):
        record(ScriptedStack({"lineageEvents": ["a"]}, refusal), [{}, {}], said.append)


def test_a_flow_runs_until_all_has_settled_and_is_delivered(said: list[str]) -> None:
    stack = ScriptedStack(
        shipped(0), shipped(3, complete=False, uris=["s3://b/1"]), shipped(5, end="Z", uris=["s3://b/2"])
    )

    assert deliver(stack, "ShipperFunction", FLOW, 8, said.append) == Delivery(8, "Z", ["s3://b/1", "s3://b/2"])
    assert stack.invoked == [("ShipperFunction", FLOW)] * 3
    assert said == ["0 of 8 lineage events", "3 of 8 lineage events", "8 of 8 lineage events"]


def test_a_run_that_ran_out_of_time_is_followed_by_another(said: list[str]) -> None:
    stack = ScriptedStack(shipped(8, complete=False), shipped(0))

    assert deliver(stack, "ShipperFunction", FLOW, 8, said.append).size == 8
    assert len(stack.invoked) == 2


def test_when_not_all_comes_the_demo_says_how_much_came(said: list[str]) -> None:
    with pytest.raises(DemoFault, match=r"^ShipperFunction delivered 3 lineage events of 8$"):
        deliver(ScriptedStack(shipped(3), shipped(0)), "ShipperFunction", FLOW, 8, said.append)


def test_one_run_adds_to_what_was_delivered() -> None:
    delivery = Delivery(2, "then", ["s3://b/1"])

    assert run_once(ScriptedStack(shipped(1, end="now")), "ShipperFunction", FLOW, delivery)
    assert delivery == Delivery(3, "now", ["s3://b/1"])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "holds no report; it needs one JSON object a line"),
        ("\n \n", "holds no report; it needs one JSON object a line"),
        ('{"a": 1}\n\n{"a"\n', "3: is not JSON: Expecting ':' delimiter: line 1 column 5 (char 4)"),
        ("[]\n", "1: must be a JSON object"),
    ],
)
def test_a_file_that_holds_no_reports_is_refused_by_line(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "reports.jsonl"
    path.write_text(text)

    with pytest.raises(DemoFault) as caught:
        read_reports(path)
    assert str(caught.value).removeprefix(f"{path}:").strip() == fault
