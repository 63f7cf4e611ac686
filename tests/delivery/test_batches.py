"""Several events in one post, where the backend takes that; each still has an outcome of its own."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.delivering import deliveries, run_id, ship
from tests.support.openlineage_schema import check_event
from tests.support.receivers import Receiver, Reply, Request
from waybill.errors import ExporterStopped
from waybill.export.openlineage.backends import BACKENDS
from waybill.export.openlineage.batching import BatchSender
from waybill.export.openlineage.mapping import RunEvent
from waybill.export.openlineage.outcomes import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.delivering import Shipped
    from waybill.export.ports import Delivery

JSON = {"content-type": "application/json"}


class BatchReceiver:
    """Takes batches at `…/batch`, and single events beside it."""

    def __init__(self, answer: Callable[[list[dict[str, Any]]], Reply], key: str | None = None) -> None:
        self.received: list[dict[str, Any]] = []
        self.sizes: list[int] = []
        self.singles = 0
        self._answer = answer
        self._key = key
        self.receiver = Receiver(self._behave)

    def _behave(self, request: Request) -> Reply:
        if not request.target.endswith("/batch"):
            self.singles += 1
            self.received.append(request.event)
            return Reply(201, stored=False)
        document: Any = json.loads(request.body)
        events: list[dict[str, Any]] = document[self._key] if self._key else document
        self.sizes.append(len(events))
        for event in events:
            check_event(event)
        reply = self._answer(events)
        return Reply(reply.status, reply.body, reply.headers, stored=False)

    @property
    def run_ids(self) -> list[str]:
        """The run ids of what was taken, sorted."""
        return sorted(event["run"]["runId"] for event in self.received)

    def take(self, events: list[dict[str, Any]]) -> None:
        """Store events of a batch."""
        self.received += events


def shipped_to(receiver: Receiver, parcels: list[Delivery], **properties: Any) -> Shipped:
    """Ship to a receiver that listens on a free port."""

    async def run() -> Shipped:
        async with receiver.listening():
            return await ship(receiver.url, parcels, **properties)

    return asyncio.run(run())


def test_datahub_gets_arrays_of_what_is_under_way_at_the_same_time() -> None:
    def answer(events: list[dict[str, Any]]) -> Reply:
        backend.take(events)
        return Reply(202)

    backend = BatchReceiver(answer)
    parcels = deliveries(80, jobs=8)
    shipped = shipped_to(backend.receiver, parcels, backend="datahub", batch=100, maxInFlight=8)
    assert shipped.counts == (80, 0, 0)
    assert backend.run_ids == sorted(run_id(parcel) for parcel in parcels)
    assert max(backend.sizes) > 1
    assert sum(backend.sizes) == 80
    assert backend.singles == 0


def test_openmetadata_gets_an_object_and_tells_which_events_failed() -> None:
    def answer(events: list[dict[str, Any]]) -> Reply:
        bad = [number for number, event in enumerate(events) if event["job"]["name"] == "orders.job1"]
        backend.take([event for number, event in enumerate(events) if number not in bad])
        failed = [{"index": number, "reason": "unresolved", "retriable": False} for number in bad]
        status = "partial_success" if bad else "success"
        body = {"status": status, "lineageEdgesCreated": len(events) - len(bad), "failedEvents": failed}
        return Reply(200, json.dumps(body).encode(), JSON)

    backend = BatchReceiver(answer, key="events")
    parcels = deliveries(12, jobs=4)
    shipped = shipped_to(backend.receiver, parcels, backend="openmetadata", batch=10)
    assert shipped.error is None
    assert backend.run_ids == sorted(run_id(parcel) for parcel in parcels if parcel.event.task_id != "job1")
    assert shipped.counts == (9, 3, 0)
    assert {letter.reason for letter in shipped.letters} == {"refused within a batch: unresolved"}


def test_a_backend_without_the_endpoint_gets_the_events_one_by_one() -> None:
    backend = BatchReceiver(lambda _: Reply(404))
    parcels = deliveries(20, jobs=4)
    shipped = shipped_to(backend.receiver, parcels, backend="datahub", batch=50)
    assert shipped.counts == (20, 0, 0)
    assert backend.run_ids == sorted(run_id(parcel) for parcel in parcels)
    assert len(backend.sizes) == 1


def test_a_batch_that_is_refused_whole_is_sent_one_by_one() -> None:
    def answer(events: list[dict[str, Any]]) -> Reply:
        if any(event["job"]["name"] == "orders.job2" for event in events):
            return Reply(403)
        backend.take(events)
        return Reply(202)

    backend = BatchReceiver(answer)
    parcels = deliveries(20, jobs=4)
    shipped = shipped_to(backend.receiver, parcels, backend="datahub", batch=50)
    assert shipped.counts == (20, 0, 0)
    assert backend.run_ids == sorted(run_id(parcel) for parcel in parcels)


def test_a_batch_that_was_not_taken_is_tried_again_and_nothing_is_doubled() -> None:
    def answer(events: list[dict[str, Any]]) -> Reply:
        if len(backend.sizes) <= 2:
            return Reply(503)
        backend.take(events)
        return Reply(202)

    backend = BatchReceiver(answer)
    parcels = deliveries(12, jobs=3)
    shipped = shipped_to(backend.receiver, parcels, backend="datahub", batch=50)
    assert shipped.counts == (12, 0, 0)
    assert backend.run_ids == sorted(run_id(parcel) for parcel in parcels)


@pytest.mark.parametrize("zipped", [False, True])
def test_a_long_or_zipped_answer_is_read_to_its_end(*, zipped: bool) -> None:
    def answer(events: list[dict[str, Any]]) -> Reply:
        failed = [{"index": number, "reason": "x" * 100_000} for number in range(len(events))]
        body = json.dumps({"status": "partial_success", "failedEvents": failed}).encode()
        if zipped:
            return Reply(200, gzip.compress(body), {**JSON, "content-encoding": "gzip"})
        return Reply(200, body, JSON)

    backend = BatchReceiver(answer, key="events")
    shipped = shipped_to(backend.receiver, deliveries(4, jobs=4), backend="openmetadata", batch=10)
    assert shipped.counts == (0, 4, 0)
    assert backend.singles == 0


@pytest.mark.parametrize(
    "document",
    [
        {"status": "failure"},
        {"status": "partial_success"},
        {"status": "failure", "failed_events": [{"index": 0}]},
        {"status": "partial_success", "failed_events": 5},
        {"status": "partial_success", "failed_events": {"index": 0}},
        {"status": "partial_success", "failed_events": ["the first"]},
        {"status": "partial_success", "failed_events": [{"index": "0"}]},
        {"status": "partial_success", "failed_events": [{"index": 99}]},
    ],
)
def test_a_batch_whose_answer_cannot_be_understood_is_sent_one_by_one(document: dict[str, Any]) -> None:
    """Such an answer tells nothing of single events; what was taken with the batch is repeated with the same run id."""
    backend = BatchReceiver(lambda _: Reply(200, json.dumps(document).encode(), JSON))
    parcels = deliveries(4, jobs=4)
    shipped = shipped_to(backend.receiver, parcels, backend="datahub", batch=50)
    assert shipped.counts == (4, 0, 0)
    assert backend.run_ids == sorted(run_id(parcel) for parcel in parcels)


def posted_three_through(backend: Any) -> list[str]:
    """What each of three events hears that are posted as a batch to something that answers posts."""

    async def run() -> list[Answer | BaseException]:
        sender = BatchSender(backend, backend, BACKENDS["datahub"], 3)
        events = [RunEvent(str(number), "COMPLETE", "run", b"{}") for number in range(3)]
        async with asyncio.timeout(5):
            return await asyncio.gather(*(sender.post(event) for event in events), return_exceptions=True)

    return [str(outcome) for outcome in asyncio.run(run())]


def test_whatever_happens_to_a_batch_everyone_who_waits_hears_of_it() -> None:
    class Broken:
        async def post(self, event: RunEvent) -> Answer:
            raise ExporterStopped(f"no token for {event.id}")

    assert posted_three_through(Broken()) == ["no token for batch"] * 3


def test_whatever_happens_to_an_event_of_a_refused_batch_it_hears_of_it() -> None:
    class Refusing:
        async def post(self, event: RunEvent) -> Answer:
            if event.id == "1":
                raise ExporterStopped("no token")
            return Answer(400 if event.id == "batch" else 201)

    assert posted_three_through(Refusing()) == ["HTTP 201", "no token", "HTTP 201"]
