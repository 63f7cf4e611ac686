"""A clock that several processes read and one turns: the real one, and an offset in a file that all have mapped."""

from __future__ import annotations

import mmap
import struct
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FORMAT = struct.Struct("d")


class SharedClock:
    """The present instant of the world that is tortured."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(_FORMAT.pack(0.0))
        with path.open("r+b") as file:
            self._offset = mmap.mmap(file.fileno(), _FORMAT.size)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=_FORMAT.unpack(self._offset)[0])

    def turn(self, seconds: float) -> None:
        """Let time pass for all processes at once."""
        self._offset[:] = _FORMAT.pack(_FORMAT.unpack(self._offset)[0] + seconds)

    def turn_to(self, moment: datetime) -> None:
        """Let time pass until an instant."""
        self.turn((moment - self()).total_seconds())
