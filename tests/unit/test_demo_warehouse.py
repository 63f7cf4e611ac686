"""The demo's warehouse is one that could be: valid reports of sources, staging, marts, and a run that fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from demo.run import REPORTS
from waybill.model.report import State, bundles_of, parse_report

if TYPE_CHECKING:
    from waybill.model.report import TaskRunReport

LINES = REPORTS.read_text().splitlines()


@pytest.fixture(scope="module")
def reports() -> list[TaskRunReport]:
    return [parse_report(json.loads(line)) for line in LINES]


@pytest.mark.parametrize("line", LINES, ids=lambda line: json.loads(line)["taskId"])
def test_each_report_is_valid_and_records_lineage(line: str) -> None:
    report = parse_report(json.loads(line))
    found = bundles_of(report)

    assert report.records
    assert len(found.bundles) >= 1
    assert found.faults == ()


def test_no_two_reports_are_the_same(reports: list[TaskRunReport]) -> None:
    assert len({report.identity for report in reports}) == len(reports)


def test_reports_are_in_the_order_in_which_their_runs_ended(reports: list[TaskRunReport]) -> None:
    ends = [report.end_date for report in reports]

    assert ends == sorted(ends)
    assert all(report.start_date < report.end_date for report in reports)


def test_what_is_read_was_written_before_or_comes_from_outside(reports: list[TaskRunReport]) -> None:
    written: set[str] = set()
    outside: set[str] = set()
    for report in reports:
        for bundle in bundles_of(report).bundles:
            outside |= {asset.id for asset in bundle.inputs} - written
            written |= {asset.id for asset in bundle.outputs}

    assert outside == {
        "app.public.customers",
        "app.public.orders",
        "app.public.order_lines",
        "sftp:payments-vendor:settlements.csv",
        "api:rates-vendor:daily",
    }


def test_the_run_that_fails_writes_what_a_good_run_wrote_before(reports: list[TaskRunReport]) -> None:
    (failed,) = (report for report in reports if report.state is State.FAILED)
    good = next(report for report in reports if report.job == failed.job and report.state is State.SUCCESS)

    assert good.end_date < failed.start_date
    assert failed.error is not None
    assert failed.assets.inputs == good.assets.inputs
    assert failed.assets.outputs == good.assets.outputs


def test_a_plugin_reports_what_it_found_by_itself(reports: list[TaskRunReport]) -> None:
    (dashboard,) = (report for report in reports if report.emits)

    assert dashboard.assets.enable_auto
    assert [len(bundle.outputs) for bundle in bundles_of(dashboard).bundles] == [0, 1]
