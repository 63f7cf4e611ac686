"""Backends, real and by measure, and stacks in memory to ship from."""

from __future__ import annotations

from tests.support.data_rentgen import data_rentgen
from tests.support.stack_in_memory import _moto, stack

__all__ = ["_moto", "data_rentgen", "stack"]
