"""What each answer of a backend leads to, over real sockets (`openlineage.md` 6.2 and 6.3)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

from tests.support.delivering import QUICK, Shipped, asset, deliveries, delivery, job_name, run_id, ship
from tests.support.receivers import Receiver, Reply, Request, first, for_job
from waybill.errors import OutOfTime
from waybill.export.ports import Outcome
from waybill.model.asset import TABLE

if TYPE_CHECKING:
    from waybill.export.openlineage.patience import Patience
    from waybill.export.ports import Delivery

LOGIN_PAGE = Reply(
    200, b"<!DOCTYPE html><html><body>Sign in</body></html>", {"content-type": "text/html"}, stored=False
)


def shipped_to(receiver: Receiver, parcels: list[Delivery], patience: Patience = QUICK, **properties: Any) -> Shipped:
    """Ship to a receiver that listens on a free port."""

    async def run() -> Shipped:
        async with receiver.listening():
            return await ship(receiver.url, parcels, patience, **properties)

    return asyncio.run(run())


def test_every_event_is_posted_once_and_in_the_order_of_its_job() -> None:
    receiver = Receiver()
    parcels = deliveries(60, jobs=7)
    shipped = shipped_to(receiver, parcels)
    assert shipped.error is None
    assert shipped.counts == (60, 0, 0)
    assert sorted(receiver.run_ids) == sorted(run_id(parcel) for parcel in parcels)
    for job in range(7):
        ids = [run_id(parcel) for parcel in parcels if parcel.event.task_id == f"job{job}"]
        assert [
            event["run"]["runId"] for event in receiver.received if event["job"]["name"] == f"orders.job{job}"
        ] == ids


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_any_2xx_is_a_success(status: int) -> None:
    receiver = Receiver(lambda _: Reply(status))
    assert shipped_to(receiver, [delivery()]).counts == (1, 0, 0)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(status: int) -> None:
    receiver = Receiver(first(Reply(status), Reply(status)))
    shipped = shipped_to(receiver, [delivery()])
    assert receiver.run_ids == [run_id(delivery())]
    assert shipped.outputs == {"delivered": 1, "rejected": 0, "skipped": 0, "retried": 2}


def test_retry_after_in_seconds_is_kept() -> None:
    receiver = Receiver(first(Reply(429, headers={"retry-after": "1"})))
    began = time.monotonic()
    assert shipped_to(receiver, [delivery()]).counts == (1, 0, 0)
    assert 1.0 <= time.monotonic() - began < 15


def test_retry_after_as_a_date_is_kept() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    receiver = Receiver(first(Reply(503, headers={"retry-after": soon})))
    began = time.monotonic()
    assert shipped_to(receiver, [delivery()]).counts == (1, 0, 0)
    assert 0.9 <= time.monotonic() - began < 15


def test_while_the_backend_asks_to_wait_no_other_event_is_posted() -> None:
    receiver = Receiver(first(Reply(429, headers={"retry-after": "1"})))
    times: list[float] = []
    behave = receiver.behave

    def noting(request: Request) -> Reply:
        times.append(time.monotonic())
        return behave(request)

    receiver.behave = noting
    shipped = shipped_to(receiver, deliveries(6, jobs=2), maxInFlight=1)
    assert shipped.counts == (6, 0, 0)
    assert times[1] - times[0] >= 0.99


def test_a_wait_longer_than_give_up_stops_the_exporter_at_once() -> None:
    receiver = Receiver(lambda _: Reply(429, headers={"retry-after": "3600"}))
    began = time.monotonic()
    shipped = shipped_to(receiver, [delivery()])
    assert str(shipped.error) == "HTTP 429: it asks to wait, for 3600 s; that is longer than giveUp"
    assert time.monotonic() - began < 15
    assert receiver.received == []
    assert shipped.letters == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_never_followed_and_stops_the_exporter(status: int) -> None:
    receiver = Receiver()
    receiver.behave = lambda _: Reply(status, headers={"location": f"{receiver.url}/elsewhere"})
    shipped = shipped_to(receiver, [delivery()])
    assert str(shipped.error) == (
        f"HTTP {status} to {receiver.url}/elsewhere: it redirects, and redirects are not followed; "
        "give the final address as uri"
    )
    assert [request.target for request in receiver.requests] == ["/api/v1/lineage"]
    assert shipped.letters == []


def test_a_2xx_login_page_is_no_success_and_stops_the_exporter() -> None:
    receiver = Receiver(lambda _: LOGIN_PAGE)
    shipped = shipped_to(receiver, deliveries(3))
    assert str(shipped.error) == "HTTP 200: a web page answered, such as a login page; look at uri and auth"
    assert shipped.outputs["delivered"] == 0
    assert len(receiver.requests) == 1
    assert shipped.letters == []


@pytest.mark.parametrize("status", [404, 405, 415, 501])
def test_a_wrong_address_stops_the_exporter_and_dead_letters_nothing(status: int) -> None:
    receiver = Receiver(lambda _: Reply(status))
    shipped = shipped_to(receiver, deliveries(5))
    assert str(shipped.error).startswith(f"HTTP {status}: ")
    assert len(receiver.requests) == 1
    assert shipped.letters == []


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_stop_the_exporter_and_dead_letter_nothing(status: int) -> None:
    receiver = Receiver(lambda _: Reply(status))
    shipped = shipped_to(receiver, deliveries(5))
    assert str(shipped.error) == f"HTTP {status}: it does not accept the credentials; look at auth"
    assert len(receiver.requests) == 1
    assert shipped.letters == []


def test_a_refused_event_becomes_a_dead_letter_and_the_rest_arrives() -> None:
    receiver = Receiver(for_job("orders.job1", Reply(422, b'{"errors": ["job is odd"]}' + b" " * 2000)))
    parcels = deliveries(9, jobs=3)
    shipped = shipped_to(receiver, parcels)
    assert shipped.error is None
    assert shipped.counts == (6, 3, 0)
    assert sorted(receiver.run_ids) == sorted(run_id(p) for p in parcels if p.event.task_id != "job1")
    letter = shipped.letters[0]
    assert (letter.reason, letter.status, letter.attempts) == ("HTTP 422: it refuses the event", 422, 1)
    assert letter.answer == '{"errors": ["job is odd"]}' + " " * 998
    assert letter.event["taskId"] == "job1"
    assert [event["job"]["name"] for event in letter.run_events] == ["orders.job1"]
    assert letter.first <= letter.last


def test_on_rejected_fail_stops_the_exporter_at_the_refused_event() -> None:
    receiver = Receiver(first(Reply(), Reply(422)))
    shipped = shipped_to(receiver, deliveries(4), onRejected="FAIL")
    assert str(shipped.error) == (
        "event job0-1 of company.data/orders.job0 was refused: HTTP 422: it refuses the event"
    )
    assert receiver.run_ids == [run_id(deliveries(1)[0])]
    assert shipped.letters == []


def test_an_event_too_big_for_the_backend_is_sent_again_without_its_large_facets() -> None:
    receiver = Receiver(lambda request: Reply(413 if len(request.body) > 3000 else 201))
    parcel = delivery(outputs=[])
    big = delivery(inputs=[parcel.inputs[0].model_copy(update={"description": "x" * 5000, "metadata": {"owner": "d"}})])
    shipped = shipped_to(receiver, [big])
    assert shipped.counts == (1, 0, 0)
    assert receiver.run_ids == [run_id(big)]
    (event,) = receiver.received
    assert sorted(event["inputs"][0]["facets"]) == ["dataSource"]
    assert event["run"]["facets"]["waybill_trimmed"]["datasetFacets"] == [
        "waybill_asset", "tags", "schema", "documentation", "ownership",
    ]  # fmt: skip


@pytest.mark.parametrize("kilobytes", [220, 400, 2_000, 6_000])
def test_large_events_arrive_whole(kilobytes: int) -> None:
    receiver = Receiver()
    parcel = delivery(inputs=[asset("large", description="x" * kilobytes * 1000)])
    shipped = shipped_to(receiver, [parcel])
    assert shipped.outputs == {"delivered": 1, "rejected": 0, "skipped": 0, "retried": 0}
    (event,) = receiver.received
    assert len(event["inputs"][0]["facets"]["documentation"]["description"]) == kilobytes * 1000


def test_openmetadatas_200_that_says_partial_success_is_no_success() -> None:
    body = b'{"status": "partial_success", "lineageEdgesCreated": 1, "unresolvedDatasets": ["x"]}'
    receiver = Receiver(lambda _: Reply(200, body, {"content-type": "application/json"}))
    shipped = shipped_to(receiver, [delivery()], backend="openmetadata")
    assert shipped.counts == (0, 1, 0)
    assert shipped.letters[0].reason == "HTTP 200: it stored nothing or only a part of the event"
    assert shipped.letters[0].answer == body.decode()


def test_names_that_poison_a_backend_are_set_aside_unsent_and_the_rest_arrives() -> None:
    receiver = Receiver()
    bad = delivery(2, "bad", inputs=[asset("x", namespace="no place")])
    shipped = shipped_to(receiver, [delivery(1), bad, delivery(3)])
    assert shipped.counts == (2, 1, 0)
    assert receiver.run_ids == [run_id(delivery(1)), run_id(delivery(3))]
    assert shipped.letters[0].reason == (
        "asset x: the dataset namespace 'no place' holds U+0020 at position 2, which it does not take (marquez)"
    )
    assert (shipped.letters[0].attempts, shipped.letters[0].run_events) == (0, [])


def test_a_mapped_asset_without_its_key_stops_the_exporter_and_what_came_before_is_kept() -> None:
    receiver = Receiver()
    mappings = {TABLE: {"namespace": "lineage_namespace"}}
    good = [asset(metadata={"lineage_namespace": "a"})]
    parcels = [delivery(1, inputs=good, outputs=[]), delivery(2), delivery(3, inputs=good, outputs=[])]
    shipped = shipped_to(receiver, parcels, mappings=mappings)
    assert str(shipped.error).startswith("asset raw.orders is of the mapped type")
    assert receiver.run_ids == [run_id(parcels[0])]
    assert shipped.letters == []


def test_an_event_that_stays_too_big_becomes_a_dead_letter() -> None:
    receiver = Receiver(for_job("orders.a", Reply(413)))
    shipped = shipped_to(receiver, [delivery(), delivery(job="b")])
    assert shipped.counts == (1, 1, 0)
    assert receiver.jobs == ["orders.b"]
    assert shipped.letters[0].reason == "HTTP 413: the event is too large for it"


def test_a_slow_start_holds_its_complete_back() -> None:
    receiver = Receiver(lambda request: Reply(wait=0.3 if request.event["eventType"] == "START" else 0))
    shipped = shipped_to(receiver, deliveries(4, jobs=2), startEvents=True)
    assert shipped.counts == (4, 0, 0)
    for job in ("orders.job0", "orders.job1"):
        types = [event["eventType"] for event in receiver.received if event["job"]["name"] == job]
        assert types == ["START", "COMPLETE", "START", "COMPLETE"]


def test_a_backend_that_is_down_stops_the_exporter_after_give_up_and_dead_letters_nothing() -> None:
    receiver = Receiver(lambda _: Reply(500, b"<html>trouble</html>", {"content-type": "text/html"}))
    began = time.monotonic()
    shipped = shipped_to(receiver, deliveries(30, jobs=12), backend="generic", timeout={"giveUp": 1})
    assert str(shipped.error) == ("HTTP 500: it is in trouble; nothing got through for 1 s, the next run tries again")
    assert 0.9 <= time.monotonic() - began < 15
    assert shipped.outcomes == {}
    assert shipped.letters == []
    assert receiver.received == []
    posts = [request.job for request in receiver.requests if request.method == "POST"]
    assert posts.count("waybill.probe") == 1


def test_nobody_listening_stops_the_exporter_after_give_up() -> None:
    async def run() -> Shipped:
        receiver = Receiver()
        async with receiver.listening():
            url = receiver.url
        return await ship(url, deliveries(3), timeout={"giveUp": 1})

    shipped = asyncio.run(run())
    assert str(shipped.error).startswith("no connection (ClientConnectorError: Cannot connect to host 127.0.0.1:")
    assert shipped.letters == []


@pytest.mark.parametrize("backend", ["marquez", "generic"])
def test_an_outage_in_the_middle_loses_and_dead_letters_nothing(backend: str) -> None:
    """Every post fails for a while, whatever it is; the page is that of a poison event."""
    parcels = deliveries(200, jobs=8)
    state = {"posts": 0, "until": 0.0}

    def behave(_: Request) -> Reply:
        state["posts"] += 1
        if state["posts"] == 80:
            state["until"] = time.monotonic() + 1.5
        return Reply(500 if time.monotonic() < state["until"] else 201)

    receiver = Receiver(behave)
    shipped = shipped_to(receiver, parcels, backend=backend)
    assert shipped.error is None
    assert shipped.letters == []
    assert sorted(receiver.run_ids) == sorted(run_id(parcel) for parcel in parcels)


def test_random_failures_lose_and_dead_letter_nothing() -> None:
    """A third of all tries is answered 503, which ones is fixed; no event meets it seven times."""
    tries: Counter[str] = Counter()

    def behave(request: Request) -> Reply:
        run = request.event["run"]["runId"]
        tries[run] += 1
        return Reply(503 if crc32(f"{run} {tries[run]}".encode()) % 3 == 0 else 201)

    receiver = Receiver(behave)
    parcels = deliveries(120, jobs=6)
    shipped = shipped_to(receiver, parcels)
    assert shipped.counts == (120, 0, 0)
    assert sorted(receiver.run_ids) == sorted(run_id(parcel) for parcel in parcels)


@pytest.mark.parametrize("backend", ["marquez", "generic"])
def test_a_poison_event_among_good_ones_is_set_aside(backend: str) -> None:
    receiver = Receiver(for_job(job_name("job3"), Reply(500, b"<html>trouble</html>")))
    parcels = deliveries(40, jobs=5)
    shipped = shipped_to(receiver, parcels, replace(QUICK, probe_after=0.3), backend=backend, maxInFlight=3)
    assert shipped.error is None
    assert shipped.counts == (32, 8, 0)
    got = [event["run"]["runId"] for event in receiver.received if event["job"]["name"] != "waybill.probe"]
    assert sorted(got) == sorted(run_id(p) for p in parcels if p.event.task_id != "job3")
    assert {letter.event["taskId"] for letter in shipped.letters} == {"job3"}
    assert shipped.letters[0].reason == "HTTP 500 in 7 tries while the backend was well"


def test_poison_alone_in_the_log_is_told_by_a_probe() -> None:
    """Nothing else is there to get through, so before giving up a harmless event is posted."""
    receiver = Receiver(for_job(job_name("a"), Reply(500)))
    shipped = shipped_to(receiver, [delivery()], backend="generic", timeout={"giveUp": 1})
    assert shipped.error is None
    assert shipped.counts == (0, 1, 0)
    assert set(receiver.jobs) == {"waybill.probe"}


def test_the_deadline_ends_a_run_in_the_middle_of_a_post() -> None:
    receiver = Receiver(lambda _: Reply(wait=10, stored=False))
    began = time.monotonic()
    shipped = shipped_to(receiver, deliveries(3), seconds=1)
    assert isinstance(shipped.error, OutOfTime)
    assert time.monotonic() - began < 8
    assert shipped.letters == []


def test_a_first_event_is_always_tried() -> None:
    receiver = Receiver(first(Reply(500)))
    shipped = shipped_to(receiver, [delivery()])
    assert shipped.outcomes == {delivery().key: Outcome.DELIVERED}
