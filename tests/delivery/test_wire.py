"""Servers that break the rules of HTTP or of good manners: late bytes, stalled bodies, slow reading, silent closing."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.delivering import QUICK, STARTED, Letters, Shipped, delivery, exporter_config, ship
from waybill.export.openlineage.exporter import OpenLineageExporter
from waybill.export.ports import Deadline, Outcome, Run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from waybill.export.ports import Delivery

    Script = Callable[[int, asyncio.StreamWriter], Awaitable[bool]]

CREATED = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"
STALLED = b"HTTP/1.1 %d Said\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{"
_BLOCK = 64 * 1024
REFUSED = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"


class Server:
    """Answers each request by a script, which is told the number of the request and says whether to go on.

    Attributes:
        bodies: of the requests that came whole.
        connections: how many were made.
    """

    def __init__(self, script: Script, pace: float = 0) -> None:
        self.bodies: list[bytes] = []
        self.connections = 0
        self._script = script
        self._pace = pace
        self._tasks: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Listen for as long as the block lasts, at the address that it gets."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
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
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                self.bodies.append(await self._body(reader))
                if not await self._script(len(self.bodies), writer):
                    break
        writer.close()

    async def _body(self, reader: asyncio.StreamReader) -> bytes:
        """Read a request, a block of its body every `pace` seconds."""
        head = await reader.readuntil(b"\r\n\r\n")
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
