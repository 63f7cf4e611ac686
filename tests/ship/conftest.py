"""An emulator for the session, and a world with tables of its own for each test."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.shipping import World
from tests.support.tables import aws_client, make_tables
from tools.emulator import Emulator
from waybill.store.offsets import ParameterOffsets

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def emulator() -> Iterator[Emulator]:
    """An emulator on a free port, gone with the session."""
    with Emulator() as running:
        yield running


@pytest.fixture
def world(emulator: Emulator) -> World:
    """Empty tables, and a clock that stands at noon."""
    return World(make_tables(emulator.url))


@pytest.fixture
def parameters(world: World) -> Any:
    """The offsets of the world's tasks in Parameter Store."""
    ssm = aws_client(world.tables.url, "ssm")
    world.offsets = ParameterOffsets(ssm, f"stack-{uuid.uuid4().hex[:8]}")
    return ssm
