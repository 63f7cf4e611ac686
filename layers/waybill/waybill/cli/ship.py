"""`waybill ship`: runs a flow document by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from waybill.cli.stack import DEFAULT_STACK, Stack, StackName
from waybill.errors import InvalidFlow
from waybill.export.files.config import FileAssetExporter
from waybill.model.flow import parse_flow

app = typer.Typer()

FlowFile = Annotated[
    Path, typer.Option("--flow", exists=True, dir_okay=False, help="The flow document, YAML as in the guide, or JSON.")
]


def read_flow(path: Path) -> Any:
    """Read a flow document from a file of YAML or JSON.

    Raises:
        InvalidFlow: the file is neither.
    """
    import yaml

    try:
        return yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise InvalidFlow([f"{path}: is neither YAML nor JSON: {error}"]) from error


@app.command()
def ship(flow: FlowFile, stack: StackName = DEFAULT_STACK) -> None:
    """Run a flow document now, from where its tasks stand, and print the answer."""
    document = read_flow(flow)
    exporters = [exporter for task in parse_flow(document).shippers for exporter in task.asset_exporters]
    files_only = all(isinstance(exporter, FileAssetExporter) for exporter in exporters)
    answer = Stack(stack).invoke("FileExporterFunction" if files_only else "ShipperFunction", document)
    typer.echo(json.dumps(answer, indent=2))
