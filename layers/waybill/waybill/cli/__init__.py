"""The command line: `waybill <command>`, one module per group of commands.

A command's module is imported when the command runs, so that help and completion stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from waybill import __version__
from waybill.errors import WaybillError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "record": "Hand in task run reports.",
    "ship": "Run a flow document now.",
    "offsets": "Show and reset how far each task has shipped.",
    "shards": "Show and change how many shards the log has.",
    "dead-letters": "Look at events that a backend refused, send them again or drop them.",
    "doctor": "Check that an OpenLineage backend would take what is shipped.",
    "failures": "Look at what failed for good, and try it again.",
    "schedules": "Run flows by themselves, as EventBridge rules.",
    "files": "List and check the files that a file exporter wrote.",
}
"""Each command and what it is for; its module is of the same name and holds a `typer.Typer` named `app`."""

ROOT_ALONE = ("install_completion", "show_completion")


class LazyCommands(TyperGroup):
    """The commands by name; those that run are imported, the others are but their line of help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, purpose in COMMANDS.items():
            self.add_command(TyperCommand(name, help=purpose))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command that `args` names, and import it."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, load(args[0]), rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error of ours or of AWS becomes lines on standard error and exit code 1."""
        try:
            return super().invoke(ctx)
        except WaybillError as error:
            raise _exit(str(error).splitlines()) from error
        except _errors_of_aws() as error:
            raise _exit([f"AWS: {error}"]) from error


def load(name: str) -> Any:
    """Import a command."""
    module = import_module(f"waybill.cli.{name.replace('-', '_')}")
    command = typer.main.get_command(module.app)
    command.params = [each for each in command.params if each.name not in ROOT_ALONE]
    command.name = name
    command.help = command.help or COMMANDS[name]
    return command


def _errors_of_aws() -> tuple[type[Exception], ...]:
    from botocore.exceptions import BotoCoreError, ClientError

    return BotoCoreError, ClientError


def _exit(lines: Sequence[str]) -> typer.Exit:
    for line in lines:
        typer.secho(line, err=True, fg=typer.colors.RED)
    return typer.Exit(1)


def _version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"waybill {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=LazyCommands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_show_locals=False,
)


Version = Annotated[
    bool,
    typer.Option("--version", is_eager=True, callback=lambda value: _version(wanted=value), help="Say which version."),
]


@app.callback()
def waybill(*, version: Version = False) -> None:
    """Record which data jobs read and write, and ship the lineage."""
