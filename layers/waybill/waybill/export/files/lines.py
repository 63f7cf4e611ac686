"""What one event looks like as a line: the event's own words, and its assets as they are now.

An asset is rendered once and kept, for most events of a run name assets that others named before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

import orjson

from waybill.export.files.ion import ion_asset, ion_fields
from waybill.export.ports import Delivery

if TYPE_CHECKING:
    from waybill.export.files.config import FileAssetExporter
    from waybill.model.asset import Asset

KEPT_ASSETS = 10_000

Render = Callable[[Delivery], bytes]
Piece = TypeVar("Piece")


class Kept(Generic[Piece]):
    """Remembers what was made of an asset for as long as it comes as the same object."""

    def __init__(self, make: Callable[[Asset], Piece]) -> None:
        self._make = make
        self._pieces: dict[str, tuple[Asset, Piece]] = {}

    def __call__(self, asset: Asset) -> Piece:
        """Return what is made of the asset."""
        kept = self._pieces.get(asset.id)
        if kept is not None and kept[0] is asset:
            return kept[1]
        if len(self._pieces) >= KEPT_ASSETS:
            self._pieces.clear()
        piece = self._make(asset)
        self._pieces[asset.id] = (asset, piece)
        return piece


def renderer(config: FileAssetExporter) -> Render:
    """Return what renders deliveries as the exporter's lines."""
    return ion_lines() if config.format == "ION" else json_lines()


def json_lines() -> Render:
    """Return what renders a delivery as one line of JSON: the event as users see it, with whole assets.

    `timestamp` is what the reference product's record calls the recording time; `created` is its name everywhere else.
    """
    fragment = Kept(lambda asset: orjson.Fragment(asset.to_json()))

    def render(delivery: Delivery) -> bytes:
        document = delivery.event.words()
        document["timestamp"] = delivery.event.created
        document["inputs"] = [fragment(asset) for asset in delivery.inputs]
        document["outputs"] = [fragment(asset) for asset in delivery.outputs]
        return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)

    return render


def ion_lines() -> Render:
    """Return what renders a delivery as one line of Ion's text: the same document, its times as timestamps."""
    text = Kept(ion_asset)

    def render(delivery: Delivery) -> bytes:
        words = delivery.event.words()
        words["timestamp"] = delivery.event.created
        inputs = ",".join([text(asset) for asset in delivery.inputs])
        outputs = ",".join([text(asset) for asset in delivery.outputs])
        return f"{{{ion_fields(words)},inputs:[{inputs}],outputs:[{outputs}]}}\n".encode()

    return render
