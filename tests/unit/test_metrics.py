"""The metrics of a run, as CloudWatch's embedded format."""

from __future__ import annotations

import json
from typing import Any

import pytest

from waybill.model.flow import parse_flow
from waybill.settings import settings
from waybill.ship.answer import Figures, TaskAnswer
from waybill.ship.metrics import publish

FLOW = parse_flow(
    {
        "id": "ship",
        "namespace": "company.platform",
        "tasks": [
            {
                "id": "ship_lineage",
                "type": "AssetShipper",
                "assetExporters": [
                    {"id": "marquez", "type": "OpenLineageAssetExporter", "uri": "http://marquez:5000"},
                ],
            }
        ],
    }
)


@pytest.fixture(autouse=True)
def _stack(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LINEAGE_TABLE", "CATALOG_TABLE", "KEY_VALUE_TABLE", "LINEAGE_BUCKET", "LINEAGE_BUS"):
        monkeypatch.setenv(name, "name")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "waybill")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Waybill")
    settings.cache_clear()


def published(answer: TaskAnswer, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What was written about the answer of a task: documents without the words of their format."""
    publish(FLOW, "ship_lineage", answer)
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [{name: value for name, value in one.items() if name != "_aws"} for one in documents]


def test_an_exporter_whose_position_cannot_be_read_is_told_as_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    answer = TaskAnswer(failures={"broken": "holds no position"}, figures={"good": Figures(3.0, {})})
    of_flow = {"service": "waybill", "flow": "company.platform/ship.ship_lineage"}

    broken, good, together = published(answer, capsys)

    assert broken == of_flow | {"exporter": "broken", "ExporterStopped": [1.0]}
    assert (good["exporter"], good["ExporterStopped"], good["LagSeconds"]) == ("good", [0.0], [3.0])
    assert (together["service"], together["ExporterStopped"], together["LagSeconds"]) == ("waybill", [1.0], [3.0])
