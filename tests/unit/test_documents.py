"""What the documents say is so: parameters, outputs, alarms, examples, links."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from samtranslator.yaml_helper import yaml_parse

from tools.emulator import ROOT
from waybill.model.flow import parse_flow
from waybill.model.report import parse_report

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ROW = re.compile(r"^\| (?P<names>`[^|]*`) \|(?: (?P<value>`[^|]*`)? ?\|)?", re.MULTILINE)
FENCED = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#]*)(?:#(?P<heading>[^)]+))?\)")


def rows_under(heading: str, document: Path) -> dict[str, str | None]:
    """The rows of a section's tables: each name in the first cell, with what the second cell holds in code."""
    section = document.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return {
        name: row["value"].strip("`") if row["value"] else None
        for row in ROW.finditer(section)
        for name in re.findall(r"`([^`]+)`", row["names"])
    }


def blocks(document: Path, language: str) -> list[str]:
    return [match["text"] for match in FENCED.finditer(document.read_text()) if match["language"] == language]


def anchors(document: Path) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml_parse((ROOT / "template.yaml").read_text())
    return parsed


def test_each_parameter_is_described_with_its_default(template: dict[str, Any]) -> None:
    defaults = {name: str(one.get("Default", "")) or None for name, one in template["Parameters"].items()}

    assert rows_under("Parameters", ROOT / "docs" / "deploy.md") == defaults


def test_each_output_is_described(template: dict[str, Any]) -> None:
    assert set(rows_under("Outputs", ROOT / "docs" / "deploy.md")) == set(template["Outputs"])


def test_each_alarm_is_described(template: dict[str, Any]) -> None:
    alarms = {name for name, one in template["Resources"].items() if one["Type"] == "AWS::CloudWatch::Alarm"}

    described = {name for name in rows_under("Alarms", ROOT / "docs" / "operate.md") if name.endswith("Alarm")}

    assert described == alarms


def test_the_report_in_the_documents_is_valid() -> None:
    report, *_ = blocks(ROOT / "docs" / "configure.md", "json")

    assert parse_report(json.loads(report)).job == "company.data/build_marts.fct_orders"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_flow_in_the_documents_is_valid(document: Path) -> None:
    for text in blocks(document, "yaml"):
        assert parse_flow(yaml.safe_load(text)).shippers


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_link_leads_somewhere(document: Path) -> None:
    for link in LINK.finditer(document.read_text()):
        target = (document.parent / link["path"]).resolve() if link["path"] else document
        assert target.exists(), link[0]
        assert link["heading"] is None or link["heading"] in anchors(target), link[0]
