"""What lies beside the project, where it does; a test that needs it says so where it is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools.emulator import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SHARED = ROOT.parent / "shared"


def shared(path: str) -> Path:
    """Return a file of the shared folder, or skip the test and name the file."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"needs ../shared/{path}")
    return found
