"""One post over HTTP, and what came back of it.

httpx's requests over aiohttp's connections: httpx's own pool slows down with concurrency (`benchmarks/sender.py`).
Redirects are never followed, cookies and `~/.netrc` never used.
"""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING, Protocol

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from waybill.export.openlineage.outcomes import Answer, Verdict
from waybill.export.openlineage.troubles import trouble_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from waybill.export.openlineage.config import OpenLineageAssetExporter
    from waybill.export.ports import Deadline

KEEP_IDLE = 4.0
"""Seconds that an idle connection stays in use: fewer than any backend keeps one (Data.Rentgen 5, Marquez 30)."""

_LEAST_TIME = 0.05
_MOST_READ = 64 * 1024
_GZIP_LEVEL = 3
_JSON = {
    "content-type": "application/json",
    "accept": "application/json",
    "accept-encoding": "identity",
    "user-agent": "waybill",
}


class Sender(Protocol):
    """Posts one rendered event."""

    async def open(self) -> None:
        """Get ready."""

    async def post(self, body: bytes, token: str) -> Answer:
        """Post an event; `token` is the same for the same content at the same destination. Never raises for trouble."""
        ...

    async def close(self) -> None:
        """Give back connections."""


class HttpSender:
    """Posts to one address."""

    def __init__(
        self,
        config: OpenLineageAssetExporter,
        deadline: Deadline,
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        proxy: httpx.Proxy | None = None,
    ) -> None:
        self._url = httpx.URL(config.url)
        self._timeout = config.timeout
        self._gzip_over = config.compression.over if config.compression.type == "gzip" else None
        self._deadline = deadline
        self._headers = {**_JSON, **(headers or {})}
        self._most = config.max_in_flight
        self._tls = tls
        self._proxy = proxy
        self._transport: AiohttpTransport | None = None

    async def open(self) -> None:
        """Make the pool; connections are made when needed."""
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._most, keepalive_timeout=KEEP_IDLE, ssl=True if self._tls is None else self._tls
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        self._transport = AiohttpTransport(verify=False, client=session, proxy=self._proxy)

    async def close(self) -> None:
        """Close the connections."""
        if self._transport is not None:
            await self._transport.aclose()

    async def post(self, body: bytes, token: str) -> Answer:  # noqa: ARG002 - HTTP backends have no use for a token
        """Post an event and sort out what happened."""
        total = min(self._timeout.total, self._deadline.remaining())
        if total < _LEAST_TIME or self._transport is None:
            return Answer(fault="the time of the run is over", verdict=Verdict.RETRY)
        try:
            async with asyncio.timeout(total):
                return await self._exchange(self._transport, self._request(body, total))
        except TimeoutError:
            return Answer(fault=f"no whole answer within {total:g} s", verdict=Verdict.UNKNOWN)
        except (httpx.HTTPError, aiohttp.ClientError, OSError) as error:
            return trouble_of(error)

    def _request(self, body: bytes, total: float) -> httpx.Request:
        headers = self._headers
        if self._gzip_over is not None and len(body) > self._gzip_over:
            body = gzip.compress(body, _GZIP_LEVEL, mtime=0)
            headers = {**headers, "content-encoding": "gzip"}
        connect = min(self._timeout.connect, total)
        timeout = {"connect": connect, "pool": connect, "read": min(self._timeout.first_byte, total)}
        return httpx.Request("POST", self._url, headers=headers, content=body, extensions={"timeout": timeout})

    async def _exchange(self, transport: AiohttpTransport, request: httpx.Request) -> Answer:
        response = await transport.handle_async_request(request)
        try:
            body, whole = await _read(response)
        finally:
            await response.aclose()
        headers = response.headers
        return Answer(
            status=response.status_code,
            content_type=headers.get("content-type", ""),
            retry_after=headers.get("retry-after"),
            location=headers.get("location"),
            body=body,
            whole=whole,
        )


async def _read(response: httpx.Response) -> tuple[bytes, bool]:
    """Read the answer's body as far as it is of use, and tell whether it came to its end."""
    if response.headers.get("content-length") == "0":
        return b"", True
    body = b""
    try:
        async for part in response.aiter_raw():
            body += part
            if len(body) >= _MOST_READ:
                break
    except (httpx.HTTPError, aiohttp.ClientError):
        return body, False
    return body, True
