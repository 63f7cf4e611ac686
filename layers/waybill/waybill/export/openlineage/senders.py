"""Chooses how events are posted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waybill.export.openlineage.config import joined

if TYPE_CHECKING:
    from waybill.export.openlineage.config import OpenLineageAssetExporter
    from waybill.export.openlineage.sender import Sender
    from waybill.export.ports import Deadline


def sender_of(config: OpenLineageAssetExporter, deadline: Deadline) -> Sender:
    """Return the sender for an exporter; only what it needs is imported."""
    if config.backend == "datazone":
        from waybill.export.openlineage.datazone import DataZoneSender

        return DataZoneSender(config, deadline)
    from waybill.export.openlineage.sender import HttpSender

    single = HttpSender(config, config.url, deadline)
    backend = config.preset
    if config.batch == 1 or backend.batch_endpoint is None:
        return single
    from waybill.export.openlineage.batching import BatchSender

    url = joined(config.uri or "", backend.batch_endpoint)
    return BatchSender(single, HttpSender(config, url, deadline), backend, config.batch)
