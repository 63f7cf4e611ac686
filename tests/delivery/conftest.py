"""Stacks in memory, for what delivery leaves there."""

from __future__ import annotations

from tests.support.stack_in_memory import _moto, stack

__all__ = ["_moto", "stack"]
