"""`docs/backends.md` names every property and every preset, with the figures that the code has."""

from __future__ import annotations

import re

from tools.emulator import ROOT
from waybill.export.openlineage.auth_config import AUTH_MODELS
from waybill.export.openlineage.backends import BACKENDS
from waybill.export.openlineage.config import OpenLineageAssetExporter
from waybill.export.openlineage.facets import DROPPABLE
from waybill.export.openlineage.patience import Patience

DOCUMENT = (ROOT / "docs" / "backends.md").read_text()


def rows(heading: str) -> dict[str, list[str]]:
    """Return the rows of the first table under a heading: the text of the first column, and the other cells."""
    section = DOCUMENT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {cells[0].strip(" `"): [cell.strip() for cell in cells[1:]] for cells in lines}


def test_every_property_is_named() -> None:
    fields = {field.alias or name for name, field in OpenLineageAssetExporter.model_fields.items()}
    assert set(rows("Properties")) == fields - {"id", "type"}


def test_the_defaults_are_those_of_the_code() -> None:
    config = OpenLineageAssetExporter.model_validate(
        {"id": "x", "type": "OpenLineageAssetExporter", "uri": "http://marquez:5000"}
    )
    said = config.model_dump(by_alias=True)
    told = {name: cells[0].strip("`") for name, cells in rows("Properties").items()}
    for name in ("backend", "defaultNamespace", "maxInFlight", "batch", "onRejected"):
        assert told[name] == str(said[name])
    for name in ("startEvents", "verifyUnknown"):
        assert told[name] == str(said[name]).lower()
    timeout = ", ".join(f"{name}: {seconds:g}" for name, seconds in said["timeout"].items())
    assert told["timeout"] == f"{{{timeout}}}"


def test_every_preset_is_named_with_its_path() -> None:
    table = rows("Presets")
    assert set(table) - {"backend"} == set(BACKENDS)
    for name, backend in BACKENDS.items():
        if name != "datazone":
            assert table[name][0].strip("`") == backend.endpoint


def test_every_type_of_credentials_is_named_with_its_properties() -> None:
    table = rows("Credentials")
    for model in AUTH_MODELS:
        (kind,) = re.findall(r"'(\w+)'", str(model.model_fields["type"].annotation))
        properties = {field.alias or name for name, field in model.model_fields.items()} - {"type"}
        assert properties <= set(re.findall(r"`(\w+)`", table[kind][0])), kind


def test_the_figures_are_those_of_the_code() -> None:
    patience = Patience()
    assert f"after {patience.failed_tries} tries" in DOCUMENT
    assert f"after {patience.unknown_tries} such tries" in DOCUMENT
    assert f"doubles up to {patience.cap:g} s" in DOCUMENT
    assert f"after {patience.probe_after:g} s without any" in DOCUMENT
    assert f"For {BACKENDS['marquez'].recovery:g} s after a sign" in DOCUMENT
    assert ", ".join(f"`{facet}`" for facet in DROPPABLE) in DOCUMENT
