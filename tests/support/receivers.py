"""Receivers over real sockets that answer as a test says: late, wrongly, half, or not at all."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import struct
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.openlineage_schema import check_event

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable

LINEAGE = "/api/v1/lineage"


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came in; header names in lower case, the body unzipped."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        """The body as JSON."""
        document: dict[str, Any] = json.loads(self.body)
        return document

    @property
    def job(self) -> str:
        """The name of the event's job."""
        name: str = self.event["job"]["name"]
        return name


@dataclass(frozen=True, slots=True)
class Reply:
    """How to answer a request.

    Attributes:
        stored: whether the event counts as received; None: when the status is 2xx.
        wait: seconds before the answer.
        drip: seconds between two bytes of the head.
        cut: how many bytes of the answer are sent before the connection ends; None: all.
        reset: end the connection by a reset instead of an answer.
        last: close the connection after the answer, without having said so.
        before: raw bytes that are sent before the answer.
    """

    status: int = 201
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    stored: bool | None = None
    wait: float = 0
    drip: float = 0
    cut: int | None = None
    reset: bool = False
    last: bool = False
    before: bytes = b""

    def to_bytes(self) -> bytes:
        """Write the answer as HTTP/1.1."""
        headers = {"content-length": str(len(self.body)), **self.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {self.status} Said\r\n{lines}\r\n".encode() + self.body


class Receiver:
    """Keeps the events that it took, each validated against the spec.

    Attributes:
        requests: every request that came in whole, in order.
        received: the events that count as taken, in order.
        connections: how many connections were made.
    """

    def __init__(self, behave: Callable[[Request], Reply] | None = None) -> None:
        self.behave = behave or (lambda request: Reply())  # noqa: ARG005
        self.requests: list[Request] = []
        self.received: list[dict[str, Any]] = []
        self.connections = 0
        self.port = 0
        self._scheme = "http"
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        """The base address."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def run_ids(self) -> list[str]:
        """The run ids of the events that were taken, in order."""
        return [event["run"]["runId"] for event in self.received]

    @property
    def jobs(self) -> list[str]:
        """The jobs of the events that were taken, in order."""
        return [event["job"]["name"] for event in self.received]

    @asynccontextmanager
    async def listening(self, tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[Receiver]:
        """Listen for as long as the block lasts."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=tls, limit=8 * 1024 * 1024)
        self._scheme = "https" if tls else "http"
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for writer in self._writers:
                writer.close()
            await server.wait_closed()

    def drop_idle_connections(self) -> None:
        """Close every connection, as a server does with idle ones."""
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while await self._answer(await _request(reader), writer):
                pass
        self._writers.discard(writer)
        writer.close()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        self.requests.append(request)
        reply = self.behave(request)
        if request.method == "POST" and (reply.status // 100 == 2 if reply.stored is None else reply.stored):
            check_event(request.event)
            self.received.append(request.event)
        await asyncio.sleep(reply.wait)
        if reply.reset:
            _reset(writer)
            return False
        writer.write(reply.before)
        answer = reply.to_bytes()[: reply.cut]
        for part in [bytes([byte]) for byte in answer] if reply.drip else [answer]:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(reply.drip)
        return reply.cut is None and not reply.last


async def _request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    pairs = (line.split(":", 1) for line in head[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    return Request(method, target, headers, body)


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection by RST: what is still to be sent is thrown away."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def first(*replies: Reply) -> Callable[[Request], Reply]:
    """Answer with these replies, one after the other, and with 201 from then on."""
    left = list(replies)
    return lambda request: left.pop(0) if left and request.method == "POST" else Reply()


def for_job(job: str, reply: Reply) -> Callable[[Request], Reply]:
    """Answer every event of one job with a reply, and everything else with 201."""
    return lambda request: reply if request.method == "POST" and request.job == job else Reply()
