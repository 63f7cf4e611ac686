"""Lineage shipped to Amazon DataZone: a stub at the HTTP port answers boto3 in the shapes of its service model."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.delivering import QUICK, asset, deliveries, delivery, ship
from tests.support.receivers import Receiver, Reply, Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.delivering import Shipped
    from waybill.export.ports import Delivery

DOMAIN = "dzd_4bfhw3w7qk5xqd"
EVENTS = f"/v2/domains/{DOMAIN}/lineage/events"
JSON = {"content-type": "application/json"}
FAILED_ID, FOREIGN_ID = "abcdefgh123456", "zzzzzzzz999999"


class DataZone:
    """A domain that takes each token once.

    Attributes:
        before: answers a post in its place, or None.
        failed: what it took earlier and could not process, by id.
    """

    def __init__(self) -> None:
        self.tokens: dict[str, bytes] = {}
        self.posts: list[Request] = []
        self.before: Callable[[Request], Reply | None] = lambda request: None  # noqa: ARG005
        self.failed: dict[str, dict[str, Any]] = {}
        self.receiver = Receiver(self._answer)

    def _answer(self, request: Request) -> Reply:
        path = request.target.split("?")[0]
        if request.method == "POST" and path == EVENTS:
            return self._post(request)
        if path == EVENTS:
            items = [{"id": one, "domainId": DOMAIN, "processingStatus": "FAILED"} for one in self.failed]
            return Reply(200, json.dumps({"items": items}).encode(), JSON)
        event = self.failed[path.rsplit("/", 1)[1]]
        return Reply(200, json.dumps(event).encode(), {"domain-id": DOMAIN, "processing-status": "FAILED"})

    def _post(self, request: Request) -> Reply:
        self.posts.append(request)
        early = self.before(request)
        if early is not None:
            return early
        if len(request.body) > 300_000:
            return _error(400, "ValidationException", "event is too large")
        token = request.headers["client-token"]
        known = self.tokens.get(token)
        if known is not None and known != request.body:
            return _error(409, "ConflictException", "the token was used with other content")
        new = known is None
        self.tokens[token] = request.body
        body = json.dumps({"id": f"{len(self.tokens):014}", "domainId": DOMAIN}).encode()
        return Reply(200, body, JSON, stored=new)


def _error(status: int, code: str, message: str = "", **headers: str) -> Reply:
    body = json.dumps({"message": message}).encode()
    return Reply(status, body, {**JSON, "x-amzn-errortype": code, **headers})


@pytest.fixture
def datazone(monkeypatch: pytest.MonkeyPatch) -> DataZone:
    """An empty domain."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return DataZone()


def shipped_to(
    datazone: DataZone, monkeypatch: pytest.MonkeyPatch, parcels: list[Delivery], **properties: Any
) -> Shipped:
    """Ship to the domain."""

    async def run() -> Shipped:
        async with datazone.receiver.listening():
            monkeypatch.setenv("AWS_ENDPOINT_URL_DATAZONE", datazone.receiver.url)
            return await ship(None, parcels, QUICK, backend="datazone", domainId=DOMAIN, **properties)

    return asyncio.run(run())


def test_events_arrive_signed_each_with_a_token_of_its_own(datazone: DataZone, monkeypatch: pytest.MonkeyPatch) -> None:
    parcels = deliveries(12, jobs=3)
    shipped = shipped_to(datazone, monkeypatch, parcels)
    assert shipped.outputs == {"delivered": 12, "rejected": 0, "skipped": 0, "retried": 0}
    assert sorted(datazone.receiver.run_ids) == sorted(parcel.event.task_run_id for parcel in parcels)
    assert len(datazone.tokens) == 12
    assert all(len(token) == 64 and token.isalnum() for token in datazone.tokens)
    assert all(post.headers["authorization"].startswith("AWS4-HMAC-SHA256 ") for post in datazone.posts)


