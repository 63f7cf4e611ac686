"""Deliveries, and a driver that hands them to an exporter as the engine does: jobs side by side, each in order."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from waybill.errors import WaybillError
from waybill.export.openlineage.config import OpenLineageAssetExporter
from waybill.export.openlineage.exporter import OpenLineageExporter
from waybill.export.openlineage.patience import Patience
from waybill.export.ports import Deadline, Delivery, Outcome, Run
from waybill.ids import derived_uuid7
from waybill.model.asset import TABLE, Asset, AssetRef
from waybill.model.event import LineageEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from waybill.store.dead_letters import DeadLetter

STARTED = datetime(2026, 7, 1, 9, tzinfo=UTC)
QUICK = Patience(base=0.002, cap=0.02, recovery=0)
"""The figures of retrying, small enough for tests; the rules are the same."""


def asset(asset_id: str = "raw.orders", **properties: Any) -> Asset:
    """Make an asset of the catalog."""
    return Asset(**{"id": asset_id, "type": TABLE, "namespace": "company.data", **properties})


def delivery(
    number: int = 1,
    job: str = "a",
    state: str = "SUCCESS",
    inputs: Sequence[Asset] | None = None,
    outputs: Sequence[Asset] | None = None,
    **properties: Any,
) -> Delivery:
    """Make the delivery of one event of flow `orders`, task `job`."""
    inputs = [asset("raw.orders")] if inputs is None else inputs
    outputs = [asset("orders")] if outputs is None else outputs
    run = derived_uuid7(STARTED, job, str(number))
    said = {
        "id": f"{job}-{number}",
        "namespace": "company.data",
        "flow_id": "orders",
        "execution_id": "exec-1",
        "task_id": job,
        "task_run_id": run,
        "state": state,
        "start_date": "2026-07-01T09:00:00.000Z",
        "end_date": "2026-07-01T09:01:00.000Z",
        "inputs": tuple(AssetRef(one.id) for one in inputs),
        "outputs": tuple(AssetRef(one.id) for one in outputs),
    }
    event = LineageEvent(**{**said, **properties})
    return Delivery(f"key-{job}-{number:06}", event, tuple(inputs), tuple(outputs))


def deliveries(count: int, jobs: int = 1) -> list[Delivery]:
    """Make so many deliveries, spread over so many jobs (`job0`, `job1`, …)."""
    return [delivery(number, f"job{number % jobs}") for number in range(count)]


def run_id(one: Delivery) -> str:
    """Return the run id under which a delivery is sent."""
    return one.event.task_run_id


def job_name(job: str) -> str:
    """Return the name of the OpenLineage job of a task."""
    return f"orders.{job}"


class Letters:
    """Dead letters in memory."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []

    def put(self, letter: DeadLetter) -> None:
        """Keep a letter."""
        self.letters.append(letter)

    def put_once(self, letter: DeadLetter) -> bool:
        """Keep a letter unless it is there."""
        new = letter.key not in [other.key for other in self.letters]
        if new:
            self.letters.append(letter)
        return new


@dataclass
class Shipped:
    """What came of a run of an exporter.

    Attributes:
        outcomes: of each event by its key; without those that got none.
        error: what stopped the exporter.
    """

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    letters: list[DeadLetter] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)
    error: WaybillError | None = None

    @property
    def counts(self) -> tuple[int, int, int]:
        """Delivered, rejected, skipped."""
        return self.outputs["delivered"], self.outputs["rejected"], self.outputs["skipped"]


def exporter_config(uri: str | None, **properties: Any) -> OpenLineageAssetExporter:
    """Make the configuration of an exporter from its properties as in a flow document."""
    said = {"id": "backend", "type": "OpenLineageAssetExporter", "uri": uri, **properties}
    return OpenLineageAssetExporter.model_validate({name: value for name, value in said.items() if value is not None})


async def ship(
    uri: str | None,
    parcels: Iterable[Delivery],
    patience: Patience = QUICK,
    seconds: float = 30,
    **properties: Any,
) -> Shipped:
    """Ship deliveries through an exporter with these properties, until done or stopped."""
    config = exporter_config(uri, **properties)
    letters = Letters()
    run = Run(
        "company.platform", "ship", "ship_lineage", "AssetShipper-state_ship_ship_lineage", STARTED, Deadline(seconds)
    )
    exporter = OpenLineageExporter(config, run, letters, patience)
    shipped = Shipped(letters=letters.letters)
    try:
        await exporter.open()
        await _side_by_side(exporter, parcels, shipped)
    except WaybillError as error:
        shipped.error = error
    finally:
        await exporter.close()
    shipped.outputs = exporter.outputs()
    return shipped


async def _side_by_side(exporter: OpenLineageExporter, parcels: Iterable[Delivery], shipped: Shipped) -> None:
    jobs: dict[str, list[Delivery]] = defaultdict(list)
    for parcel in parcels:
        jobs[parcel.event.job].append(parcel)
    free = asyncio.Semaphore(exporter.in_flight)

    async def work(job: list[Delivery]) -> None:
        for parcel in job:
            async with free:
                if shipped.error is not None:
                    return
                try:
                    shipped.outcomes[parcel.key] = await exporter.deliver(parcel)
                except WaybillError as error:
                    shipped.error = error
                    return

    await asyncio.gather(*(work(job) for job in jobs.values()))
