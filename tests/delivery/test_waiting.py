"""How long it waits, and when it stops waiting: the backend's wishes, and the run's own patience."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.delivering import QUICK, Shipped, deliveries, delivery, run_id, ship
from tests.support.receivers import Receiver, Reply, Request, for_job
from waybill.export.openlineage.patience import Patience

if TYPE_CHECKING:
    from waybill.export.ports import Delivery

LONG_AGO = "Wed, 21 Oct 2015 07:28:00 GMT"
HOUR = {"retry-after": "3600"}


def shipped_to(receiver: Receiver, parcels: list[Delivery], patience: Patience = QUICK, **properties: Any) -> Shipped:
    """Ship to a receiver that listens on a free port."""

    async def run() -> Shipped:
        async with receiver.listening():
            return await ship(receiver.url, parcels, patience, **{"backend": "generic", **properties})

    return asyncio.run(run())


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("retry_after", ["0", LONG_AGO])
def test_a_wait_of_nothing_is_a_growing_pause_and_give_up_is_heeded(status: int, retry_after: str) -> None:
    receiver = Receiver(lambda _: Reply(status, headers={"retry-after": retry_after}))
    began = time.monotonic()
    shipped = shipped_to(receiver, [delivery()], Patience(base=0.05), timeout={"giveUp": 1})
    assert str(shipped.error).startswith(f"HTTP {status}: it ")
    assert str(shipped.error).endswith("nothing got through for 1 s, the next run tries again")
    assert 0.9 <= time.monotonic() - began < 5
    assert len(receiver.requests) < 60
    assert shipped.letters == []


def test_a_503_of_one_job_that_asks_for_an_hour_holds_back_only_that_job_and_is_set_aside() -> None:
    receiver = Receiver(for_job("orders.job0", Reply(503, headers=HOUR)))
    parcels = deliveries(40, jobs=4)
    shipped = shipped_to(receiver, parcels)
    assert shipped.error is None
    assert shipped.counts == (30, 10, 0)
    assert {letter.event["taskId"] for letter in shipped.letters} == {"job0"}
    assert shipped.letters[0].reason == "HTTP 503 in 7 tries while the backend was well"


def test_a_503_that_asks_every_event_for_an_hour_stops_the_exporter_with_the_reason() -> None:
    receiver = Receiver(lambda _: Reply(503, headers=HOUR))
    shipped = shipped_to(receiver, deliveries(4, jobs=2))
    assert str(shipped.error) == "HTTP 503: it is in trouble, for 3600 s; that is longer than giveUp"
    assert shipped.letters == []


def test_a_408_of_one_event_while_others_get_through_is_set_aside() -> None:
    receiver = Receiver(for_job("orders.job1", Reply(408)))
    parcels = deliveries(200, jobs=4)
    slow = [one for number, one in enumerate(parcels) if number % 4 != 1 or number == 1]
    shipped = shipped_to(receiver, slow)
    assert shipped.error is None
    assert shipped.counts == (150, 1, 0)
    assert [letter.reason for letter in shipped.letters] == ["HTTP 408 in 7 tries while the backend was well"]


def test_an_event_that_every_batch_says_to_retry_is_set_aside() -> None:
    bad = run_id(deliveries(2, jobs=4)[1])

    def behave(request: Request) -> Reply:
        events: Any = json.loads(request.body)
        runs = [event["run"]["runId"] for event in events]
        if bad not in runs:
            return Reply(202, stored=False)
        failed = f'[{{"index": {runs.index(bad)}, "reason": "busy", "retriable": true}}]'
        return Reply(200, f'{{"failed_events": {failed}}}'.encode(), stored=False)

    parcels = [one for number, one in enumerate(deliveries(200, jobs=4)) if number % 4 != 1 or number == 1]
    shipped = shipped_to(Receiver(behave), parcels, backend="datahub", batch=50)
    assert shipped.error is None
    assert shipped.counts == (150, 1, 0)
    assert [letter.reason for letter in shipped.letters] == [
        "refused within a batch: busy in 7 tries while the backend was well"
    ]
