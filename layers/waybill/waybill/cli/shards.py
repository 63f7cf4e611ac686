"""`waybill shards`: shows and changes how many shards the log has."""

from __future__ import annotations

from typing import Annotated

import typer

from waybill.cli.stack import DEFAULT_STACK, Stack, StackName
from waybill.store.shards import MOST_SHARDS, Shards

app = typer.Typer()

Number = Annotated[
    int | None, typer.Argument(min=1, max=MOST_SHARDS, help="How many there are to be, from two hour borders ahead on.")
]


@app.command()
def shards(number: Number = None, stack: StackName = DEFAULT_STACK) -> None:
    """Show the number of shards hour by hour; with a number, announce it for two hour borders ahead."""
    deployed = Stack(stack)
    settings = deployed.settings
    log = Shards(deployed.client("dynamodb"), settings.lineage_table, settings.log_shards)
    if number is not None:
        log.announce(number)
    for generation in log.generations():
        typer.echo(
            f"{generation.shards} shards from {generation.start if generation.start > '0000' else 'the first hour'}"
        )
