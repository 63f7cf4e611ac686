"""Every file of `events/` is what its function takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from tools.emulator import ROOT
from waybill.model.flow import Flow, parse_flow
from waybill.model.report import parse_report
from waybill.record.ways_in import report_in
from waybill.ship.flow import load_flow, require_files_only

FILES = sorted((ROOT / "events").glob("*.json"))
PREFIXES = ("catalog", "file", "record", "ship")


def names(prefix: str) -> list[str]:
    return [file.stem for file in FILES if file.stem.startswith(f"{prefix}_")]


def event(name: str) -> Any:
    return json.loads((ROOT / "events" / f"{name}.json").read_text())


def reports(document: Any) -> list[Any]:
    """The reports that an event of the recorder holds, as the recorder finds them."""
    if "Records" in document:
        return [report_in(json.loads(record["body"])) for record in document["Records"]]
    return [report_in(document)]


def flow(document: Any) -> Flow:
    """The flow of an event; one that is only pointed to is any other."""
    return load_flow(document, lambda _pointer: json.dumps(event("ship_lineage_to_marquez")))


def test_every_file_belongs_to_a_function() -> None:
    assert {file.stem.split("_")[0] for file in FILES} == set(PREFIXES)


@pytest.mark.parametrize("name", [name for name in names("record") if name != "record_from_s3"])
def test_a_recorder_event_holds_valid_reports(name: str) -> None:
    assert [parse_report(report).namespace for report in reports(event(name))]


def test_a_report_in_s3_is_pointed_to_by_its_address() -> None:
    assert event("record_from_s3") == {"report": "s3://waybill-lineagebucket/reports/2026-12-01/daily_marts.json"}


@pytest.mark.parametrize("name", names("ship"))
def test_a_shipper_event_is_a_valid_flow(name: str) -> None:
    assert flow(event(name)).shippers


@pytest.mark.parametrize("name", names("file"))
def test_a_file_exporter_event_is_a_valid_flow_with_file_exporters_alone(name: str) -> None:
    require_files_only(flow(event(name)))


@pytest.mark.parametrize("name", names("catalog"))
def test_a_catalog_event_is_a_signed_request(name: str) -> None:
    request = APIGatewayProxyEventV2(event(name))
    assert (request["version"], request.raw_path) == ("2.0", request.request_context.http.path)
    assert request.request_context.authorizer.iam is not None


def test_the_guides_flow_is_there_word_for_word() -> None:
    assert parse_flow(event("ship_lineage_to_marquez")).triggers[0].cron == "@hourly"
