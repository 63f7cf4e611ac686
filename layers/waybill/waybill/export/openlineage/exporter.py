"""The exporter that posts lineage to an OpenLineage backend."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from waybill.errors import ExporterStopped, OutOfTime
from waybill.export.openlineage.mapping import CannotBeSent, Mapper
from waybill.export.openlineage.outcomes import Verdict, judge
from waybill.export.openlineage.sender import HttpSender
from waybill.export.ports import Outcome

if TYPE_CHECKING:
    from waybill.export.openlineage.config import OpenLineageAssetExporter
    from waybill.export.ports import Delivery, Run


class OpenLineageExporter:
    """Posts each delivery as one run event (or two with `startEvents`)."""

    def __init__(self, config: OpenLineageAssetExporter, run: Run, dead_letters: Any) -> None:
        self._config = config
        self._run = run
        self._dead_letters = dead_letters
        self._mapper = Mapper(config)
        self._sender = HttpSender(config, run.deadline)
        self._counts: Counter[str] = Counter()
        self.in_flight = config.max_in_flight

    async def open(self) -> None:
        """Get ready to send."""
        await self._sender.open()

    async def close(self) -> None:
        """Close the connections."""
        await self._sender.close()

    async def deliver(self, delivery: Delivery) -> Outcome:
        """Send one event until its outcome is known."""
        try:
            events = self._mapper.events(delivery)
        except CannotBeSent:
            self._counts[Outcome.REJECTED] += 1
            return Outcome.REJECTED
        for event in events:
            token = hashlib.sha256(event.body).hexdigest()
            for attempt in range(5):
                answer = await self._sender.post(event.body, token)
                judgement = judge(answer, self._config.preset.outcomes)
                if judgement.verdict is Verdict.DONE:
                    break
                if not self._run.deadline.remaining():
                    raise OutOfTime("the run's time is over")
                if judgement.verdict in (Verdict.RETRY, Verdict.UNKNOWN):
                    self._counts["retried"] += 1
                    await asyncio.sleep(0.5 * 2**attempt)
                    continue
                if judgement.verdict in (Verdict.REFUSED, Verdict.TOO_BIG):
                    self._counts[Outcome.REJECTED] += 1
                    return Outcome.REJECTED
                raise ExporterStopped(f"{answer}: {judgement.why}")
            else:
                raise ExporterStopped("it does not take anything")
        self._counts[Outcome.DELIVERED] += 1
        return Outcome.DELIVERED

    def outputs(self) -> dict[str, Any]:
        """Return what became of the events."""
        return {name: self._counts[name] for name in ("delivered", "rejected", "skipped", "retried")}
