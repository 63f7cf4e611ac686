"""The pictures of docs/architecture.md are of the template of today."""

from __future__ import annotations

import re

from tools.diagram import DOCUMENT, drawn


def test_the_pictures_are_drawn_from_the_template_of_today() -> None:
    text = DOCUMENT.read_text()
    assert drawn(text) == text, "run python -m tools.diagram"


def test_a_page_without_pictures_gets_them() -> None:
    empty = re.sub(r"```mermaid\n.*?```\n", "", DOCUMENT.read_text(), flags=re.DOTALL)
    assert "flowchart" not in empty
    assert drawn(empty) == DOCUMENT.read_text()


def test_a_picture_shows_what_invokes_what_and_who_writes_what() -> None:
    text = DOCUMENT.read_text()
    for edge in (
        "  LineageBus --> RecorderFunction\n",
        "  ShipLineage{{ShipLineage}} --> ShipperFunction\n",
        '  ReportQueue -. "after 5 tries" .-> ReportDeadLetterQueue\n',
        "  ShipperFunction -. reads .-> CatalogTable\n",
    ):
        assert edge in text
