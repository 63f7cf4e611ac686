"""`waybill doctor`: finds out why a backend does not take what is shipped, or that it would."""

from __future__ import annotations

import asyncio

import typer

from waybill.cli.ship import FlowFile, read_flow
from waybill.export.openlineage.config import OpenLineageAssetExporter
from waybill.model.flow import parse_flow

app = typer.Typer()


@app.command()
def doctor(flow: FlowFile) -> None:
    """Examine each OpenLineage backend of a flow from here: name, connection, TLS, credentials, one harmless event.

    The event is a run of the job waybill.probe, without datasets.
    """
    from waybill.export.openlineage.doctor import examine

    document = parse_flow(read_flow(flow))
    configs = [
        exporter
        for task in document.shippers
        for exporter in task.asset_exporters
        if isinstance(exporter, OpenLineageAssetExporter)
    ]
    if not configs:
        typer.echo("The flow has no OpenLineageAssetExporter.")

    async def run() -> bool:
        well = True
        for config in configs:
            typer.echo(f"{config.id} ({config.backend})")
            async for finding in examine(config):
                well &= finding.well
                typer.secho(f"  {'ok ' if finding.well else 'ill'}  {finding.step:12} {finding.text}")
        return well

    if not asyncio.run(run()):
        raise typer.Exit(1)
