"""The whole way on moto: reports are recorded, and shipped by the engine to a backend that is real."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import boto3

from waybill.export.openlineage.runs import run_id
from waybill.model.flow import parse_flow
from waybill.ship.flow import run_flow
from waybill.ship.services import services_of
from waybill.store.dead_letters import DeadLetters

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.support.stack_in_memory import StackInMemory
    from waybill.model.event import LineageEvent
    from waybill.store.dead_letters import DeadLetter

NAMESPACE = "company.platform"


def reports_of(path: Path) -> list[dict[str, Any]]:
    """Read task run reports, one a line."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@dataclass
class Pipeline:
    """A stack, and one flow that ships its lineage.

    Attributes:
        exporter: the exporter's properties, but for id and type.
    """

    stack: StackInMemory
    exporter: dict[str, Any]

    def record(self, reports: Iterable[dict[str, Any]]) -> list[LineageEvent]:
        """Record reports and return all events of the log, in its order."""
        for report in reports:
            self.stack.recorder.record(report)
        return self.stack.events()

    def ship(self, flow_id: str = "ship", seconds: float = 300) -> dict[str, Any]:
        """Ship from the flow's position, and return its task's answer; another flow starts from the beginning."""
        time.sleep(0.01)
        exporter = {"id": "backend", "type": "OpenLineageAssetExporter", **self.exporter}
        task = {"id": "lineage", "type": "AssetShipper", "lookbackPeriod": "P30D", "assetExporters": [exporter]}
        flow = parse_flow({"id": flow_id, "namespace": NAMESPACE, "tasks": [task]})
        services = services_of(replace(self.stack.settings, settle_seconds=0.0))
        answer, _ = asyncio.run(run_flow(services, flow, seconds, "test"))
        outputs: dict[str, Any] = answer["outputs"]["lineage"]
        return outputs

    def run_ids(self, run_ids: str = "keep") -> list[str]:
        """Return the run id of every event of the log."""
        return [run_id(event, run_ids) for event in self.stack.events()]

    def letters(self) -> list[DeadLetter]:
        """Return the dead letters."""
        letters = DeadLetters.of(self.stack.settings)
        return [whole for letter in letters.all() if (whole := letters.whole(letter))]


def keep_parameter(name: str, value: str) -> dict[str, str]:
    """Put a secret into Parameter Store and return the reference to it."""
    from aws_lambda_powertools.utilities.parameters import clear_caches
    from aws_lambda_powertools.utilities.parameters.constants import DEFAULT_PROVIDERS

    clear_caches()  # type: ignore[no-untyped-call]
    DEFAULT_PROVIDERS.clear()
    boto3.client("ssm").put_parameter(Name=name, Value=value, Type="SecureString", Overwrite=True)
    return {"parameter": name}
