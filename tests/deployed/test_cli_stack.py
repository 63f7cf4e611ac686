"""Commands find a deployed stack by its name, and the stack's parts by their logical ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from waybill.cli.stack import FunctionFailed, StackNotFound
from waybill.cli.stack import Stack as FoundStack
from waybill.settings import read_settings
from waybill.store import aws

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.emulator import Emulator
    from tools.stack import Stack


@pytest.fixture(autouse=True)
def _clients_of_the_emulator(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in emulator.environment.items():
        monkeypatch.setenv(name, value)
    aws.client.cache_clear()
    aws.single_try_client.cache_clear()
    yield
    aws.client.cache_clear()
    aws.single_try_client.cache_clear()


def test_each_part_is_found_by_its_logical_id(stack: Stack) -> None:
    found = FoundStack(stack.name)

    assert found.resources == stack.names
    assert found.outputs == stack.outputs


def test_commands_have_the_settings_that_the_functions_have(stack: Stack) -> None:
    name = stack.names["ShipperFunction"]
    environment = stack.client("lambda").get_function_configuration(FunctionName=name)["Environment"]["Variables"]

    assert FoundStack(stack.name).settings == read_settings(environment)


def test_a_stack_that_is_not_there_is_said_to_be_missing(stack: Stack) -> None:
    found = FoundStack(f"{stack.name}-of-others")

    with pytest.raises(StackNotFound, match=r"there is no stack waybill-of-others here; deploy it, or name it with"):
        _ = found.resources
    with pytest.raises(StackNotFound, match=r"there is no stack waybill-of-others here; deploy it, or name it with"):
        _ = found.outputs


def test_what_a_function_refuses_is_told_with_every_fault(stack: Stack) -> None:
    with pytest.raises(FunctionFailed) as caught:
        FoundStack(stack.name).invoke("ShipperFunction", {"id": "ship", "namespace": "company.platform"})

    # The emulator names every error type Runtime.HandlerError, so the type is not looked at here.
    assert str(caught.value).splitlines()[1:] == ["tasks: is required"]
