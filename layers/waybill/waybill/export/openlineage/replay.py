"""Sends dead letters again: each event with its assets as they are now, by the exporter that put it aside."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.clock import utc_now
from waybill.errors import InvalidFlow, WaybillError
from waybill.export.openlineage.config import OpenLineageAssetExporter
from waybill.export.openlineage.exporter import OpenLineageExporter
from waybill.export.ports import Deadline, Outcome, Run
from waybill.ship.filters import Filters
from waybill.ship.resolve import Resolver
from waybill.ship.task import state_key
from waybill.store.log_reader import LogItem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from waybill.model.flow import AssetShipper, Flow
    from waybill.ship.resolve import Assets
    from waybill.store.dead_letters import DeadLetter, DeadLetters

_LONGEST = 900.0


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of a letter: dropped when it was delivered, else kept, with the reason."""

    letter: DeadLetter
    delivered: bool
    text: str


class Replay:
    """Sends letters of one flow again.

    Args:
        flow: says which exporter a letter belongs to.
        letters: where they are kept.
        assets: the catalog.
    """

    def __init__(self, flow: Flow, letters: DeadLetters, assets: Assets) -> None:
        self._flow = flow
        self._letters = letters
        self._assets = assets

    async def send(self, chosen: Sequence[DeadLetter]) -> AsyncIterator[Replayed]:
        """Send letters in the order of the log, exporter by exporter; what is delivered is dropped.

        Raises:
            InvalidFlow: the flow lacks the exporter of a letter.
        """
        ways = {(letter.state_key, letter.exporter_id): self._way(letter) for letter in chosen}
        for (key, exporter_id), (task, config) in ways.items():
            mine = [letter for letter in chosen if (letter.state_key, letter.exporter_id) == (key, exporter_id)]
            own = sorted(mine, key=lambda one: one.event_key)
            run = Run(self._flow.namespace, self._flow.id, task.id, key, utc_now(), Deadline(_LONGEST))
            exporter = OpenLineageExporter(config, run, self._letters)
            resolver = Resolver(self._assets, Filters.of(task))
            await exporter.open()
            try:
                for letter in own:
                    yield await self._one(exporter, resolver, letter)
            finally:
                await exporter.close()

    def _way(self, letter: DeadLetter) -> tuple[AssetShipper, OpenLineageAssetExporter]:
        for task in self._flow.shippers:
            for config in task.asset_exporters:
                mine = (self._flow.namespace, state_key(self._flow, task), config.id)
                theirs = (letter.namespace, letter.state_key, letter.exporter_id)
                if mine == theirs and isinstance(config, OpenLineageAssetExporter):
                    return task, config
        way = f"exporter {letter.exporter_id} under {letter.state_key} of {letter.namespace}"
        raise InvalidFlow([f"flow: has no {way}, which put {letter.event_key} aside"])

    async def _one(self, exporter: OpenLineageExporter, resolver: Resolver, letter: DeadLetter) -> Replayed:
        whole = self._letters.whole(letter)
        if whole is None:
            return Replayed(letter, delivered=False, text="it is gone")
        try:
            outcome = await self._outcome(exporter, resolver, whole)
        except WaybillError as error:
            return Replayed(letter, delivered=False, text=str(error))
        if outcome is Outcome.DELIVERED:
            self._letters.drop(letter)
            return Replayed(letter, delivered=True, text="delivered")
        if outcome is Outcome.REJECTED:
            again = self._letters.whole(letter)
            return Replayed(letter, delivered=False, text=again.reason if again else "refused again")
        return Replayed(letter, delivered=False, text="the flow's filters or eventTypes no longer take it")

    async def _outcome(self, exporter: OpenLineageExporter, resolver: Resolver, letter: DeadLetter) -> Outcome:
        if not letter.event:
            return await exporter.resend(letter)
        (prepared,) = await resolver.prepare([LogItem(letter.event_key, json.dumps(letter.event))])
        return Outcome.SKIPPED if prepared.delivery is None else await exporter.deliver(prepared.delivery)
