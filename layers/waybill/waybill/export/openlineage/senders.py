"""Chooses how events are posted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill.export.openlineage.config import OpenLineageAssetExporter
    from waybill.export.openlineage.sender import Sender
    from waybill.export.ports import Deadline


def sender_of(config: OpenLineageAssetExporter, deadline: Deadline) -> Sender:
    """Return the sender for an exporter; only what it needs is imported."""
    from waybill.export.openlineage.sender import HttpSender

    return HttpSender(config, deadline)
