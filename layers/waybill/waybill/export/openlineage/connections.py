"""httpx's requests over aiohttp's connections.

httpx's own pool slows down with concurrency, and a session of aiohttp makes anew for each request what is the same for
all requests of a run: a third of a post's CPU (`benchmarks/sender.py`). So pool, TLS, proxies and parser are aiohttp's,
and a request is written here. Redirects are never followed, cookies and `~/.netrc` never used.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import TYPE_CHECKING

import aiohttp
import httpx
from aiohttp.http import HttpProcessingError
from yarl import URL

from waybill.export.openlineage.connection import proxy_of, tls_of
from waybill.export.openlineage.outcomes import SUCCESS
from waybill.export.openlineage.wire import exchange, is_kept, is_unfit, nothing_came, reset

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from aiohttp.connector import Connection
    from aiohttp.streams import StreamReader

    from waybill.export.openlineage.config import OpenLineageAssetExporter
    from waybill.export.openlineage.connection import Login

KEEP_IDLE = 4.0
"""Seconds that an idle connection stays in use: fewer than any backend keeps one (Data.Rentgen 5, Marquez 30)."""

SENT = "sent"
"""The mark among a request's extensions that a connection was had for it: without it nothing was sent."""
FRESH = "fresh"
"""Asks, among a request's extensions, for a connection that was not used before."""

_BLOCK = 64 * 1024
_TROUBLES = (aiohttp.ClientError, HttpProcessingError, OSError)


class KeptConnectionBroke(httpx.ReadError):
    """A connection that was kept broke before any byte of an answer: most likely the server had closed it before."""


class Connections(httpx.AsyncBaseTransport):
    """The connections of one exporter; they are made when needed."""

    def __init__(self, config: OpenLineageAssetExporter, headers: Mapping[str, str]) -> None:
        """Get ready: read certificates and secrets, which takes a while.

        Args:
            config: of the exporter.
            headers: of all requests.

        Raises:
            ExporterStopped: a certificate or secret cannot be had.
        """
        address, credentials = proxy_of(config)
        self._tls = tls_of(config, address)
        self._proxy = URL(address) if address is not None else None
        self._proxy_headers = {} if credentials is None else {"Proxy-Authorization": _basic(credentials)}
        connecting = config.timeout.connect
        self._timeout = aiohttp.ClientTimeout(connect=connecting, sock_connect=connecting)
        self._patience = config.timeout.first_byte
        self._most = config.max_in_flight
        self._headers = headers
        self._connector: aiohttp.TCPConnector | None = None
        self._opening: _Opening | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, whose body is in memory, and return the head of its answer.

        Raises:
            httpx.ConnectError: nothing was sent; its cause is aiohttp's own error, which tells more.
            httpx.ReadError: it was sent, and no answer came; the same.
            KeptConnectionBroke: as that.
        """
        try:
            opening = self._opening_of(request)
            connection = await self._pool().connect(opening.request, [], self._timeout)
            while is_unfit(connection.protocol, fresh=FRESH in request.extensions):
                connection.close()
                connection = await self._pool().connect(opening.request, [], self._timeout)
        except (aiohttp.ClientError, OSError) as error:
            raise httpx.ConnectError(str(error)) from error
        request.extensions[SENT] = True
        transport = connection.transport
        try:
            return await self._exchange(connection, opening.head(len(request.content)) + request.content)
        except BaseException:
            if transport is not None:
                reset(transport)
            connection.close()
            raise

    async def _exchange(self, connection: Connection, request: bytes) -> httpx.Response:
        """Write a request and read the head of its answer."""
        protocol, transport = connection.protocol, connection.transport
        if protocol is None or transport is None:
            raise httpx.ConnectError("the connection was lost")
        kept = is_kept(protocol)
        protocol.set_response_params(read_timeout=self._patience, read_until_eof=True, auto_decompress=False)
        try:
            message, payload = await exchange(protocol, transport, request)
        except _TROUBLES as error:
            raise (KeptConnectionBroke if kept and nothing_came(error) else httpx.ReadError)(str(error)) from error
        answer = _Answer(connection, payload, taken=message.code in SUCCESS)
        return httpx.Response(message.code, headers=message.raw_headers, stream=answer)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._connector is not None:
            await self._connector.close()

    def _pool(self) -> aiohttp.TCPConnector:
        if self._connector is None:
            self._connector = aiohttp.TCPConnector(limit=self._most, keepalive_timeout=KEEP_IDLE)
        return self._connector

    def _opening_of(self, request: httpx.Request) -> _Opening:
        """Return the opening of a request; most have the same as the one before."""
        last = self._opening
        if last is not None and last.headers is request.headers and last.url is request.url:
            return last
        tunnelled = request.url.scheme == "https"
        made = aiohttp.ClientRequest(
            request.method,
            URL(str(request.url), encoded=True),
            headers={**self._headers, **request.headers, **({} if tunnelled else self._proxy_headers)},
            loop=asyncio.get_running_loop(),
            ssl=self._tls,
            proxy=self._proxy,
            proxy_headers=dict(self._proxy_headers) if tunnelled else None,
        )
        self._opening = _Opening(request, made)
        return self._opening


def _basic(login: Login) -> str:
    return f"Basic {b64encode(f'{login.name}:{login.password}'.encode()).decode()}"


class _Opening:
    """What requests to one address with the same headers have in common.

    Attributes:
        request: what a connection is asked for with.
        url, headers: of the request that it was made of.
    """

    def __init__(self, source: httpx.Request, request: aiohttp.ClientRequest) -> None:
        self.url = source.url
        self.headers = source.headers
        self.request = request
        self._head = b""

    def head(self, length: int) -> bytes:
        """Return the head of a request with a body of so many bytes."""
        if not self._head:
            request = self.request
            through = request.proxy is not None and not request.is_ssl()
            target = str(request.url) if through else request.url.raw_path_qs
            headers = {name.lower(): value for name, value in request.headers.items()}
            headers.pop("content-length", None)
            lines = [f"{request.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
            self._head = "\r\n".join(lines).encode() + b"\r\ncontent-length: "
        return b"%b%d\r\n\r\n" % (self._head, length)


class _Answer(httpx.AsyncByteStream):
    """The body of an answer; `taken` when what is still to be written of the request is to arrive."""

    def __init__(self, connection: Connection, payload: StreamReader, *, taken: bool) -> None:
        self._connection = connection
        self._payload = payload
        self._taken = taken

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for block in self._payload.iter_chunked(_BLOCK):
                yield block
        except _TROUBLES as error:
            raise httpx.ReadError(str(error)) from error

    async def aclose(self) -> None:
        """Give the connection back, or close it when the request or the answer is not at its end."""
        transport = self._connection.transport
        if self._payload.is_eof() and transport is not None and not transport.get_write_buffer_size():
            self._connection.release()
            return
        self._connection.close()
        if transport is not None and not self._taken:
            transport.abort()
