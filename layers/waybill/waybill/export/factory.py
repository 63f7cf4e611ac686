"""Makes the exporter that a flow document asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waybill.export.files.config import FileAssetExporter
from waybill.store.aws import client

if TYPE_CHECKING:
    from waybill.export.ports import BatchExporter, Run, StreamExporter
    from waybill.model.flow import AnyExporter
    from waybill.settings import Settings


def exporter_of(config: AnyExporter, run: Run, settings: Settings) -> StreamExporter | BatchExporter:
    """Make an exporter; only what it needs is imported."""
    if isinstance(config, FileAssetExporter):
        from waybill.export.files.exporter import FileExporter

        return FileExporter(config, run, client("s3"), settings.lineage_bucket)
    from waybill.export.openlineage.exporter import OpenLineageExporter
    from waybill.store.dead_letters import DeadLetters

    return OpenLineageExporter(config, run, DeadLetters.of(settings))
