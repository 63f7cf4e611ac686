"""The exporter that sends lineage to an OpenLineage backend."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import orjson
from botocore.exceptions import BotoCoreError, ClientError

from waybill.clock import iso, utc_now
from waybill.errors import ExporterStopped
from waybill.export.openlineage.case import Refusal
from waybill.export.openlineage.courier import Courier
from waybill.export.openlineage.mapping import CannotBeSent, Mapper, RunEvent
from waybill.export.openlineage.outcomes import Verdict
from waybill.export.openlineage.patience import Patience
from waybill.export.openlineage.probe import Probe
from waybill.export.openlineage.senders import sender_of
from waybill.export.ports import Outcome
from waybill.store.dead_letters import FAILED_LATER, DeadLetter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from waybill.export.openlineage.config import OpenLineageAssetExporter
    from waybill.export.ports import Delivery, Run

COUNTS = ("delivered", "rejected", "skipped", "retried")


class DeadLetterStore(Protocol):
    """Where events go that a backend will not take."""

    def put(self, letter: DeadLetter) -> None:
        """Keep a letter."""

    def put_once(self, letter: DeadLetter) -> bool:
        """Keep a letter unless it is or was there; return whether it was new."""
        ...


@runtime_checkable
class LaterFailures(Protocol):
    """A sender whose backend may say later that it could not process an event after all."""

    async def later_failures(self, started: datetime) -> list[tuple[str, dict[str, Any]]]:
        """Return such events by the backend's id of each."""
        ...


class OpenLineageExporter:
    """Sends each delivery as one run event, or two with `startEvents`.

    Args:
        config: where to, and how.
        run: of the task.
        dead_letters: where events go that the backend will not take.
        patience: the figures of retrying.
    """

    def __init__(
        self,
        config: OpenLineageAssetExporter,
        run: Run,
        dead_letters: DeadLetterStore,
        patience: Patience | None = None,
    ) -> None:
        self._config = config
        self._run = run
        self._dead_letters = dead_letters
        self._counts: Counter[str] = Counter()
        self._mapper = Mapper(config)
        self._sender = sender_of(config, run.deadline)
        self._courier = Courier(
            self._sender,
            Probe(config, self._sender),
            config.preset,
            config.timeout.give_up,
            run.deadline,
            self._counts,
            patience or Patience(),
        )
        self.in_flight = config.max_in_flight

    async def open(self) -> None:
        """Get ready to send.

        Raises:
            ExporterStopped: a secret or certificate cannot be had.
        """
        await self._sender.open()
        if isinstance(self._sender, LaterFailures):
            for identifier, event in await self._sender.later_failures(self._run.started):
                self._counts["failedLater"] += await asyncio.to_thread(self._report_later, identifier, event)

    async def close(self) -> None:
        """Close the connections."""
        await self._sender.close()

    async def deliver(self, delivery: Delivery) -> Outcome:
        """Send one event until its outcome is known.

        Raises:
            ExporterStopped: the backend takes nothing, an asset of a mapped type lacks its key, or with `onRejected:
                FAIL` the event was refused.
            OutOfTime: the run's time is over.
        """
        try:
            events = self._mapper.events(delivery)
        except CannotBeSent as fault:
            outcome = await self._set_aside(delivery, (), _not_sent(str(fault)))
        except ExporterStopped as fault:
            raise self._courier.stop(str(fault)) from None
        else:
            outcome = await self._carry(delivery, events) if events else Outcome.SKIPPED
        self._counts[outcome] += 1
        return outcome

    async def _carry(self, delivery: Delivery, events: Sequence[RunEvent]) -> Outcome:
        """Send the events of a delivery, each after the answer to the one before; too big ones once more, slimmed."""
        slimmed = False
        position = 0
        while position < len(events):
            refusal = await self._courier.carry(events[position])
            if refusal is None:
                position += 1
            elif refusal.verdict is Verdict.TOO_BIG and not slimmed:
                events, slimmed = self._mapper.smaller(delivery), True
            else:
                return await self._set_aside(delivery, events[position:], refusal)
        return Outcome.DELIVERED

    async def _set_aside(self, delivery: Delivery, events: Sequence[RunEvent], refusal: Refusal) -> Outcome:
        """Make a dead letter of what was not taken."""
        event = delivery.event
        if self._config.on_rejected == "FAIL":
            raise self._courier.stop(f"event {event.id} of {event.job} was refused: {refusal.reason}")
        letter = DeadLetter(
            namespace=self._run.namespace,
            state_key=self._run.state_key,
            exporter_id=self._config.id,
            event_key=delivery.key,
            job=event.job,
            reason=refusal.reason,
            kind=refusal.verdict.value,
            status=refusal.status,
            answer=refusal.answer,
            attempts=refusal.attempts,
            first=refusal.first,
            last=refusal.last,
            event=event.as_json(),
            run_events=[orjson.loads(event.body) for event in events],
        )
        try:
            await asyncio.to_thread(self._dead_letters.put, letter)
        except (BotoCoreError, ClientError) as error:
            raise self._courier.stop(f"a dead letter could not be kept: {error}") from error
        return Outcome.REJECTED

    async def resend(self, letter: DeadLetter) -> Outcome:
        """Send what a letter holds as it is; the letter stays as it was when it is refused again.

        Raises:
            ExporterStopped, OutOfTime: as `deliver`.
        """
        for number, said in enumerate(letter.run_events):
            body = orjson.dumps(said)
            event = RunEvent(f"{letter.event_key}-{number}", said["eventType"], said["run"]["runId"], body)
            if await self._courier.carry(event) is not None:
                return Outcome.REJECTED
        return Outcome.DELIVERED

    def _report_later(self, identifier: str, event: dict[str, Any]) -> bool:
        """Make a dead letter of an event that was taken and could not be processed then."""
        now = iso(utc_now())
        return self._dead_letters.put_once(
            DeadLetter(
                namespace=self._run.namespace,
                state_key=self._run.state_key,
                exporter_id=self._config.id,
                event_key=f"later-{identifier}",
                job=f"{event['job']['namespace']}/{event['job']['name']}",
                reason=f"taken as {identifier}, and not processed later",
                kind=FAILED_LATER,
                status=None,
                answer="",
                attempts=1,
                first=now,
                last=now,
                run_events=[event],
            )
        )

    def outputs(self) -> dict[str, Any]:
        """Return what became of the events, and how often the breaker opened, where it did."""
        rarely = {"failedLater": self._counts["failedLater"], "breakerOpened": self._courier.breaker.times_opened}
        return {name: self._counts[name] for name in COUNTS} | {name: count for name, count in rarely.items() if count}


def _not_sent(reason: str) -> Refusal:
    now = iso(utc_now())
    return Refusal(reason, Verdict.REFUSED, None, "", 0, now, now)
