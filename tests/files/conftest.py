"""An emulator for the session, and a world with a bucket of its own for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.filing import FilingWorld
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
def world(emulator: Emulator) -> FilingWorld:
    """An empty log and an empty bucket, and a clock that stands at noon of 1 December 2026."""
    return FilingWorld(make_tables(emulator.url))
