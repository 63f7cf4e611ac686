"""`waybill files`: lists what file exporters wrote, and checks it against the log."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from waybill.cli.ship import FlowFile, read_flow
from waybill.cli.stack import DEFAULT_STACK, Stack, StackName
from waybill.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from waybill.export.files.exporter import FileExporter
    from waybill.export.files.verify import Findings
    from waybill.model.flow import AssetShipper, Flow
    from waybill.ship.services import Services

app = typer.Typer(no_args_is_help=True)

SHOWN = 10
"""Findings of one kind that are shown; all of them are in the JSON."""

AsJson = Annotated[bool, typer.Option("--json", help="Print all that was found as JSON.")]

ExpireOrphans = Annotated[
    bool,
    typer.Option("--expire-orphans", help="Let the lifecycle of the stack's bucket remove what no manifest names."),
]


@app.command(name="list")
def list_(flow: FlowFile, stack: StackName = DEFAULT_STACK) -> None:
    """List the files that count: address, events, bytes; exit with 1 when a manifest cannot be read."""
    from waybill.export.files.manifest import DamagedManifestError

    unread = False
    document = _flow_of_files(flow)
    for _, _, exporter in _exporters(_services(stack), document):
        for key in exporter.manifests.look().manifests:
            try:
                files = exporter.manifests.read(key).files
            except DamagedManifestError as error:
                unread = True
                typer.echo(f"{exporter.destination.uri(key)} {error}", err=True)
                continue
            for file in files:
                typer.echo(f"{file.uri}\t{file.lines}\t{file.bytes}")
    if unread:
        raise typer.Exit(1)


@app.command()
def verify(
    flow: FlowFile, *, as_json: AsJson = False, expire_orphans: ExpireOrphans = False, stack: StackName = DEFAULT_STACK
) -> None:
    """Read manifests and files back and compare them with the log; exit with 1 when something is wrong.

    Wrong are events that are missing or stand in files more than once, and files that are damaged. Files that no
    manifest names are left over from runs that were cut short; they do no harm.
    """
    document = _flow_of_files(flow)
    found = findings(_services(stack), document, utc_now(), expire_orphans=expire_orphans)
    if as_json:
        typer.echo(json.dumps({name: asdict(one) for name, one in found.items()}, indent=2))
    else:
        for name, one in found.items():
            _show(name, one)
    if not all(one.sound and one.not_tagged is None for one in found.values()):
        raise typer.Exit(1)


def findings(services: Services, flow: Flow, now: datetime, *, expire_orphans: bool = False) -> dict[str, Findings]:
    """Check every file exporter of a flow, and return what was found by `<task>.<exporter>`.

    Args:
        services: of the stack.
        flow: with file exporters.
        now: younger files may be in work, and are no orphans.
        expire_orphans: tag them, so that the lifecycle of the stack's bucket removes them.

    Raises:
        ExporterStopped: S3 does not answer.
        InvalidOffset: what is stored is no position.
    """
    from waybill.export.files.verify import expire_orphans as expire
    from waybill.export.files.verify import verify as check
    from waybill.ship.shipped import shipped_by

    found = {}
    for name, task, exporter in _exporters(services, flow):
        shipped = shipped_by(services, exporter.run, task, exporter.id)
        found[name] = check(exporter.destination, exporter.manifests, shipped, now)
        if expire_orphans:
            expire(exporter.destination, found[name])
    return found


def _flow_of_files(path: Path) -> Flow:
    """Read a flow document that has a file exporter."""
    from waybill.export.files.config import FileAssetExporter
    from waybill.model.flow import parse_flow

    flow = parse_flow(read_flow(path))
    if not any(isinstance(each, FileAssetExporter) for task in flow.shippers for each in task.asset_exporters):
        raise typer.BadParameter("the flow has no FileAssetExporter", param_hint="--flow")
    return flow


def _services(stack: str) -> Services:
    from waybill.ship.services import services_of

    return services_of(Stack(stack).settings)


def _exporters(services: Services, flow: Flow) -> Iterator[tuple[str, AssetShipper, FileExporter]]:
    from waybill.export.files.exporter import FileExporter
    from waybill.export.ports import Deadline, Run
    from waybill.ship.task import state_key

    for task in flow.shippers:
        run = Run(flow.namespace, flow.id, task.id, state_key(flow, task), utc_now(), Deadline(0))
        for config in task.asset_exporters:
            exporter = services.exporter(config, run)
            if isinstance(exporter, FileExporter):
                yield f"{task.id}.{config.id}", task, exporter


def _show(name: str, found: Findings) -> None:
    typer.echo(f"{name}: {found.lines} events in {found.files} files, {found.manifests} manifests")
    if not found.compared:
        typer.echo("  filters on assets decided what was filed: what is missing cannot be told")
    if found.older:
        typer.echo(f"  older: {found.older} events of the log are from before all files here, and were not looked for")
    kinds = {
        "missing": found.missing,
        "double": found.double,
        "damaged": [f"{uri}: {fault}" for uri, fault in found.damaged.items()],
        "orphan": found.orphans,
        "rejected": found.rejected,
    }
    for kind, things in kinds.items():
        for thing in things[:SHOWN]:
            typer.echo(f"  {kind}: {thing}")
        if len(things) > SHOWN:
            typer.echo(f"  {kind}: and {len(things) - SHOWN} more")
    if found.tagged:
        typer.echo(f"  tagged: {found.tagged} orphans expire")
    if found.not_tagged is not None:
        typer.echo(f"  not tagged: {len(found.orphans) - found.tagged} orphans: {found.not_tagged}")
    if found.sound:
        typer.echo("  each event stands in exactly one file" if found.compared else "  no event stands in two files")
