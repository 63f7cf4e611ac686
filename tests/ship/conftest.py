"""An emulator for the session, and a world with tables of its own for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.shipping import World
from tests.support.tables import make_tables
from tools.emulator import Emulator

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
