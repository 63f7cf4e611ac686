"""What one event looks like as a line: the event's own words, and its assets as they are now.

An asset is rendered once and kept, for most events of a run name assets that others named before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import orjson

from waybill.clock import iso
from waybill.errors import WaybillError
from waybill.export.ports import Delivery

if TYPE_CHECKING:
    from waybill.export.files.config import FileAssetExporter
    from waybill.model.asset import Asset

KEPT_CHARACTERS = 2 * 1024 * 1024
MOST_KEPT = 5_000
"""What is kept of rendered assets; then it starts anew. An asset takes several times the room of its piece, and the
engine forgets it after so many others."""

Render = Callable[[Delivery], bytes]

NOWHERE = "http://localhost"
"""Stands for the destination that a mapping wants and a file has not."""

DOLLAR = ord("$")
"""It is rare, and one byte is found many times faster than two."""
_SYMBOL_KEY = re.compile(rb'(?<=[{,])"(\$[0-9]+)":')
"""A key such as "$10", in JSON. Inside a text no quote comes right after a brace or comma: a backslash precedes it."""

_TIMES = ("startDate", "endDate", "executionStartDate", "created", "timestamp")


class NoLineError(WaybillError):
    """No line can be made of an event. The message says why; a renderer of OpenLineage raises it."""


def kept(make: Callable[[Asset], str]) -> Callable[[Asset], orjson.Fragment]:
    """Return what makes a piece of an asset, and remembers it for as long as the asset comes as the same object.

    The object is kept with its piece, so that no other takes its place in memory.
    """
    pieces: dict[int, tuple[Asset, orjson.Fragment]] = {}
    characters = 0

    def piece_of(asset: Asset) -> orjson.Fragment:
        nonlocal characters
        known = pieces.get(id(asset))
        if known is not None:
            return known[1]
        text = make(asset)
        characters += len(text)
        if characters > KEPT_CHARACTERS or len(pieces) >= MOST_KEPT:
            pieces.clear()
            characters = len(text)
        piece = orjson.Fragment(text)
        pieces[id(asset)] = (asset, piece)
        return piece

    return piece_of


def renderer(config: FileAssetExporter) -> Render:
    """Return what renders deliveries as the exporter's lines."""
    if config.content == "openlineage":
        return openlineage_lines(config)
    return ion_lines() if config.format == "ION" else json_lines()


def json_lines() -> Render:
    """Return what renders a delivery as one line of JSON: the event as users see it, with whole assets.

    `timestamp` is what the reference product's record calls the recording time; `created` is its name everywhere else.
    """
    asset_json = kept(lambda asset: asset.to_json())

    def render(delivery: Delivery) -> bytes:
        event = delivery.event
        document = event.words()
        document["timestamp"] = event.created
        document["inputs"] = list(map(asset_json, delivery.inputs))
        document["outputs"] = list(map(asset_json, delivery.outputs))
        return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)

    return render


def ion_lines() -> Render:
    """Return what renders a delivery as one line of Amazon Ion's text: the same document, its times as timestamps.

    JSON is a subset of Ion's text (https://amazon-ion.github.io/ion-docs/docs/spec.html), and an ISO 8601 time without
    quotes is a timestamp. So no Ion library is needed to write; `amazon.ion` would bring numpy into the layer. Keys
    such as "$10" become quoted symbols: readers in C take them for numbers of the table of symbols.
    """
    asset_ion = kept(_asset_ion)

    def render(delivery: Delivery) -> bytes:
        event = delivery.event
        document = event.words()
        document["timestamp"] = event.created
        for name in _TIMES:
            if name in document:
                document[name] = orjson.Fragment(document[name])
        document["inputs"] = list(map(asset_ion, delivery.inputs))
        document["outputs"] = list(map(asset_ion, delivery.outputs))
        line = orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
        return _SYMBOL_KEY.sub(rb"'\1':", line) if DOLLAR in line else line

    return render


def openlineage_lines(config: FileAssetExporter) -> Render:
    """Return what renders a delivery as one line of JSON: the OpenLineage run event that a generic backend would get.

    What it returns raises ExporterStopped where an asset of a mapped type lacks the metadata key.
    """
    from waybill.export.openlineage.config import OpenLineageAssetExporter
    from waybill.export.openlineage.mapping import CannotBeSent, Mapper

    mapper = Mapper(
        OpenLineageAssetExporter(
            id=config.id,
            type="OpenLineageAssetExporter",
            backend="generic",
            uri=NOWHERE,
            mappings=config.mappings,
            default_namespace=config.default_namespace,
        )
    )

    def render(delivery: Delivery) -> bytes:
        try:
            (event,) = mapper.events(delivery)
        except CannotBeSent as error:
            raise NoLineError(str(error)) from None
        return event.body + b"\n"

    return render


def _asset_ion(asset: Asset) -> str:
    """Write an asset as Ion. What looks like a time in its metadata is text and stays text."""
    text = asset.model_dump_json(by_alias=True, exclude_none=True, exclude={"created", "updated"})
    times = {"created": asset.created, "updated": asset.updated}
    return text[:-1] + "".join(f',"{name}":{iso(moment)}' for name, moment in times.items() if moment) + "}"
