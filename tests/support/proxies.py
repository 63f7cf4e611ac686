"""A small HTTP proxy: it forwards plain requests and makes tunnels, and notes what went through."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Proxy:
    """Passes everything on.

    Args:
        login: what `Proxy-Authorization` must say; None: nobody is asked.

    Attributes:
        seen: the first line of each request.
    """

    def __init__(self, login: str | None = None) -> None:
        self._login = login
        self.seen: list[str] = []
        self.port = 0

    @property
    def url(self) -> str:
        """The address of the proxy."""
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Proxy]:
        """Listen for as long as the block lasts."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._pass_on(reader, writer)
        writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        self.seen.append(line.decode())
        if self._login is not None and f"proxy-authorization: {self._login}".lower() not in head.decode().lower():
            writer.write(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        method, target, version = line.decode().split(" ")
        tunnel = method == "CONNECT"
        host = urlsplit(f"//{target}" if tunnel else target)
        there_reader, there_writer = await asyncio.open_connection(host.hostname, host.port)
        if tunnel:
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            there_writer.write(f"{method} {host.path} {version}\r\n".encode() + rest)
        await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while part := await reader.read(65536):
            writer.write(part)
            await writer.drain()
    writer.close()
