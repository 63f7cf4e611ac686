"""`waybill schedules`: flows that run by themselves, as EventBridge rules of the stack."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from waybill.cli.ship import FlowFile, read_flow
from waybill.cli.stack import DEFAULT_STACK, Stack, StackName
from waybill.cli.tables import AsJson, show_json, show_table
from waybill.errors import WaybillError
from waybill.schedules.rules import Schedules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from waybill.schedules.rules import ScheduledFlow

app = typer.Typer(no_args_is_help=True)

Expression = Annotated[
    str | None, typer.Option("--schedule", help="EventBridge's expression, in place of the document's triggers.")
]
NOT_SHOWN = "The stack's own schedules, ShipLineage and ExportLineage, are not shown: its parameters set them."

FlowName = Annotated[str, typer.Argument(metavar="NAMESPACE/ID", help="The flow, as `list` shows it.")]


class NotScheduled(WaybillError):
    """No rule runs the flow."""


@app.command()
def add(flow: FlowFile, schedule: Expression = None, stack: StackName = DEFAULT_STACK) -> None:
    """Run a flow by its triggers from now on; a flow that is there already is replaced."""
    _show(Schedules(Stack(stack)).add(read_flow(flow), schedule))


@app.command(name="list")
def list_(*, as_json: AsJson = False, stack: StackName = DEFAULT_STACK) -> None:
    """Show the flows that were added; the stack's own two schedules are set by its parameters."""
    rules = Schedules(Stack(stack)).all()
    if as_json:
        show_json([asdict(rule) for rule in rules])
        return
    _show(rules)
    typer.echo(NOT_SHOWN)


@app.command()
def remove(flow: FlowName, stack: StackName = DEFAULT_STACK) -> None:
    """Run a flow no more; its position stays."""
    removed = Schedules(Stack(stack)).remove(flow)
    if not removed:
        raise NotScheduled(f"no rule of stack {stack} runs {flow}; `waybill schedules list` shows those there are")
    for rule in removed:
        typer.echo(f"{flow}: {rule.trigger} runs no more")


def _show(rules: Sequence[ScheduledFlow]) -> None:
    columns = ("flow", "trigger", "when (UTC)", "", "function", "document", "rule")
    show_table(columns, [_row(rule) for rule in rules], "No flow was added.")


def _row(rule: ScheduledFlow) -> tuple[str, ...]:
    state = "on" if rule.enabled else "off"
    return rule.flow, rule.trigger, rule.expression, state, rule.function, rule.document, rule.name
