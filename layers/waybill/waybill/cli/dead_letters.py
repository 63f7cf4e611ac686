"""`waybill dead-letters`: looks at events that a backend would not take, sends them again or drops them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated

import typer

from waybill.cli.ship import FlowFile, read_flow
from waybill.cli.stack import DEFAULT_STACK, Stack, StackName
from waybill.cli.tables import shortened, show_table
from waybill.errors import InvalidRequest
from waybill.model.flow import parse_flow
from waybill.store.dead_letters import DeadLetters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from waybill.store.dead_letters import DeadLetter

app = typer.Typer(no_args_is_help=True)

Events = Annotated[list[str], typer.Argument(help="Event keys, as `list` shows them, or `all`.")]
Event = Annotated[str, typer.Argument(help="The event key, as `list` shows it.")]
Exporter = Annotated[str | None, typer.Option("--exporter", help="Only letters of this exporter.")]
EVERY = "all"


@app.command(name="list")
def list_(
    *,
    exporter: Exporter = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
    stack: StackName = DEFAULT_STACK,
) -> None:
    """List the dead letters: which event, where to, since when, why."""
    letters = _chosen(_store(stack), [EVERY], exporter)
    if as_json:
        for letter in letters:
            said = letter.as_json()
            typer.echo(json.dumps({name: said[name] for name in said if name not in ("event", "runEvents")}))
        return
    rows = [
        (letter.event_key, letter.exporter_id, letter.job, letter.last, str(letter.attempts), shortened(letter.reason))
        for letter in letters
    ]
    show_table(("event", "exporter", "job", "since", "tries", "reason"), rows, "There are no dead letters.")


@app.command()
def show(event: Event, exporter: Exporter = None, stack: StackName = DEFAULT_STACK) -> None:
    """Show dead letters whole: the reason, the backend's answer, the event, and what was to be sent."""
    store = _store(stack)
    for letter in _chosen(store, [event], exporter):
        typer.echo(json.dumps((store.whole(letter) or letter).as_json(), indent=2))


@app.command()
def replay(events: Events, flow: FlowFile, exporter: Exporter = None, stack: StackName = DEFAULT_STACK) -> None:
    """Send dead letters again from here, with their assets as they are now; what is delivered is dropped."""
    from waybill.export.openlineage.replay import Replay
    from waybill.store.aws import client
    from waybill.store.catalog import AssetStore

    settings = Stack(stack).settings
    store = DeadLetters.of(settings)
    chosen = _chosen(store, events, exporter)
    document = parse_flow(read_flow(flow))
    sending = Replay(document, store, AssetStore(client("dynamodb"), settings.catalog_table))

    async def run() -> int:
        kept = 0
        async for replayed in sending.send(chosen):
            kept += not replayed.delivered
            typer.echo(f"{replayed.letter.event_key} {replayed.letter.exporter_id}: {replayed.text}")
        return kept

    if asyncio.run(run()):
        raise typer.Exit(1)


@app.command()
def drop(events: Events, exporter: Exporter = None, stack: StackName = DEFAULT_STACK) -> None:
    """Forget dead letters."""
    store = _store(stack)
    for letter in _chosen(store, events, exporter):
        store.drop(letter)
        typer.echo(f"{letter.event_key} {letter.exporter_id}: dropped")


def _store(stack: str) -> DeadLetters:
    return DeadLetters.of(Stack(stack).settings)


def _chosen(store: DeadLetters, events: Sequence[str], exporter: str | None) -> list[DeadLetter]:
    """Return the letters that are named, without their events.

    Raises:
        InvalidRequest: one of them does not exist.
    """
    letters = [letter for letter in store.all() if exporter in (None, letter.exporter_id)]
    if EVERY in events:
        return letters
    missing = [event for event in events if event not in [letter.event_key for letter in letters]]
    if missing:
        raise InvalidRequest(
            [f"{event}: is no dead letter; `waybill dead-letters list` shows them" for event in missing]
        )
    return [letter for letter in letters if letter.event_key in events]
