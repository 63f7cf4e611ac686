"""How long to wait before the next try, and how often to try."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from waybill.clock import utc_now


@dataclass(frozen=True, slots=True)
class Patience:
    """The figures of retrying.

    Attributes:
        base, cap: of the backoff, in seconds.
        failed_tries: how often an event may be answered 5xx before it is held to be the event's own fault.
        unknown_tries: how often it may be sent without an answer before it is set aside.
        breaker: so many failures in a row, of different events, open the breaker.
        probe_after: seconds without any success after which a harmless event may be posted to learn more.
        recovery: seconds after an outage in which a 5xx says nothing about an event; None: as the preset says.
    """

    base: float = 0.2
    cap: float = 15.0
    failed_tries: int = 7
    unknown_tries: int = 3
    breaker: int = 5
    probe_after: float = 15.0
    recovery: float | None = None

    def backoff(self, tries: int) -> float:
        """Return a random pause after so many tries: full jitter under an exponential ceiling."""
        ceiling = min(self.cap, self.base * 2 ** min(tries - 1, 16))
        return random.uniform(0, ceiling)  # noqa: S311 - jitter is no secret


def seconds_to_wait(retry_after: str | None) -> float | None:
    """Read a `Retry-After` header, in seconds or as a date (RFC 9110, 10.2.3); None where it says nothing."""
    if not retry_after:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - utc_now()).total_seconds())
    except (ValueError, OverflowError):
        return None
