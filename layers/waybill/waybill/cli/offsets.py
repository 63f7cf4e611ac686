"""`waybill offsets`: shows how far each task has shipped, and sets it back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waybill.cli.ship import read_flow
from waybill.cli.stack import DEFAULT_STACK, Stack, StackName
from waybill.cli.tables import AsJson, show_json, show_table
from waybill.clock import iso, utc_now
from waybill.errors import InvalidDocument
from waybill.model.flow import parse_flow
from waybill.ship.offsets import Offsets

if TYPE_CHECKING:
    from waybill.ship.offsets import TaskOffset

app = typer.Typer(no_args_is_help=True)

Namespace = Annotated[str, typer.Argument(help="The flow's namespace, such as company.platform.")]
Key = Annotated[str, typer.Argument(help="The key, such as AssetShipper-state_ship_lineage_to_marquez_ship_lineage.")]
Time = Annotated[str, typer.Argument(help="ISO 8601 with a zone, such as 2026-12-01T09:00:00Z.")]

TaskFlow = Annotated[
    Path | None,
    typer.Option("--flow", exists=True, dir_okay=False, help="The task's flow document, when it has not run yet."),
]
Count = Annotated[bool, typer.Option(help="Count the events that wait; this reads their keys.")]

_FIRST = datetime(1970, 1, 1, tzinfo=UTC)


@app.command()
def show(*, count: Count = True, as_json: AsJson = False, stack: StackName = DEFAULT_STACK) -> None:
    """Show how far each exporter of each task is, what waits for it and for how long, and who holds the lease."""
    offsets, now = _offsets(stack).all(count=count), utc_now()
    if as_json:
        show_json([_document(offset, now) for offset in offsets])
        return
    columns = ("namespace", "key", "exporter", "shipped up to", "waiting", "for", "lease")
    rows = [(offset.namespace, offset.key, *row, _lease(offset)) for offset in offsets for row in _rows(offset, now)]
    show_table(columns, rows, "No task has shipped yet.")
    for offset in offsets:
        for fault in offset.faults:
            typer.echo(fault, err=True)


@app.command()
def reset(namespace: Namespace, key: Key, stack: StackName = DEFAULT_STACK) -> None:
    """Forget a task's offset: its next run starts again from lookbackPeriod."""
    _offsets(stack).reset(namespace, key)
    typer.echo(f"{namespace}/{key}: the next run starts from lookbackPeriod")


@app.command(name="set")
def set_(namespace: Namespace, key: Key, time: Time, flow: TaskFlow = None, stack: StackName = DEFAULT_STACK) -> None:
    """Set a task's offset to a time: its next run ships what was recorded since then."""
    document, moment = None if flow is None else parse_flow(read_flow(flow)), _instant(time)
    _offsets(stack).set(namespace, key, moment, document)
    typer.echo(f"{namespace}/{key}: the next run ships what was recorded since {iso(moment)}")


def _instant(time: str) -> datetime:
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        raise InvalidDocument([f"time: {time} is not ISO 8601, such as 2026-12-01T09:00:00Z"]) from None
    if moment.tzinfo is None:
        raise InvalidDocument([f"time: {time} has no time zone; add Z or an offset"])
    if not _FIRST <= moment <= utc_now():
        raise InvalidDocument([f"time: {time} must lie between 1970 and now: nothing was recorded at other times"])
    return moment


def _offsets(stack: str) -> Offsets:
    return Offsets.of(Stack(stack).settings)


def _rows(offset: TaskOffset, now: datetime) -> list[tuple[str, str, str, str]]:
    if not offset.exporters:
        return [("-", "nothing yet", "-", "-")]
    return [
        (
            exporter.id,
            iso(exporter.through),
            "-" if exporter.waiting is None else str(exporter.waiting),
            "-" if exporter.oldest is None else str(timedelta(seconds=_seconds(exporter.oldest, now))),
        )
        for exporter in offset.exporters
    ]


def _document(offset: TaskOffset, now: datetime) -> dict[str, Any]:
    return {
        "namespace": offset.namespace,
        "key": offset.key,
        "endFetchedDate": offset.end_fetched_date,
        "owner": offset.owner,
        "until": iso(offset.until) if offset.until else None,
        "exporters": [
            {
                "id": exporter.id,
                "shippedUpTo": iso(exporter.through),
                "waiting": exporter.waiting,
                "waitingSeconds": None if exporter.oldest is None else _seconds(exporter.oldest, now),
            }
            for exporter in offset.exporters
        ],
        "faults": list(offset.faults),
    }


def _seconds(since: datetime, now: datetime) -> int:
    return max(int((now - since).total_seconds()), 0)


def _lease(offset: TaskOffset) -> str:
    return f"{offset.owner} until {iso(offset.until)}" if offset.owner and offset.until else "free"
