"""The real template, built and deployed with `--config-env local` to an emulator of this session's own.

The emulator checks every call of a function against the policies of its role, so that all of these tests prove that
each function has the permissions it needs. Tests share the stack: each works under flow and asset ids of its own. One
that needs an empty stack or other parameters starts its own with `Emulator` and `deploy`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools.emulator import Emulator
from tools.stack import Stack, deploy

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def emulator() -> Iterator[Emulator]:
    """An emulator on a free port that enforces IAM, gone with the session."""
    with Emulator(enforce_iam=True) as running:
        yield running


@pytest.fixture(scope="session")
def stack(emulator: Emulator) -> Stack:
    """The deployed stack, its resources by logical id."""
    return deploy(emulator)
