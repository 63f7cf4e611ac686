"""The stack in memory, and its catalog API, for every test of the catalog."""

from __future__ import annotations

import pytest

from tests.support.catalog_client import ANALYST, CatalogClient
from tests.support.stack_in_memory import StackInMemory, _moto, stack, stack_of_comparison

__all__ = ["_moto", "stack", "stack_of_comparison"]


@pytest.fixture
def api(stack: StackInMemory) -> CatalogClient:
    """The API, asked by an engineer."""
    return CatalogClient(stack.settings)


@pytest.fixture
def analyst(stack: StackInMemory) -> CatalogClient:
    """The same API, asked by somebody else."""
    return CatalogClient(stack.settings, ANALYST)