def test_the_same_event_has_the_same_token_so_a_repeat_is_not_a_new_event(
    datazone: DataZone, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped_to(datazone, monkeypatch, [delivery()])
    shipped_to(datazone, monkeypatch, [delivery()])
    assert len(datazone.posts) == 2
    assert len(datazone.receiver.received) == 1
    changed = delivery(outputs=[asset("orders", description="changed since")])
    shipped_to(datazone, monkeypatch, [changed])
    assert len(datazone.tokens) == 2


def test_an_answer_that_was_lost_makes_no_second_event(datazone: DataZone, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose_the_first(request: Request) -> Reply | None:
        if len(datazone.posts) > 1:
            return None
        datazone.tokens[request.headers["client-token"]] = request.body
        return Reply(stored=True, reset=True)

    datazone.before = lose_the_first
    shipped = shipped_to(datazone, monkeypatch, [delivery()])
    assert shipped.outputs == {"delivered": 1, "rejected": 0, "skipped": 0, "retried": 1}
    assert len(datazone.receiver.received) == 1
    assert datazone.posts[0].headers["client-token"] == datazone.posts[1].headers["client-token"]


def test_an_event_over_300_000_bytes_is_sent_without_its_large_facets(
    datazone: DataZone, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = [asset(f"table{number}", description="x" * 400, metadata={"owner": "data"}) for number in range(500)]
    assert shipped_to(datazone, monkeypatch, [delivery(inputs=inputs)]).counts == (1, 0, 0)
    (post,) = datazone.posts
    assert len(post.body) <= 300_000
    event = post.event
    assert len(event["inputs"]) == 500
    assert event["run"]["facets"]["waybill_trimmed"]["datasetFacets"][0] == "waybill_asset"


def test_throttling_is_waited_for(datazone: DataZone, monkeypatch: pytest.MonkeyPatch) -> None:
    datazone.before = lambda _: _error(429, "ThrottlingException") if len(datazone.posts) <= 3 else None
    shipped = shipped_to(datazone, monkeypatch, [delivery()])
    assert shipped.outputs == {"delivered": 1, "rejected": 0, "skipped": 0, "retried": 3}


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (_error(401, "UnauthorizedException"), "HTTP 401: it does not accept the credentials; look at auth"),
        (_error(403, "AccessDeniedException"), "HTTP 403: it does not accept the credentials; look at auth"),
        (
            _error(404, "ResourceNotFoundException"),
            "HTTP 404: nothing takes lineage at this address; look at uri and endpoint",
        ),
    ],
)
def test_what_concerns_every_event_stops_the_exporter(
    datazone: DataZone, monkeypatch: pytest.MonkeyPatch, reply: Reply, message: str
) -> None:
    datazone.before = lambda _: reply
    shipped = shipped_to(datazone, monkeypatch, deliveries(3))
    assert str(shipped.error) == message
    assert shipped.letters == []
    assert len(datazone.posts) == 1


def test_a_refused_event_becomes_a_dead_letter_with_what_was_said(
    datazone: DataZone, monkeypatch: pytest.MonkeyPatch
) -> None:
    datazone.before = lambda request: (
        _error(400, "ValidationException", "no such thing") if request.job == "orders.job1" else None
    )
    shipped = shipped_to(datazone, monkeypatch, deliveries(4, jobs=2))
    assert shipped.counts == (2, 2, 0)
    assert json.loads(shipped.letters[0].answer) == {"code": "ValidationException", "message": "no such thing"}


def test_what_it_could_not_process_later_is_reported_once(datazone: DataZone, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped_to(datazone, monkeypatch, [delivery()])
    datazone.failed = {
        FAILED_ID: datazone.receiver.received[0],
        FOREIGN_ID: {**datazone.receiver.received[0], "producer": "https://example.org/other"},
    }
    shipped = shipped_to(datazone, monkeypatch, [delivery(2)])
    assert shipped.outputs["failedLater"] == 1
    (letter,) = shipped.letters
    assert (letter.event_key, letter.kind) == (f"later-{FAILED_ID}", "failed later")
    assert letter.reason == f"taken as {FAILED_ID}, and not processed later"
    assert letter.run_events == [datazone.receiver.received[0]]
