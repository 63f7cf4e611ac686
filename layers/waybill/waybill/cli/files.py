"""`waybill files`: lists what file exporters wrote, and checks it against the log."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from waybill.cli.ship import FlowFile, read_flow
from waybill.cli.stack import DEFAULT_STACK, Stack, StackName
from waybill.clock import utc_now
from waybill.ids import uuid7_floor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from waybill.export.files.exporter import FileExporter
    from waybill.export.files.verify import Findings
    from waybill.model.event import LineageEvent
    from waybill.model.flow import AssetShipper, Flow
    from waybill.settings import Settings

app = typer.Typer(no_args_is_help=True)

SHOWN = 10
"""Findings of one kind that are shown; all of them are in the JSON."""

AsJson = Annotated[bool, typer.Option("--json", help="Print all that was found as JSON.")]


@app.command(name="list")
def list_(flow: FlowFile, stack: StackName = DEFAULT_STACK) -> None:
    """List the files that count: address, events, bytes."""
    from waybill.export.files.manifest import read_manifest

    for _, _, exporter in _exporters(flow, Stack(stack).settings):
        for _, body in exporter.manifests.all():
            for file in read_manifest(body).files:
                typer.echo(f"{file.uri}\t{file.lines}\t{file.bytes}")


@app.command()
def verify(flow: FlowFile, *, as_json: AsJson = False, stack: StackName = DEFAULT_STACK) -> None:
    """Read manifests and files back and compare them with the log; exit with 1 when something is wrong.

    Wrong are events that are missing or stand in files more than once, and files that are damaged. Files that no
    manifest names are left over from runs that were cut short; they do no harm.
    """
    from waybill.export.files.verify import verify as check

    settings = Stack(stack).settings
    found: dict[str, Findings] = {}
    for name, task, exporter in _exporters(flow, settings):
        log = _log(exporter, task, settings)
        found[name] = check(exporter.destination, exporter.manifests, log, utc_now())
        if not as_json:
            _show(name, found[name], compared=log is not None)
    if as_json:
        typer.echo(json.dumps({name: asdict(findings) for name, findings in found.items()}, indent=2))
    if not all(findings.sound for findings in found.values()):
        raise typer.Exit(1)


def _exporters(path: Path, settings: Settings) -> Iterator[tuple[str, AssetShipper, FileExporter]]:
    """Return the file exporters of a flow document by `<task>.<exporter>`."""
    from waybill.export.files.config import FileAssetExporter
    from waybill.export.files.exporter import FileExporter
    from waybill.export.ports import Deadline, Run
    from waybill.model.flow import parse_flow
    from waybill.ship.task import state_key
    from waybill.store.aws import client

    flow: Flow = parse_flow(read_flow(path))
    for task in flow.shippers:
        run = Run(flow.namespace, flow.id, task.id, state_key(flow, task), utc_now(), Deadline(0))
        for config in task.asset_exporters:
            if isinstance(config, FileAssetExporter):
                name = f"{task.id}.{config.id}"
                yield name, task, FileExporter(config, run, client("s3"), settings.lineage_bucket)


def _log(exporter: FileExporter, task: AssetShipper, settings: Settings) -> Iterator[LineageEvent] | None:
    """Return the events that an exporter has behind it; None where filters on assets decided which those are."""
    from waybill.ship.filters import Filters
    from waybill.ship.position import Position
    from waybill.ship.reader import Reader
    from waybill.ship.services import services_of
    from waybill.ship.shipped import shipped

    filters = Filters.of(task)
    if filters.on_assets:
        return None
    services = services_of(settings)
    run, exporter_id = exporter.run, exporter.id
    positions = [
        state.positions[exporter_id]
        for state in services.states.all()
        if (state.namespace, state.key) == (run.namespace, run.state_key) and exporter_id in state.positions
    ]
    reader = Reader(services.log, services.shards.generations(), uuid7_floor(utc_now()))
    found = [Position.from_json(body, f"{run.namespace} {run.state_key} of {exporter_id}") for body in positions]
    return (event for position in found for event in shipped(reader, position, filters))


def _show(name: str, findings: Findings, *, compared: bool) -> None:
    typer.echo(f"{name}: {findings.lines} events in {findings.files} files, {findings.manifests} manifests")
    if not compared:
        typer.echo("  filters on assets decided what was filed: what is missing cannot be told")
    kinds = {
        "missing": findings.missing,
        "double": findings.double,
        "damaged": [f"{uri}: {fault}" for uri, fault in findings.damaged.items()],
        "orphan": findings.orphans,
        "rejected": findings.rejected,
    }
    for kind, things in kinds.items():
        for thing in things[:SHOWN]:
            typer.echo(f"  {kind}: {thing}")
        if len(things) > SHOWN:
            typer.echo(f"  {kind}: and {len(things) - SHOWN} more")
    if findings.sound:
        typer.echo("  each event stands in exactly one file" if compared else "  no event stands in two files")
