"""Tells an event's own fault from an outage.

Some backends answer both with the same page (`openlineage.md` 3.1), so one event's failures say nothing by themselves:
it counts whether the backend took other events meanwhile.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    Clock = Callable[[], float]

_NEVER = float("-inf")


class Health:
    """What is known of a destination within a run. Times are seconds of one monotonic clock.

    Args:
        recovery: for so long after a sign of an outage, failures say nothing about an event.
        clock: tells the time.
    """

    def __init__(self, recovery: float, clock: Clock = time.monotonic) -> None:
        self._recovery = recovery
        self._clock = clock
        self._failing: dict[Hashable, float] = {}
        self._latest_success = _NEVER
        self._last_sign = _NEVER
        self._troubled_since: float | None = None
        self.failures_in_a_row = 0

    @property
    def failing(self) -> int:
        """How many events have failed and are not settled."""
        return len(self._failing)

    def succeeded(self, began: float) -> None:
        """Note that the destination took something whose post began then."""
        self._latest_success = max(self._latest_success, began)
        self.failures_in_a_row = 0
        self._troubled_since = None

    def troubled(self) -> None:
        """Note that the destination did not take something, for whatever reason."""
        if self._troubled_since is None:
            self._troubled_since = self._clock()

    def failed(self, event: Hashable, first_began: float) -> None:
        """Note that a post of an event failed; its first one began then."""
        self.troubled()
        self._failing.setdefault(event, first_began)
        self.failures_in_a_row += 1
        if len(self._failing) > 1 and not self.took_others_meanwhile():
            self.sign_of_outage()

    def settled(self, event: Hashable) -> None:
        """Forget an event whose outcome is known."""
        self._failing.pop(event, None)

    def sign_of_outage(self) -> None:
        """Note that more is wrong than one event."""
        self._last_sign = self._clock()

    def took_others_after(self, moment: float) -> bool:
        """Whether the destination took something that was posted after a moment."""
        return self._latest_success > moment

    def took_others_meanwhile(self) -> bool:
        """Whether the destination took something that was posted after all that fail now had begun."""
        return bool(self._failing) and self._latest_success > max(self._failing.values())

    def calm_in(self) -> float:
        """Return in how many seconds the last sign of an outage will be too old to matter; 0 when it is."""
        return max(0.0, self._last_sign + self._recovery - self._clock())

    def troubled_for(self) -> float:
        """Return for how many seconds nothing has succeeded since the first trouble."""
        return 0.0 if self._troubled_since is None else self._clock() - self._troubled_since
