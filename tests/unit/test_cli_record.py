"""`waybill record FILE` hands in reports by hand (DESIGN 3)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from waybill import cli
from waybill.cli import record
from waybill.cli.stack import FunctionFailed

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result


class FakeStack:
    """A stack whose recorder answers with the task run id, and refuses reports without one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.taken: list[Any] = []
        self.objects: dict[str, bytes] = {}

    def invoke(self, function: str, payload: Any) -> Any:
        assert function == "RecorderFunction"
        self.taken.append(payload)
        if isinstance(payload, dict) and not payload.keys() & {"taskRunId", "report"}:
            raise FunctionFailed("InvalidReport", "taskRunId: is required")
        return {"state": "SUCCESS"}

    def physical_id(self, name: str) -> str:
        return f"the-{name}"

    def client(self, service: str) -> FakeStack:
        assert service == "s3"
        return self

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:  # noqa: N803
        self.objects[f"s3://{Bucket}/{Key}"] = Body


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    fake = FakeStack("waybill")
    monkeypatch.setattr(record, "Stack", lambda _: fake)
    return fake


def run(file: Path | str, given: str | None = None) -> Result:
    return CliRunner().invoke(cli.app, ["record", str(file)], input=given)


def test_a_file_of_one_report_over_many_lines_is_handed_in(stack: FakeStack, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps({"taskRunId": "r1"}, indent=2))

    result = run(file)

    assert (result.exit_code, stack.taken) == (0, [{"taskRunId": "r1"}])
    assert json.loads(result.stdout) == {"state": "SUCCESS"}


def test_a_report_a_line_is_handed_in_one_after_the_other_and_a_refused_one_stops_nothing(
    stack: FakeStack, tmp_path: Path
) -> None:
    file = tmp_path / "reports.jsonl"
    file.write_text('{"taskRunId": "r1"}\n\n{}\n{"taskRunId": "r2"}\n')

    result = run(file)

    assert stack.taken == [{"taskRunId": "r1"}, {}, {"taskRunId": "r2"}]
    assert result.exit_code == 1
    assert result.stderr == f"{file}:3: InvalidReport\ntaskRunId: is required\n"
    assert len(result.stdout.splitlines()) == 2


def test_reports_come_from_standard_input(stack: FakeStack) -> None:
    assert run("-", '{"taskRunId": "r1"}\n{"taskRunId": "r2"}\n').exit_code == 0
    assert stack.taken == [{"taskRunId": "r1"}, {"taskRunId": "r2"}]


def test_a_line_that_is_no_json_is_named(stack: FakeStack, tmp_path: Path) -> None:
    file = tmp_path / "reports.jsonl"
    file.write_text('{"taskRunId": "r1"}\n{"taskRunId"\n')

    result = run(file)

    assert result.exit_code == 1
    assert result.stderr.startswith(f"{file}:2: is not JSON (")
    assert stack.taken == [{"taskRunId": "r1"}]


def test_a_file_that_is_not_there_is_named(stack: FakeStack, tmp_path: Path) -> None:
    result = run(tmp_path / "none.json")

    assert (result.exit_code, stack.taken) == (1, [])
    assert "none.json: cannot be read" in result.stderr


def test_a_report_too_large_for_an_invocation_goes_through_the_bucket(stack: FakeStack, tmp_path: Path) -> None:
    report = {"taskRunId": "r1", "labels": {"note": "n" * record.LARGEST_INVOCATION}}
    file = tmp_path / "large.json"
    file.write_text(json.dumps(report))

    assert run(file).exit_code == 0

    ((pointer, body),) = stack.objects.items()
    assert stack.taken == [{"report": pointer}]
    assert pointer.startswith("s3://the-LineageBucket/reports/")
    assert json.loads(body) == report
