"""The stack in memory, for properties of what is stored."""

from __future__ import annotations

from tests.support.stack_in_memory import _moto, module_stack

__all__ = ["_moto", "module_stack"]
