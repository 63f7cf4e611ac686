"""The command line finds its commands, says what each is for, and turns errors into lines."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from waybill import __version__, cli
from waybill.cli.stack import DEFAULT_STACK, Stack, StackNotFound
from waybill.errors import InvalidReport

if TYPE_CHECKING:
    from collections.abc import Callable

run = CliRunner().invoke


@pytest.fixture
def ship_does(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Put a function in the place of `waybill ship`."""

    def put(function: Callable[[], None]) -> None:
        app = typer.Typer()
        app.command()(function)
        monkeypatch.setattr(cli, "load", lambda _: typer.main.get_command(app))

    return put


def test_it_says_its_version() -> None:
    assert run(cli.app, ["--version"]).output == f"waybill {__version__}\n"


def test_help_lists_each_command_with_what_it_is_for() -> None:
    output = run(cli.app, ["--help"], terminal_width=200).output

    assert [name for name in cli.COMMANDS if name not in output] == []
    assert "Run a flow document now." in output


def test_help_imports_no_command_and_nothing_heavy() -> None:
    code = """
        import sys
        from typer.testing import CliRunner
        from waybill import cli
        CliRunner().invoke(cli.app, ["--help"])
        heavy = ("boto3", "httpx", "pydantic")
        print([name for name in sys.modules if name.startswith("waybill.cli.") or name in heavy])
    """
    result = subprocess.run([sys.executable, "-c", dedent(code)], check=True, capture_output=True, text=True)

    assert result.stdout == "[]\n"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_is_there_and_says_how_it_is_used(name: str) -> None:
    result = run(cli.app, [name, "--help"], prog_name="waybill")

    assert result.exit_code == 0
    assert f"waybill {name}" in result.output


def test_a_command_that_does_not_exist_is_refused_with_the_nearest_one() -> None:
    result = run(cli.app, ["shp"])

    assert result.exit_code == 2
    assert "Did you mean 'ship'?" in result.output


def test_an_error_of_ours_is_one_line_per_fault_and_exit_code_1(
    ship_does: Callable[[Callable[[], None]], None],
) -> None:
    def fail() -> None:
        raise InvalidReport(["taskRunId: is required", "state: must be 'SUCCESS'"])

    ship_does(fail)
    result = run(cli.app, ["ship"])

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "taskRunId: is required\nstate: must be 'SUCCESS'\n"


def test_an_error_of_aws_is_a_line_and_exit_code_1(ship_does: Callable[[Callable[[], None]], None]) -> None:
    def fail() -> None:
        from botocore.exceptions import NoRegionError

        raise NoRegionError

    ship_does(fail)
    result = run(cli.app, ["ship"])

    assert (result.exit_code, result.stderr) == (1, "AWS: You must specify a region.\n")


def test_a_fault_of_ours_is_not_hidden(ship_does: Callable[[Callable[[], None]], None]) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    ship_does(fail)

    assert isinstance(run(cli.app, ["ship"]).exception, ZeroDivisionError)


def test_a_resource_that_a_stack_does_not_have_is_named() -> None:
    stack = Stack(DEFAULT_STACK)
    stack.resources = {"Topic": "arn"}

    with pytest.raises(StackNotFound, match="stack waybill has no LineageTable; is it a stack of Waybill"):
        stack.physical_id("LineageTable")


def test_the_settings_are_those_that_the_functions_have() -> None:
    stack = Stack("tenant")
    stack.resources = {name: f"tenant-{name}" for name in ("LineageTable", "CatalogTable", "KeyValueTable")}
    stack.resources |= {"LineageBucket": "tenant-bucket", "LineageBus": "tenant-bus"}
    stack.parameters = {"SettleSeconds": "2", "LineageRetentionDays": "90", "OffsetStore": "SSM", "Stage": "dev"}
    settings = stack.settings

    assert (settings.lineage_table, settings.lineage_bucket, settings.lineage_bus, settings.stack_name) == (
        "tenant-LineageTable",
        "tenant-bucket",
        "tenant-bus",
        "tenant",
    )
    assert (settings.settle_seconds, settings.retention_days, settings.offset_store) == (2.0, 90, "SSM")
