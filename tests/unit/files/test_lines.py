"""What is kept of rendered assets, so that memory stays flat however many there are."""

from __future__ import annotations

import orjson
import pytest

from waybill.export.files import lines
from waybill.model.asset import Asset

ONCE = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("most", "characters", "made"),
    [(10, 10_000, ONCE), (2, 10_000, ONCE * 2), (10, 8, ONCE * 2)],
    ids=["few", "many", "large"],
)
def test_a_piece_is_made_once_unless_too_many_are_kept(
    monkeypatch: pytest.MonkeyPatch, most: int, characters: int, made: list[str]
) -> None:
    monkeypatch.setattr(lines, "MOST_KEPT", most)
    monkeypatch.setattr(lines, "KEPT_CHARACTERS", characters)
    seen: list[str] = []

    def make(asset: Asset) -> str:
        seen.append(asset.id)
        return f'"{asset.id}"'

    piece_of = lines.kept(make)
    assets = [Asset(id=name, type="table") for name in ONCE]
    pieces = [piece_of(asset) for _ in range(2) for asset in assets]

    assert (orjson.loads(orjson.dumps(pieces)), seen) == (ONCE * 2, made)
