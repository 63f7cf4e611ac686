"""An event that was not taken at once: what has happened to it, and how it ended."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.clock import iso, utc_now

if TYPE_CHECKING:
    from waybill.export.openlineage.outcomes import Answer, Judgement, Verdict

_ANSWER_KEPT = 1024


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an event will not be taken, with what its dead letter keeps.

    Attributes:
        reason: in a sentence.
        verdict: refused, too big, or what its last try ended with.
        status: the last HTTP status, or None.
        answer: the first KB of the body that came back.
        attempts: how often it was posted.
        first: when it was posted first.
        last: when it was posted last.
    """

    reason: str
    verdict: Verdict
    status: int | None
    answer: str
    attempts: int
    first: str
    last: str


class Case:
    """An event on its way that was not taken at once.

    Attributes:
        began: when its first post began; times are of the monotonic clock.
        attempts: how often it was posted.
        failures: how often it was not taken.
        unknown: how often nobody knows whether it was.
        failed_at: when that happened last.
    """

    __slots__ = ("attempts", "began", "failed_at", "failures", "first", "unknown")

    def __init__(self, began: float) -> None:
        self.began = began
        self.first = iso(utc_now())
        self.attempts = 0
        self.failures = 0
        self.unknown = 0
        self.failed_at = began

    def broke(self) -> None:
        """Note a try of which nobody knows whether it came to anything."""
        self.unknown += 1
        self.failed_at = time.monotonic()

    def refused(self, reason: str, judgement: Judgement, answer: Answer) -> Refusal:
        """Say how it ended."""
        text = answer.body[:_ANSWER_KEPT].decode(errors="replace")
        return Refusal(reason, judgement.verdict, answer.status, text, self.attempts, self.first, iso(utc_now()))

    def set_aside(self, judgement: Judgement, answer: Answer) -> Refusal:
        """Say that it was not taken while the backend was well."""
        times = f"in {self.attempts} tries while the backend was well"
        if self.unknown:
            reason = f"outcome unknown: no whole answer {times}; the last: {answer}"
        else:
            reason = f"{answer} {times}"
        return self.refused(reason, judgement, answer)


def explained(answer: Answer, judgement: Judgement) -> str:
    """Say what came back and what that means."""
    location = f" to {answer.location}" if answer.location else ""
    return judgement.why if answer.fault else f"{answer}{location}: {judgement.why}"
