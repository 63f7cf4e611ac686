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
        InvalidFlow: the file is neither, or holds what JSON has no word for.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidFlow([f"{path}: is not UTF-8: {error.reason} at byte {error.start}"]) from error
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return _read_yaml(path, text)


def _read_yaml(path: Path, text: str) -> Any:
    """Read YAML as JSON would be: what looks like a date is text."""
    import yaml

    resolvers = {
        first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    loader = type("Loader", (yaml.SafeLoader,), {"yaml_implicit_resolvers": resolvers})
    try:
        document = yaml.load(text, loader)  # noqa: S506 - it is a SafeLoader
    except yaml.YAMLError as error:
        raise InvalidFlow([f"{path}: is neither YAML nor JSON: {error}"]) from error
    try:
        return json.loads(json.dumps(document))
    except (TypeError, ValueError) as error:
        raise InvalidFlow([f"{path}: holds what JSON has no word for: {error}"]) from error


@app.command()
def ship(flow: FlowFile, stack: StackName = DEFAULT_STACK) -> None:
    """Run a flow document now, from where its tasks stand, and print the answer."""
    document = read_flow(flow)
    answer = Stack(stack).invoke(_function_for(document), document)
    typer.echo(json.dumps(answer, indent=2))


def _function_for(document: Any) -> str:
    """Return the function that runs a document; what a pointer points to may need any exporter."""
    if isinstance(document, dict) and isinstance(document.get("flow"), str):
        return "ShipperFunction"
    exporters = [exporter for task in parse_flow(document).shippers for exporter in task.asset_exporters]
    files_only = all(isinstance(exporter, FileAssetExporter) for exporter in exporters)
    return "FileExporterFunction" if files_only else "ShipperFunction"
