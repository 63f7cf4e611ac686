"""With `verifyUnknown`, Marquez is asked whether it holds an event before the event is sent again."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.delivering import Shipped, asset, delivery, run_id, ship
from tests.support.receivers import Receiver, Reply, Request

if TYPE_CHECKING:
    from waybill.export.ports import Delivery

JSON = {"content-type": "application/json"}


def shipped_to(receiver: Receiver, parcel: Delivery) -> Shipped:
    """Ship an event to a receiver that can be asked what it holds."""

    async def run() -> Shipped:
        async with receiver.listening():
            return await ship(receiver.url, [parcel], verifyUnknown=True)

    return asyncio.run(run())


def losing_the_first_answer(events: Any = None) -> Receiver:
    """Store the first event and break the connection; asked, tell `events` or what was stored."""

    def behave(request: Request) -> Reply:
        if request.method == "POST":
            return Reply(stored=True, reset=True) if len(receiver.requests) == 1 else Reply()
        held = receiver.received if events is None else events
        return Reply(200, json.dumps({"events": held}).encode(), JSON)

    receiver = Receiver(behave)
    return receiver


@pytest.mark.parametrize("size", [0, 100_000, 3_000_000])
def test_an_event_that_it_holds_is_not_sent_again_however_large_it_is(size: int) -> None:
    receiver = losing_the_first_answer()
    parcel = delivery(inputs=[asset("large", description="x" * size)])
    assert shipped_to(receiver, parcel).outputs == {"delivered": 1, "rejected": 0, "skipped": 0, "retried": 0}
    assert receiver.run_ids == [run_id(parcel)]


ODD: list[Any] = [
    {},
    [],
    0,
    [None],
    ["event"],
    [{}],
    [{"eventType": "COMPLETE", "job": {"name": "orders.a"}}],
    [{"run": {"runId": 5}, "job": {}}],
    [{"run": {"runId": "x"}, "job": {"name": "orders.a"}, "inputs": [None]}],
]


@pytest.mark.parametrize("events", ODD)
def test_an_odd_answer_tells_nothing_and_the_event_is_sent_again(events: Any) -> None:
    receiver = losing_the_first_answer(events)
    assert shipped_to(receiver, delivery()).outputs == {"delivered": 1, "rejected": 0, "skipped": 0, "retried": 1}
    assert receiver.run_ids == [run_id(delivery())] * 2


def test_no_list_at_all_tells_nothing_and_the_event_is_sent_again() -> None:
    receiver = losing_the_first_answer()
    storing = receiver.behave
    receiver.behave = lambda request: storing(request) if request.method == "POST" else Reply(200, b'{"events":null}')
    assert shipped_to(receiver, delivery()).outputs == {"delivered": 1, "rejected": 0, "skipped": 0, "retried": 1}
