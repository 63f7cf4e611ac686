"""Carries one event to the backend until its outcome is known: posts again, waits, and knows when to stop."""

from __future__ import annotations

import asyncio
import time
from enum import Enum, auto
from typing import TYPE_CHECKING

from waybill.errors import ExporterStopped, OutOfTime
from waybill.export.openlineage.breaker import Breaker
from waybill.export.openlineage.case import Case, Refusal, explained
from waybill.export.openlineage.health import Health
from waybill.export.openlineage.outcomes import Verdict, judge
from waybill.export.openlineage.patience import seconds_to_wait

if TYPE_CHECKING:
    from collections import Counter

    from waybill.export.openlineage.backends import Backend
    from waybill.export.openlineage.mapping import RunEvent
    from waybill.export.openlineage.outcomes import Answer, Judgement
    from waybill.export.openlineage.patience import Patience
    from waybill.export.openlineage.probe import Probe
    from waybill.export.openlineage.sender import Sender
    from waybill.export.ports import Deadline

_LONGEST_NAP = 0.25
_OVER = "the run's time is over"
_TOO_LONG = "that is longer than giveUp"


class _Next(Enum):
    AGAIN = auto()
    TAKEN = auto()


class Courier:
    """Carries the events of one exporter, several at the same time.

    Args:
        sender: posts an event once.
        probe: finds out whether the backend is well.
        backend: its preset.
        give_up: seconds without any success after which the exporter stops.
        deadline: of the run.
        counts: its `retried` is counted up.
        patience: the figures of retrying.
    """

    def __init__(
        self,
        sender: Sender,
        probe: Probe,
        backend: Backend,
        give_up: float,
        deadline: Deadline,
        counts: Counter[str],
        patience: Patience,
    ) -> None:
        self._sender = sender
        self._probe = probe
        self._rules = backend.outcomes
        self._give_up = give_up
        self._deadline = deadline
        self._counts = counts
        self._patience = patience
        self._health = Health(backend.recovery if patience.recovery is None else patience.recovery)
        self.breaker = Breaker()
        self._probing = asyncio.Lock()
        self._trouble = ""
        self._stopped: str | None = None
        self._stopping = asyncio.Event()

    async def carry(self, event: RunEvent) -> Refusal | None:
        """Post an event until it is taken (None) or refused for good.

        Raises:
            ExporterStopped: the backend takes nothing.
            OutOfTime: the run's time is over.
        """
        case: Case | None = None
        while True:
            began, answer = await self._post(event)
            judgement = judge(answer, self._rules)
            if judgement.verdict is Verdict.DONE:
                self._succeeded(event, began)
                return None
            case = case or Case(began)
            case.attempts += 1
            ending = await self._troubled(event, case, answer, judgement)
            if isinstance(ending, Refusal):
                self._health.settled(event.id)
                return ending
            if ending is _Next.TAKEN:
                self._succeeded(event, began)
                return None
            self._counts["retried"] += 1

    def stop(self, reason: str) -> ExporterStopped:
        """End the exporter: nothing is posted from now on, and whoever waits stops waiting."""
        self._stopped = self._stopped or reason
        self._stopping.set()
        return ExporterStopped(self._stopped)

    def check(self) -> None:
        """See whether there is any use in going on.

        Raises:
            ExporterStopped: the exporter has been ended.
            OutOfTime: the run's time is over.
        """
        if self._stopped is not None:
            raise ExporterStopped(self._stopped)
        if self._deadline.remaining() <= 0:
            raise OutOfTime(_OVER)

    async def _post(self, event: RunEvent) -> tuple[float, Answer]:
        trial = not self.breaker.lets_pass and await self._admitted()
        try:
            self.check()
            return time.monotonic(), await self._sender.post(event)
        except OutOfTime:
            raise
        except ExporterStopped as error:
            raise self.stop(str(error)) from error
        finally:
            if trial:
                self.breaker.tried()

    async def _admitted(self) -> bool:
        """Wait while the breaker holds events back; return whether this one is to try."""
        while (pause := self.breaker.wait()) is not None:
            await self._nap(pause)
        return self.breaker.is_open

    def _succeeded(self, event: RunEvent, began: float) -> None:
        self._health.succeeded(began)
        self._health.settled(event.id)
        self.breaker.close()

    async def _troubled(self, event: RunEvent, case: Case, answer: Answer, judgement: Judgement) -> Refusal | _Next:
        """Do what an answer other than success asks for."""
        verdict = judgement.verdict
        self._trouble = explained(answer, judgement)
        if verdict in (Verdict.REFUSED, Verdict.TOO_BIG):
            return case.refused(self._trouble, judgement, answer)
        if verdict is Verdict.AUTH and await self._renewed(answer):
            return _Next.AGAIN
        if verdict in (Verdict.AUTH, Verdict.MISROUTED):
            raise self.stop(self._trouble)
        if verdict is Verdict.WAIT:
            await self._wait(case, answer)
            return _Next.AGAIN
        if verdict is Verdict.UNKNOWN and await self._probe.holds(event):
            return _Next.TAKEN
        return await self._failed(event, case, answer, judgement)

    async def _renewed(self, answer: Answer) -> bool:
        """Get new credentials, once."""
        try:
            return await self._sender.renew(answer.credentials)
        except ExporterStopped as error:
            raise self.stop(str(error)) from error

    async def _wait(self, case: Case, answer: Answer) -> None:
        """Hold everything back for as long as the backend asks, and the event for a growing pause at least."""
        self._health.troubled()
        asked = seconds_to_wait(answer.retry_after)
        if asked is not None and asked > self._give_up:
            raise self.stop(f"{self._trouble}, for {asked:.0f} s; {_TOO_LONG}")
        pause = max(asked or 0.0, self._patience.backoff(case.attempts))
        self.breaker.hold(pause if asked is None else asked)
        await self._pause(pause)

    async def _failed(self, event: RunEvent, case: Case, answer: Answer, judgement: Judgement) -> Refusal | _Next:
        """Set an event aside when it is its own fault; else wait until it is worth posting it again.

        A kept connection that broke says nothing of the backend, which may have closed it: it is posted again at once.
        """
        patience, health = self._patience, self._health
        unknown = judgement.verdict is Verdict.UNKNOWN
        if answer.stale and not case.unknown:
            case.broke()
            return _Next.AGAIN
        case.unknown += unknown
        case.failures += not unknown and not answer.never_sent
        previous, case.failed_at = case.failed_at, time.monotonic()
        health.troubled()
        if answer.never_sent:
            health.sign_of_outage()
        enough = case.unknown >= patience.unknown_tries or case.failures >= patience.failed_tries
        if not enough:
            health.failed(event.id, case.began)
        elif await self._own_fault(previous):
            return case.set_aside(judgement, answer)
        if health.failures_in_a_row >= patience.breaker and health.failing > 1:
            self.breaker.open(patience.backoff(health.failures_in_a_row - patience.breaker + 2))
        await self._pause(max(await self._asked(answer), patience.backoff(case.attempts)))
        if enough or case.failures >= patience.failed_tries - 1:
            await self._ask(case)
        return _Next.AGAIN

    async def _asked(self, answer: Answer) -> float:
        """Return for how long one event is to wait; a long time only while nothing else gets through."""
        asked, longest = seconds_to_wait(answer.retry_after) or 0.0, self._patience.cap
        if asked <= longest or self._health.took_others_meanwhile():
            return min(asked, longest)
        fits = asked <= self._give_up and asked < self._deadline.remaining()
        if not fits and await self._well(time.monotonic(), thoroughly=True):
            return longest
        if asked > self._give_up:
            raise self.stop(f"{self._trouble}, for {asked:.0f} s; {_TOO_LONG}")
        return asked

    async def _own_fault(self, previous_failure: float) -> bool:
        """Whether the backend took others while it did not take this one."""
        if self._health.calm_in():
            return False
        if self._health.took_others_after(previous_failure):
            return True
        return self._health.took_others_meanwhile() and await self._probe.well() is not False

    async def _ask(self, case: Case) -> None:
        """Ask the backend whether it is well, before the try that decides about an event.

        An event that may be there already is not posted again before the backend is known to be well.
        """
        pauses, health = case.attempts, self._health
        while health.calm_in() or not await self._well(
            case.failed_at, thoroughly=health.troubled_for() >= self._patience.probe_after
        ):
            if case.unknown < self._patience.unknown_tries:
                return
            pauses += 1
            await self._pause(health.calm_in() or self._patience.backoff(pauses))

    async def _well(self, since: float, *, thoroughly: bool = False) -> bool:
        """Find out whether the backend has been well since a moment; asked once for all who want to know."""
        async with self._probing:
            self.check()
            if self._health.took_others_after(since):
                return True
            began = time.monotonic()
            well = await self._probe.well(thoroughly=thoroughly)
            if well:
                self._health.succeeded(began)
                self.breaker.close()
            elif well is not None:
                self._health.sign_of_outage()
            return bool(well)

    async def _pause(self, seconds: float) -> None:
        if seconds >= self._deadline.remaining():
            raise OutOfTime(_OVER)
        end = time.monotonic() + seconds
        await self._nap(seconds)
        while (left := end - time.monotonic()) > 0:
            await self._nap(left)

    async def _nap(self, seconds: float) -> None:
        """Sleep a little; stop the exporter when nothing has got through for too long."""
        self.check()
        patience_left = self._give_up - self._health.troubled_for()
        if patience_left <= 0 and not await self._well(time.monotonic(), thoroughly=True):
            raise self.stop(f"{self._trouble}; nothing got through for {self._give_up:g} s, the next run tries again")
        nap = min(seconds, _LONGEST_NAP, max(patience_left, 0.0), self._deadline.remaining())
        try:
            await asyncio.wait_for(self._stopping.wait(), nap + 0.001)
        except TimeoutError:
            return
