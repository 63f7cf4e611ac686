"""Lineage shipped to a real backend, read back through its own API (`../shared/data-rentgen/README.md`)."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.delivering import delivery, ship
from tests.support.pipeline import Pipeline, keep_parameter, reports_of
from tests.support.shared import shared
from tools.emulator import ROOT
from waybill.export.openlineage.patience import Patience

if TYPE_CHECKING:
    from tests.support.data_rentgen import DataRentgen
    from tests.support.stack_in_memory import StackInMemory

STATES = {"SUCCESS": "SUCCEEDED", "WARNING": "SUCCEEDED", "FAILED": "FAILED"}


@pytest.fixture
def pipeline(stack: StackInMemory, data_rentgen: DataRentgen) -> Pipeline:
    """A stack whose lineage goes to Data.Rentgen, by its preset."""
    auth = {"type": "bearer", "token": keep_parameter("/lineage/token", data_rentgen.token)}
    return Pipeline(stack, {"backend": "data-rentgen", "uri": data_rentgen.url, "auth": auth})


def test_a_real_dbt_run_arrives_as_it_was(pipeline: Pipeline, data_rentgen: DataRentgen) -> None:
    reports = reports_of(shared("data/task-runs/jaffle_shop.jsonl"))
    pipeline.record(reports)

    answer = pipeline.ship()

    assert answer["outputs"]["backend"] == {"delivered": 8, "rejected": 0, "skipped": 0, "retried": 0}
    runs = pipeline.run_ids("uuid7")
    data_rentgen.wait_for(runs)
    for event, run in zip(pipeline.stack.events(), runs, strict=True):
        assert data_rentgen.status(run) == "SUCCEEDED"
        assert data_rentgen.job_of(run) == f"{event.flow_id}.{event.task_id}"
        assert data_rentgen.datasets_of(run) == ({ref.id for ref in event.inputs}, {ref.id for ref in event.outputs})
    assert "jaffle_shop.main.customers" in data_rentgen.reached_from("jaffle_shop.main.raw_orders")

    before = {run: (data_rentgen.run(run), data_rentgen.datasets_of(run)) for run in runs}
    assert pipeline.ship("ship_again")["size"] == 8
    time.sleep(2)

    assert {run: (data_rentgen.run(run), data_rentgen.datasets_of(run)) for run in runs} == before
    assert data_rentgen.count_runs("dbt_build") == 8
    assert len(data_rentgen.jobs("dbt_build.customers")) == 1


def test_the_demo_warehouse_arrives_with_its_failed_run(pipeline: Pipeline, data_rentgen: DataRentgen) -> None:
    events = pipeline.record(reports_of(ROOT / "events" / "demo" / "warehouse.jsonl"))

    answer = pipeline.ship()

    assert answer["size"] == len(events)
    runs = pipeline.run_ids("uuid7")
    data_rentgen.wait_for(runs)
    datasets: dict[str, tuple[set[str], set[str]]] = {}
    for event, run in zip(events, runs, strict=True):
        assert data_rentgen.status(run) == STATES[event.state]
        assert data_rentgen.job_of(run) == f"{event.flow_id}.{event.task_id}"
        inputs, outputs = datasets.setdefault(run, (set(), set()))
        inputs |= {ref.id for ref in event.inputs}
        outputs |= {ref.id for ref in event.outputs}
    assert {run: data_rentgen.datasets_of(run) for run in runs} == datasets
    reached = data_rentgen.reached_from("warehouse.raw.orders")
    assert {"warehouse.staging.stg_orders", "warehouse.marts.daily_revenue"} <= reached


@pytest.mark.usefixtures("stack")
def test_a_receiver_that_is_stopped_and_started_in_the_middle_costs_nothing(data_rentgen: DataRentgen) -> None:
    parcels = [delivery(number, f"task{number % 8}", flow_id="restart") for number in range(1500)]
    auth = {"type": "bearer", "token": keep_parameter("/lineage/token", data_rentgen.token)}
    restart = threading.Thread(target=_restart, args=(data_rentgen,))
    restart.start()

    shipped = asyncio.run(
        ship(data_rentgen.url, parcels, Patience(), 120, backend="data-rentgen", auth=auth, maxInFlight=4)
    )

    restart.join()
    assert shipped.error is None
    assert shipped.counts == (1500, 0, 0)
    assert shipped.outputs["retried"] > 0
    _eventually_counts(data_rentgen, "restart", 1500)


def test_connections_that_it_closed_when_idle_cost_no_event(pipeline: Pipeline, data_rentgen: DataRentgen) -> None:
    """It closes an idle connection after 5 s; between two runs, and within one, ours are given up before that."""
    pipeline.record(_reports("idle", 4, jobs=2))
    assert pipeline.ship()["outputs"]["backend"]["retried"] == 0
    pipeline.record(_reports("idle", 8, jobs=2))
    time.sleep(6)

    answer = pipeline.ship()

    assert answer["outputs"]["backend"] == {"delivered": 4, "rejected": 0, "skipped": 0, "retried": 0}
    _eventually_counts(data_rentgen, "idle", 8)


def test_names_that_would_take_a_batch_along_are_set_aside(pipeline: Pipeline, data_rentgen: DataRentgen) -> None:
    pipeline.exporter["mappings"] = {"odd": {"namespace": "ns"}}
    bad = _reports("bad", 1, jobs=1, outputs=[{"id": "bad.table", "type": "odd", "ns": "postgres://[bad"}])
    pipeline.record([*_reports("good", 20, jobs=4), *bad])

    answer = pipeline.ship()

    assert answer["outputs"]["backend"] == {"delivered": 20, "rejected": 1, "skipped": 0, "retried": 0}
    (letter,) = pipeline.letters()
    assert letter.reason == (
        "asset bad.table: the dataset namespace 'postgres://[bad' is no URL that it can read (data-rentgen)"
    )
    _eventually_counts(data_rentgen, "good", 20)


def _reports(flow: str, count: int, *, jobs: int, outputs: list[Any] | None = None) -> list[dict[str, Any]]:
    """Make reports of one flow, all of them of today; the same ones again for the same arguments."""
    day = datetime.now(UTC).date().isoformat()
    return [
        {
            "namespace": "company.test",
            "flowId": flow,
            "executionId": f"{flow}-{number}",
            "taskId": f"task{number % jobs}",
            "taskRunId": f"{flow}-{number}",
            "state": "SUCCESS",
            "startDate": f"{day}T00:00:00.{number:03}Z",
            "endDate": f"{day}T00:00:01.{number:03}Z",
            "assets": {
                "inputs": [{"id": f"{flow}.in{number % jobs}"}],
                "outputs": outputs or [{"id": f"{flow}.out{number % jobs}", "type": "table"}],
            },
        }
        for number in range(count)
    ]


def _restart(data_rentgen: DataRentgen) -> None:
    while data_rentgen.count_runs("restart") == 0:
        time.sleep(0.02)
    data_rentgen.stop_receiver()
    data_rentgen.up()


def _eventually_counts(data_rentgen: DataRentgen, flow: str, count: int) -> None:
    """Wait for the count of a flow's runs: a 201 means received, not stored."""
    end = time.monotonic() + 30
    while data_rentgen.count_runs(flow) != count and time.monotonic() < end:
        time.sleep(0.2)
    assert data_rentgen.count_runs(flow) == count
