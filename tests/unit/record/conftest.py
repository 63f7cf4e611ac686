"""The stack in memory, for every test of the recorder."""

from __future__ import annotations

from tests.support.stack_in_memory import _moto, stack, stack_of_comparison

__all__ = ["_moto", "stack", "stack_of_comparison"]
