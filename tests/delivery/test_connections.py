"""What happens on the wire: broken connections, slow answers, TLS, proxies (`openlineage.md` 6.3)."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.support.certificates import Authority
from tests.support.delivering import Shipped, deliveries, delivery, job_name, run_id, ship
from tests.support.proxies import Proxy
from tests.support.receivers import Receiver, Reply, Request, first

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    import pytest

    from waybill.export.ports import Delivery


def shipped_to(
    receiver: Receiver, parcels: list[Delivery], context: ssl.SSLContext | None = None, **properties: Any
) -> Shipped:
    """Ship to a receiver that listens on a free port."""

    async def run() -> Shipped:
        async with receiver.listening(context):
            return await ship(receiver.url, parcels, **properties)

    return asyncio.run(run())


def test_a_connection_reset_after_the_event_was_stored_repeats_it_with_the_same_content() -> None:
    receiver = Receiver(first(Reply(stored=True, reset=True)))
    shipped = shipped_to(receiver, [delivery()])
    assert shipped.outputs == {"delivered": 1, "rejected": 0, "skipped": 0, "retried": 1}
    assert receiver.run_ids == [run_id(delivery())] * 2
    assert receiver.received[0] == receiver.received[1]


def test_a_connection_reset_before_the_event_was_stored_loses_nothing() -> None:
    receiver = Receiver(first(Reply(stored=False, reset=True), Reply(stored=False, reset=True)))
    assert shipped_to(receiver, [delivery()]).counts == (1, 0, 0)
    assert receiver.run_ids == [run_id(delivery())]


def test_a_connection_that_ends_without_an_answer_loses_nothing() -> None:
    receiver = Receiver(first(Reply(stored=False, cut=0)))
    assert shipped_to(receiver, [delivery()]).counts == (1, 0, 0)
    assert receiver.run_ids == [run_id(delivery())]


def test_half_a_head_is_an_unknown_outcome() -> None:
    receiver = Receiver(first(Reply(stored=False, cut=20)))
    assert shipped_to(receiver, [delivery()]).counts == (1, 0, 0)
    assert receiver.run_ids == [run_id(delivery())]


def test_a_201_whose_body_breaks_off_is_a_known_answer_and_repeats_nothing() -> None:
    reply = Reply(201, b'{"status": "success"}', {"content-type": "application/json"})
    receiver = Receiver(first(Reply(201, reply.body, reply.headers, cut=len(reply.to_bytes()) - 9)))
    assert shipped_to(receiver, [delivery()]).outputs["retried"] == 0
    assert receiver.run_ids == [run_id(delivery())]


def test_an_outcome_that_stays_unknown_is_set_aside_after_three_tries_while_others_get_through() -> None:
    def behave(request: Request) -> Reply:
        if request.job == job_name("job2"):
            return Reply(wait=0.1, stored=False, reset=True)
        return Reply(wait=0.01)

    receiver = Receiver(behave)
    lost = delivery(1, "job2")
    parcels = [lost, *(parcel for parcel in deliveries(200, jobs=4) if parcel.event.task_id != "job2")]
    shipped = shipped_to(receiver, parcels, backend="generic")
    assert shipped.error is None
    assert shipped.counts == (150, 1, 0)
    assert [letter.event_key for letter in shipped.letters] == [lost.key]
    assert shipped.letters[0].attempts == 3
    assert shipped.letters[0].kind == "unknown"
    assert shipped.letters[0].reason.startswith(
        "outcome unknown: no whole answer in 3 tries while the backend was well; the last: the connection broke"
    )
    assert [request.job for request in receiver.requests].count("orders.job2") == 3


def test_a_backend_that_never_answers_stops_the_exporter_and_dead_letters_nothing() -> None:
    receiver = Receiver(lambda _: Reply(wait=30, stored=False))
    shipped = shipped_to(receiver, deliveries(4, jobs=4), timeout={"firstByte": 0.5, "giveUp": 2})
    assert str(shipped.error) == (
        "it was sent and no whole answer came in time (SocketTimeoutError: Timeout on reading data from socket); "
        "nothing got through for 2 s, the next run tries again"
    )
    assert shipped.letters == []


def test_slow_headers_are_waited_for_within_the_total() -> None:
    receiver = Receiver(lambda _: Reply(drip=0.01))
    assert shipped_to(receiver, [delivery()], timeout={"firstByte": 0.5, "total": 5}).counts == (1, 0, 0)
    assert receiver.run_ids == [run_id(delivery())]


def test_headers_that_drip_longer_than_the_total_are_an_unknown_outcome() -> None:
    receiver = Receiver(first(Reply(drip=0.1, stored=False)))
    began = time.monotonic()
    assert shipped_to(receiver, [delivery()], timeout={"firstByte": 1, "total": 0.5}).counts == (1, 0, 0)
    assert 0.5 <= time.monotonic() - began < 15
    assert receiver.run_ids == [run_id(delivery())]


def test_an_answer_after_a_minute_of_thought_is_waited_for() -> None:
    """Stands for the 52 s that Marquez takes for 2,000 datasets: no time-out but `firstByte` and `total` may end it."""
    receiver = Receiver(lambda _: Reply(wait=1.5))
    shipped = shipped_to(receiver, [delivery()], timeout={"connect": 0.5, "giveUp": 0.5})
    assert shipped.outputs == {"delivered": 1, "rejected": 0, "skipped": 0, "retried": 0}


def test_idle_connections_that_the_server_closed_cost_no_event() -> None:
    receiver = Receiver()

    async def run() -> Shipped:
        async with receiver.listening():

            async def closing() -> None:
                while True:
                    await asyncio.sleep(0.02)
                    receiver.drop_idle_connections()

            receiver.behave = lambda _: Reply(last=len(receiver.requests) % 3 == 0)
            return await ship(receiver.url, deliveries(60, jobs=3))

    shipped = asyncio.run(run())
    assert shipped.error is None
    assert shipped.counts == (60, 0, 0)
    assert sorted(set(receiver.run_ids)) == sorted(run_id(parcel) for parcel in deliveries(60, jobs=3))


def test_100_continue_before_the_answer_is_passed_over() -> None:
    receiver = Receiver(lambda _: Reply(before=b"HTTP/1.1 100 Continue\r\n\r\n"))
    assert shipped_to(receiver, deliveries(3)).outputs["retried"] == 0
    assert receiver.run_ids == [run_id(parcel) for parcel in deliveries(3)]


def test_connections_are_kept_and_no_more_than_max_in_flight_are_made() -> None:
    receiver = Receiver()
    assert shipped_to(receiver, deliveries(100, jobs=20), maxInFlight=4).counts == (100, 0, 0)
    assert receiver.connections == 4


def test_a_path_in_the_uri_is_kept() -> None:
    receiver = Receiver()

    async def run() -> None:
        async with receiver.listening():
            for uri in (f"{receiver.url}/lineage-proxy/", f"{receiver.url}/lineage-proxy"):
                await ship(uri, [delivery()])
            await ship(receiver.url, [delivery()], endpoint="/api/v2/events")

    asyncio.run(run())
    assert [request.target for request in receiver.requests] == [
        "/lineage-proxy/api/v1/lineage",
        "/lineage-proxy/api/v1/lineage",
        "/api/v2/events",
    ]


def test_a_request_says_what_it_carries_and_nothing_that_was_not_asked_for() -> None:
    receiver = Receiver()
    shipped_to(receiver, [delivery()], headers={"X-Team": "data"})
    (request,) = receiver.requests
    assert request.headers == {
        "host": f"127.0.0.1:{receiver.port}",
        "content-type": "application/json",
        "accept": "application/json",
        "accept-encoding": "identity",
        "user-agent": "waybill",
        "x-team": "data",
        "content-length": str(len(request.body)),
    }


def test_gzip_over_a_threshold_comes_with_its_header() -> None:
    receiver = Receiver()
    small, large = delivery(1), delivery(2, labels={"note": "x" * 5000})
    shipped_to(receiver, [small, large], compression={"type": "gzip", "over": 4000})
    assert [request.headers.get("content-encoding") for request in receiver.requests] == [None, "gzip"]
    assert int(receiver.requests[1].headers["content-length"]) < len(receiver.requests[1].body)
    assert receiver.run_ids == [run_id(small), run_id(large)]


class TestTls:
    def test_an_own_authority_is_trusted(self, tmp_path: Path) -> None:
        authority = Authority()
        (tmp_path / "ca.pem").write_text(authority.bundle)
        receiver = Receiver()
        tls = authority.server(tmp_path, authority.give())
        shipped = shipped_to(receiver, [delivery()], tls, tls={"caFile": str(tmp_path / "ca.pem")})
        assert shipped.counts == (1, 0, 0)
        assert receiver.run_ids == [run_id(delivery())]

    def test_an_unknown_authority_stops_the_exporter(self, tmp_path: Path) -> None:
        authority = Authority()
        receiver = Receiver()
        shipped = shipped_to(receiver, [delivery()], authority.server(tmp_path, authority.give()))
        assert "its certificate is not trusted" in str(shipped.error)
        assert "look at tls" in str(shipped.error)
        assert receiver.requests == []
        assert shipped.letters == []

    def test_an_expired_certificate_stops_the_exporter(self, tmp_path: Path) -> None:
        authority = Authority()
        (tmp_path / "ca.pem").write_text(authority.bundle)
        expired = authority.give(ends=datetime.now(UTC) - timedelta(days=1))
        receiver = Receiver()
        shipped = shipped_to(
            receiver, [delivery()], authority.server(tmp_path, expired), tls={"caFile": str(tmp_path / "ca.pem")}
        )
        assert "certificate has expired" in str(shipped.error)
        assert receiver.requests == []
        assert shipped.letters == []

    def test_a_bundle_that_is_none_stops_the_exporter(self, tmp_path: Path) -> None:
        (tmp_path / "ca.pem").write_text("no certificate")
        shipped = asyncio.run(ship("https://127.0.0.1:1", [delivery()], tls={"caFile": str(tmp_path / "ca.pem")}))
        assert str(shipped.error).startswith("tls: a certificate or key cannot be read (")


class TestProxies:
    def test_a_plain_request_goes_through_the_proxy(self) -> None:
        assert self._lines({}) == ["POST http://{receiver}/api/v1/lineage HTTP/1.1"]

    def test_the_environment_names_a_proxy_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self._lines({}, environment=monkeypatch) == ["POST http://{receiver}/api/v1/lineage HTTP/1.1"]

    def test_tls_goes_through_a_tunnel(self, tmp_path: Path) -> None:
        authority = Authority()
        (tmp_path / "ca.pem").write_text(authority.bundle)
        tls = authority.server(tmp_path, authority.give())
        lines = self._lines({"tls": {"caFile": str(tmp_path / "ca.pem")}}, tls)
        assert lines == ["CONNECT {receiver} HTTP/1.1"]

    def test_a_proxy_that_wants_to_know_who_asks_stops_the_exporter(self) -> None:
        async def run() -> Shipped:
            async with Receiver().listening() as receiver, Proxy("Basic xyz").listening() as proxy:
                return await ship(receiver.url, [delivery()], proxy=proxy.url)

        shipped = asyncio.run(run())
        assert str(shipped.error) == "HTTP 407: the proxy asks for credentials; look at proxy"
        assert shipped.letters == []

    def _lines(
        self,
        properties: dict[str, Any],
        tls: ssl.SSLContext | None = None,
        environment: pytest.MonkeyPatch | None = None,
    ) -> list[str]:
        """Ship one event through a proxy and return the first lines that it saw."""

        async def run() -> tuple[Receiver, Proxy, Shipped]:
            async with Receiver().listening(tls) as receiver, Proxy().listening() as proxy:
                through = dict(properties)
                if environment is None:
                    through["proxy"] = proxy.url
                else:
                    environment.setenv("http_proxy", proxy.url)
                    environment.setenv("no_proxy", "")
                return receiver, proxy, await ship(receiver.url, [delivery()], **through)

        receiver, proxy, shipped = asyncio.run(run())
        assert shipped.counts == (1, 0, 0)
        assert receiver.run_ids == [run_id(delivery())]
        return [line.replace(f"127.0.0.1:{receiver.port}", "{receiver}") for line in proxy.seen]
