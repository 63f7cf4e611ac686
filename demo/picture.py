"""What the demo shows in the terminal: its steps while they work, a table of the counts, the lineage as a tree."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from demo.lineage import Lineage

BAD_STATES = {"FAILED": "red", "KILLED": "red", "CANCELLED": "red", "WARNING": "yellow"}


class Steps:
    """The steps of a piece of work: a spinner for the one that works, a line for each that ended.

    Attributes:
        seconds: how long each step took.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str, doing: str) -> Iterator[Callable[[str], None]]:
        """Show a step; what is called with a text shows how far it is."""
        start, note = time.monotonic(), doing

        def say(text: str) -> None:
            nonlocal note
            note = text
            status.update(escape(text))

        with self._console.status(escape(doing)) as status:
            try:
                yield say
            except BaseException:
                self._console.print(f"[red]✗[/] {name:8} {escape(note)}")
                raise
            finally:
                self.seconds[name] = round(time.monotonic() - start, 3)
        self._console.print(f"[green]✓[/] {name:8} {escape(note)} [dim]{self.seconds[name]:.1f} s[/]")


def counts_table(rows: Sequence[tuple[str, int, str]]) -> Table:
    """Draw what was counted: what it is, how many, where they are."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right", style="cyan")
    table.add_column(overflow="fold")
    for what, count, where in rows:
        table.add_row(what, str(count), escape(where))
    return table


def lineage_tree(lineage: Lineage) -> Tree:
    """Draw each product with what it is made of beneath it; what has been drawn already is not drawn again."""
    tree = Tree("[bold]lineage[/] [dim](each asset above what it is made of)[/]", guide_style="dim")
    drawn: set[str] = set()

    def grow(branch: Tree, asset: str) -> None:
        node = lineage.nodes[asset]
        again = asset in drawn and bool(node.upstream)
        child = branch.add(_label(lineage, asset) + (" [dim]… as above[/]" if again else ""))
        if not again:
            drawn.add(asset)
            for upstream in node.upstream:
                grow(child, upstream)

    for root in (*lineage.products, *lineage.nodes):  # what feeds only itself is no product, yet is there
        if root not in drawn:
            grow(tree, root)
    return tree


def _label(lineage: Lineage, asset: str) -> str:
    node = lineage.nodes[asset]
    if node.job is None:
        return f"[green]{escape(asset)}[/]"
    color = BAD_STATES.get(node.state or "")
    ended = f" [{color}]{node.state}[/]" if color else ""
    return f"[bold]{escape(asset)}[/] [dim]{escape(node.job)}[/]{ended}"
