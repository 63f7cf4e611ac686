"""What commands list: a table in which nothing is cut, for its names are what the next command is given; or JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

AsJson = Annotated[bool, typer.Option("--json", help="Print the list as JSON.")]

_SHOWN = 80
_UNBOUNDED = 10_000
"""Columns of a line that nobody looks at in a terminal; each cell of a table stays on one line."""


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> None:
    """Print a table, or a sentence when it has no rows. In a terminal long names go on in the next line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        typer.echo(nothing)
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=_UNBOUNDED)
    table = Table()
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def shortened(text: str) -> str:
    """Return the start of a text that is for reading alone."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def show_json(document: Any) -> None:
    """Print a list as JSON."""
    typer.echo(json.dumps(document, indent=2))
