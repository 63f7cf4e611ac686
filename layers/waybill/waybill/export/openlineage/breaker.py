"""Holds events back while a destination is in trouble: one at a time tries until one gets through."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill.export.openlineage.health import Clock

_UNTIL_TRIED = 0.05


class Breaker:
    """Closed, everything passes. Open, one event at a time passes, each after a longer pause."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._until = float("-inf")
        self._trying = False
        self.is_open = False
        self.times_opened = 0

    @property
    def lets_pass(self) -> bool:
        """Whether nothing is held back."""
        return not self.is_open and self._until <= self._clock()

    def open(self, pause: float) -> None:
        """Hold everything back, and let one event try after a pause."""
        self.times_opened += not self.is_open
        self.is_open = True
        self.hold(pause)

    def hold(self, pause: float) -> None:
        """Let nothing pass for a while."""
        self._until = max(self._until, self._clock() + pause)

    def close(self) -> None:
        """Let everything pass."""
        if self.is_open:
            self.is_open = False
            self._until = float("-inf")

    def wait(self) -> float | None:
        """Return the seconds after which to ask again, or None to a caller that may pass.

        Who passes while the breaker is open is the one that tries, and must call `tried`.
        """
        pause = self._until - self._clock()
        if pause > 0:
            return pause
        if not self.is_open:
            return None
        if self._trying:
            return _UNTIL_TRIED
        self._trying = True
        return None

    def tried(self) -> None:
        """The event that tried has its answer."""
        self._trying = False
