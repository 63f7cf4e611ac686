"""Servers that break the rules of HTTP or of good manners: late bytes, stalled bodies, slow reading, silent closing."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.delivering import (
    QUICK,
    STARTED,
    Letters,
    Shipped,
    asset,
    delivery,
    exporter_config,
    job_name,
    run_id,
    ship,
)
from waybill.export.openlineage.exporter import OpenLineageExporter
from waybill.export.openlineage.patience import Patience
from waybill.export.ports import Deadline, Outcome, Run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from waybill.export.ports import Delivery

    Script = Callable[[int, asyncio.StreamWriter], Awaitable[bool]]
    Early = Callable[[asyncio.StreamWriter], Awaitable[None]]

CREATED = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"
STALLED = b"HTTP/1.1 %d Said\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{"
_BLOCK = 64 * 1024
REFUSED = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"


class Server:
    """Answers each request by a script, which is told the number of the request and says whether to go on.

    Attributes:
        bodies: of the requests that came whole.
        connections: how many were made.
        ended: how many of them the other side ended.

    Args:
        script: answers a request.
        pace: seconds for which it rests after each block of a body that it reads.
        early: says something before it reads a body.
    """

    def __init__(self, script: Script, pace: float = 0, early: Early | None = None) -> None:
        self.bodies: list[bytes] = []
        self.connections = 0
        self.ended = 0
        self._script = script
        self._early = early
        self._pace = pace
        self._tasks: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Listen for as long as the block lasts, at the address that it gets."""
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BLOCK)
        server = await asyncio.start_server(self._serve, sock=listener)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks)
            await server.wait_closed()

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._tasks.append(asyncio.create_task(self._answer(reader, writer)))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            going_on = True
            while going_on:
                self.bodies.append(await self._body(reader, writer))
                going_on = await self._script(len(self.bodies), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.ended += 1
        except asyncio.CancelledError:
            pass
        writer.close()

    async def _body(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """Read a request, a block of its body every `pace` seconds."""
        head = await reader.readuntil(b"\r\n\r\n")
        if self._early is not None:
            await self._early(writer)
        length = re.search(rb"content-length: (\d+)", head.lower())
        left, blocks = int(length[1]) if length else 0, []
        while left:
            blocks.append(await reader.readexactly(min(left, _BLOCK)))
            left -= len(blocks[-1])
            await asyncio.sleep(self._pace)
        return b"".join(blocks)


def answering(answer: bytes) -> Script:
    """Give every request the same answer."""

    async def script(_: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(answer)
        await writer.drain()
        return True

    return script


def stalling(status: int) -> Script:
    """Give every request the head of an answer and a part of its body."""

    async def script(_: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(STALLED % status)
        await asyncio.sleep(1)
        return False

    return script


def shipped_to(server: Server, parcels: list[Delivery], **properties: Any) -> Shipped:
    """Ship to a server that listens on a free port."""

    async def run() -> Shipped:
        async with server.listening() as url:
            return await ship(url, parcels, **{"backend": "generic", **properties})

    return asyncio.run(run())


def test_what_comes_on_an_idle_connection_is_not_the_next_events_answer() -> None:
    async def script(number: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(CREATED if number == 1 else REFUSED)
        if number == 1:
            await writer.drain()
            await asyncio.sleep(0.02)
            writer.write(CREATED)
        return True

    async def run() -> list[Outcome]:
        async with server.listening() as url:
            run = Run("company.platform", "ship", "ship_lineage", "key", STARTED, Deadline(30))
            exporter = OpenLineageExporter(exporter_config(url, backend="generic"), run, Letters(), QUICK)
            await exporter.open()
            outcomes = [await exporter.deliver(delivery(1))]
            await asyncio.sleep(0.1)
            outcomes.append(await exporter.deliver(delivery(2)))
            await exporter.close()
            return outcomes

    server = Server(script)
    assert asyncio.run(run()) == [Outcome.DELIVERED, Outcome.REJECTED]
    assert server.connections == 2


@pytest.mark.parametrize("timeout", [{"total": 0.3}, {"firstByte": 0.3}])
def test_a_201_whose_body_stalls_is_a_known_answer_and_repeats_nothing(timeout: dict[str, float]) -> None:
    server = Server(stalling(201))
    shipped = shipped_to(server, [delivery()], timeout=timeout)
    assert shipped.outputs == {"delivered": 1, "rejected": 0, "skipped": 0, "retried": 0}
    assert len(server.bodies) == 1


def test_a_400_whose_body_stalls_is_a_known_answer_and_repeats_nothing() -> None:
    server = Server(stalling(400))
    shipped = shipped_to(server, [delivery()], timeout={"total": 0.3})
    assert shipped.counts == (0, 1, 0)
    assert shipped.letters[0].reason == "HTTP 400: it refuses the event"
    assert len(server.bodies) == 1


def test_a_200_whose_body_stalls_is_unknown_where_the_body_says_what_was_taken() -> None:
    async def script(number: int, writer: asyncio.StreamWriter) -> bool:
        return await stalling(200)(number, writer) if number == 1 else await answering(CREATED)(number, writer)

    server = Server(script)
    shipped = shipped_to(server, [delivery()], backend="openmetadata", timeout={"total": 0.3})
    assert shipped.outputs == {"delivered": 1, "rejected": 0, "skipped": 0, "retried": 1}


def test_the_time_for_the_answer_begins_when_a_large_event_is_written() -> None:
    server = Server(answering(CREATED), pace=0.01)
    large = delivery(inputs=[asset("large", description="x" * 12_000_000)])
    shipped = shipped_to(server, [large], timeout={"firstByte": 1})
    assert shipped.outputs == {"delivered": 1, "rejected": 0, "skipped": 0, "retried": 0}
    assert [len(body) > 12_000_000 for body in server.bodies] == [True]


@pytest.mark.parametrize(("status", "counts"), [(201, (1, 0, 0)), (400, (0, 1, 0))])
def test_an_answer_before_a_large_event_is_written_is_seen_at_once(status: int, counts: tuple[int, int, int]) -> None:
    async def early(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 %d Said\r\nContent-Length: 0\r\n\r\n" % status)
        await writer.drain()

    server = Server(answering(b""), pace=0.05, early=early)
    large = delivery(inputs=[asset("large", description="x" * 12_000_000)])
    began = time.monotonic()
    shipped = shipped_to(server, [large])
    assert shipped.counts == counts
    assert time.monotonic() - began < 5


def test_after_100_continue_the_answer_has_its_time_too() -> None:
    server = Server(answering(b"HTTP/1.1 100 Continue\r\n\r\n"))
    began = time.monotonic()
    shipped = shipped_to(server, [delivery()], timeout={"firstByte": 0.3, "giveUp": 0.5})
    assert str(shipped.error).startswith("it was sent and no whole answer came in time (SocketTimeoutError")
    assert time.monotonic() - began < 10


def test_a_server_that_changes_the_protocol_stops_the_exporter() -> None:
    server = Server(answering(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"))
    shipped = shipped_to(server, [delivery()])
    assert str(shipped.error) == "HTTP 101: no HTTP status that means anything here"
    assert len(server.bodies) == 1


def test_a_large_event_that_was_given_up_does_not_arrive_later() -> None:
    server = Server(answering(CREATED), pace=0.05)
    large = delivery(inputs=[asset("large", description="x" * 12_000_000)])

    async def run() -> None:
        async with server.listening() as url:
            await ship(url, [large], backend="generic", timeout={"total": 0.3}, seconds=0.5)
            await asyncio.sleep(1)
            assert server.ended == server.connections

    asyncio.run(run())
    assert server.bodies == []


def test_a_look_up_that_hangs_is_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hanging(*_: Any, **__: Any) -> list[Any]:
        await asyncio.sleep(30)
        return []

    monkeypatch.setattr("aiohttp.TCPConnector._resolve_host", hanging)
    shipped = asyncio.run(ship("http://backend.invalid", [delivery()], timeout={"total": 0.2, "giveUp": 0.5}))
    assert str(shipped.error) == "no connection (TimeoutError); nothing got through for 0.5 s, the next run tries again"


def test_a_server_that_closes_after_each_answer_without_saying_so_costs_a_repeat_and_no_pause() -> None:
    async def script(_: int, writer: asyncio.StreamWriter) -> bool:
        writer.write(CREATED)
        return False

    server = Server(script)
    parcels = [delivery(number) for number in range(30)]
    began = time.monotonic()
    shipped = asyncio.run(_patiently(server, parcels))
    assert time.monotonic() - began < 3
    assert shipped.counts == (30, 0, 0)
    assert "breakerOpened" not in shipped.outputs
    assert [json.loads(body)["run"]["runId"] for body in server.bodies] == [run_id(parcel) for parcel in parcels]


async def _patiently(server: Server, parcels: list[Delivery]) -> Shipped:
    async with server.listening() as url:
        return await ship(url, parcels, Patience(), backend="generic")


def test_an_event_that_breaks_every_connection_has_three_tries_in_all() -> None:
    async def script(number: int, writer: asyncio.StreamWriter) -> bool:
        if json.loads(server.bodies[number - 1])["job"]["name"] == job_name("bad"):
            return False
        writer.write(CREATED)
        return True

    server = Server(script)
    good = [delivery(number, "good") for number in range(300)]
    shipped = shipped_to(server, [*good[:2], delivery(1, "bad"), *good[2:]], maxInFlight=2)
    assert shipped.counts == (300, 1, 0)
    assert shipped.letters[0].attempts == 3
    assert len(server.bodies) == 303
