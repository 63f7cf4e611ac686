"""Flow documents in files: YAML as in the guide, or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from waybill.cli.ship import read_flow
from waybill.errors import InvalidFlow

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, content: str | bytes) -> Any:
    path = folder / "flow"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_flow(path)


@pytest.mark.parametrize(
    "content",
    [
        "id: ship\nlabels: {since: 2026-12-01, at: 2026-12-01T09:00:00Z}\n",
        '{"id": "ship",\n\t"labels": {"since": "2026-12-01", "at": "2026-12-01T09:00:00Z"}}',
        '\ufeff{"id": "ship", "labels": {"since": "2026-12-01", "at": "2026-12-01T09:00:00Z"}}',
    ],
)
def test_a_document_is_the_same_in_yaml_and_json(tmp_path: Path, content: str) -> None:
    assert read(tmp_path, content) == {"id": "ship", "labels": {"since": "2026-12-01", "at": "2026-12-01T09:00:00Z"}}


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"id: \xff\xfe\n", "is not UTF-8: invalid start byte at byte 4"),
        ("labels: {x: !!binary aGVsbG8=}\n", "holds what JSON has no word for: "),
        ("id: [a\n", "is neither YAML nor JSON: "),
    ],
)
def test_what_is_no_document_is_named(tmp_path: Path, content: str | bytes, fault: str) -> None:
    with pytest.raises(InvalidFlow) as refusal:
        read(tmp_path, content)
    assert str(refusal.value).startswith(f"{tmp_path / 'flow'}: {fault}")
