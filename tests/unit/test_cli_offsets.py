"""`waybill offsets show` tells how far tasks are in words that the next command takes, and as JSON."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tools.emulator import ROOT
from waybill import cli
from waybill.cli import offsets
from waybill.ship.offsets import ExporterOffset, TaskOffset

if TYPE_CHECKING:
    from waybill.model.flow import Flow

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
KEY = "AssetShipper-state_ship_lineage_to_marquez_of_the_whole_company_ship_lineage"
SHIPPED_UP_TO = datetime(2026, 12, 1, 9, tzinfo=UTC)
BEHIND = ExporterOffset("marquez", SHIPPED_UP_TO, 3, NOW - timedelta(minutes=5))
DONE = ExporterOffset("file", SHIPPED_UP_TO, 0, None)
NOT_COUNTED = ExporterOffset("file", SHIPPED_UP_TO, None, None)


class Offsets:
    """The offsets of one task, and what was set last."""

    def __init__(self) -> None:
        self.told: tuple[str, str, datetime, str | None] | None = None

    def set(self, namespace: str, key: str, moment: datetime, flow: Flow | None) -> None:
        self.told = namespace, key, moment, flow.id if flow else None

    def all(self, *, count: bool) -> list[TaskOffset]:
        exporters = (BEHIND, DONE) if count else (NOT_COUNTED,)
        return [TaskOffset("company.platform", KEY, None, "run-1", NOW, exporters)]


@pytest.fixture(autouse=True)
def one_task(monkeypatch: pytest.MonkeyPatch) -> Offsets:
    task = Offsets()
    monkeypatch.setattr(offsets, "_offsets", lambda _: task)
    monkeypatch.setattr(offsets, "utc_now", lambda: NOW)
    return task


def shown(*options: str, environment: dict[str, str] | None = None) -> str:
    return CliRunner(env=environment).invoke(cli.app, ["offsets", "show", *options]).stdout


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_in_a_pipe_each_exporter_is_one_line_however_long_its_names_are() -> None:
    lines = [cells(line) for line in shown().splitlines() if line.startswith("│")]

    held = "run-1 until 2026-12-01T12:00:00.000Z"
    assert lines == [
        ["company.platform", KEY, "marquez", "2026-12-01T09:00:00.000Z", "3", "0:05:00", held],
        ["company.platform", KEY, "file", "2026-12-01T09:00:00.000Z", "0", "-", held],
    ]


def test_in_a_terminal_a_long_name_goes_on_in_the_next_line() -> None:
    output = re.sub(r"\x1b\[[0-9;]*m", "", shown(environment={"FORCE_COLOR": "1", "COLUMNS": "80"}))

    assert max(map(len, output.splitlines())) <= 80
    keys = [cells(line)[1] for line in output.splitlines() if line.startswith("│")]
    assert "".join(keys) == KEY * 2


def test_what_was_not_counted_is_a_dash() -> None:
    (line,) = (cells(line) for line in shown("--no-count").splitlines() if line.startswith("│"))

    assert line[2:6] == ["file", "2026-12-01T09:00:00.000Z", "-", "-"]


def test_as_json_it_is_for_programs() -> None:
    assert json.loads(shown("--json")) == [
        {
            "namespace": "company.platform",
            "key": KEY,
            "endFetchedDate": None,
            "owner": "run-1",
            "until": "2026-12-01T12:00:00.000Z",
            "exporters": [
                {"id": "marquez", "shippedUpTo": "2026-12-01T09:00:00.000Z", "waiting": 3, "waitingSeconds": 300},
                {"id": "file", "shippedUpTo": "2026-12-01T09:00:00.000Z", "waiting": 0, "waitingSeconds": None},
            ],
            "faults": [],
        }
    ]


@pytest.mark.parametrize(
    ("options", "flow"), [((), None), (("--flow", "events/file_lineage.json"), "file_lineage")], ids=["alone", "flow"]
)
def test_a_time_is_set_with_the_flow_or_without(
    one_task: Offsets, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], flow: str | None
) -> None:
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(cli.app, ["offsets", "set", "company.platform", KEY, "2026-12-01T10:00+01:00", *options])

    said = f"company.platform/{KEY}: the next run ships what was recorded since 2026-12-01T09:00:00.000Z\n"
    assert (done.exit_code, done.stdout) == (0, said)
    assert one_task.told == ("company.platform", KEY, SHIPPED_UP_TO, flow)


@pytest.mark.parametrize("time", ["2999-01-01T00:00:00Z", "1960-01-01T00:00:00Z"])
def test_a_time_at_which_nothing_was_recorded_is_refused(one_task: Offsets, time: str) -> None:
    done = CliRunner().invoke(cli.app, ["offsets", "set", "company.platform", KEY, time])

    said = f"time: {time} must lie between 1970 and now: nothing was recorded at other times\n"
    assert (done.exit_code, done.stderr) == (1, said)
    assert one_task.told is None
