"""One post over HTTP, and what came back of it.

The posts go straight to aiohttp's session: httpx's own pool slows down with concurrency, and its requests and responses
over aiohttp's connections cost half as much again (`benchmarks/sender.py`). Redirects are never followed, cookies and
`~/.netrc` never used.
"""

from __future__ import annotations

import asyncio
import gzip
import io
from typing import TYPE_CHECKING, Any, Protocol

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from waybill.export.openlineage.auth import auth_of
from waybill.export.openlineage.connection import proxy_of, tls_context
from waybill.export.openlineage.outcomes import Answer, Verdict
from waybill.export.openlineage.troubles import trouble_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from waybill.export.openlineage.config import OpenLineageAssetExporter, Timeout
    from waybill.export.openlineage.mapping import RunEvent
    from waybill.export.ports import Deadline

KEEP_IDLE = 4.0
"""Seconds that an idle connection stays in use: fewer than any backend keeps one (Data.Rentgen 5, Marquez 30)."""

_SUCCESS = range(200, 300)
_LEAST_TIME = 0.01
_MOST_READ = 64 * 1024
_LARGE = 1024 * 1024
_GZIP_LEVEL = 3
_COMMON = {
    "content-type": "application/json",
    "accept": "application/json",
    "accept-encoding": "identity",
    "user-agent": "waybill",
}


class Sender(Protocol):
    """Posts a rendered event once. Trouble is an answer, never an exception."""

    async def open(self) -> None:
        """Get ready.

        Raises:
            ExporterStopped: a secret or certificate cannot be had.
        """

    async def post(self, event: RunEvent) -> Answer:
        """Post an event."""
        ...

    async def get(self, url: str) -> Answer:
        """Read something."""
        ...

    async def renew(self, credentials: int) -> bool:
        """Get new credentials after the given ones were refused; return whether there is any use in trying again."""
        ...

    async def close(self) -> None:
        """Give back connections."""


class HttpSender:
    """Posts to one address."""

    def __init__(self, config: OpenLineageAssetExporter, url: str, deadline: Deadline) -> None:
        self._config = config
        self._url = URL(url)
        self._gzip_over = config.compression.over if config.compression.type == "gzip" else None
        self._deadline = deadline
        self._auth = auth_of(config.auth)
        self._proxy: dict[str, Any] = {}
        self._timeout = _timeout(config.timeout, config.timeout.total)
        self._headers: dict[bool, tuple[Mapping[str, str], CIMultiDict[str]]] = {}
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Make the pool and the credentials; connections are made when needed.

        Raises:
            ExporterStopped: a secret or certificate cannot be had.
        """
        tls = await asyncio.to_thread(tls_context, self._config) if self._url.scheme == "https" else True
        address, credentials = await asyncio.to_thread(proxy_of, self._config)
        if address is not None:
            login = aiohttp.BasicAuth(*credentials) if credentials else None
            self._proxy = {"proxy": address, "proxy_auth": login}
        connector = aiohttp.TCPConnector(limit=self._config.max_in_flight, keepalive_timeout=KEEP_IDLE, ssl=tls)
        self._session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
        )
        await self._auth.open(self._session)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def post(self, event: RunEvent) -> Answer:
        """Post an event and sort out what happened."""
        body, zipped = event.body, False
        if self._gzip_over is not None and len(body) > self._gzip_over:
            body, zipped = gzip.compress(body, _GZIP_LEVEL, mtime=0), True
        return await self._exchange("POST", self._url, body, zipped=zipped)

    async def get(self, url: str) -> Answer:
        """Read something from the backend."""
        return await self._exchange("GET", URL(url, encoded=True), b"", zipped=False)

    async def renew(self, credentials: int) -> bool:
        """Get new credentials; return whether there is any use in trying again.

        Raises:
            ExporterStopped: they cannot be had.
        """
        return self._session is not None and await self._auth.renew(self._session, credentials)

    async def _exchange(self, method: str, url: URL, body: bytes, *, zipped: bool) -> Answer:
        session, remaining = self._session, self._deadline.remaining()
        if remaining < _LEAST_TIME or session is None:
            return Answer(fault="the time of the run is over", verdict=Verdict.RETRY)
        timeout = self._timeout
        if remaining < self._config.timeout.total:
            timeout = _timeout(self._config.timeout, remaining)
        auth = self._auth
        credentials = auth.credentials
        own = await auth.headers(method, url, body)
        headers = self._headers_with(own, zipped=zipped)
        data = io.BytesIO(body) if len(body) > _LARGE else body
        try:
            async with session.request(
                method, url, data=data, headers=headers, allow_redirects=False, timeout=timeout, **self._proxy
            ) as response:
                answer = await _answer(response, credentials, own)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return trouble_of(error)
        if auth.unproven and answer.status in _SUCCESS:
            auth.unproven = False
        return answer

    def _headers_with(self, own: Mapping[str, str], *, zipped: bool) -> CIMultiDict[str]:
        """Return the headers of a request; made again only when the credentials' have changed."""
        made_of, made = self._headers.get(zipped, (None, None))
        if made is None or made_of is not own:
            made = CIMultiDict({**_COMMON, **self._config.headers, **own})
            if zipped:
                made["content-encoding"] = "gzip"
            self._headers[zipped] = own, made
        return made


def _timeout(timeout: Timeout, most: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(
        total=min(timeout.total, most),
        connect=min(timeout.connect, most),
        sock_connect=min(timeout.connect, most),
        sock_read=min(timeout.first_byte, most),
    )


async def _answer(response: aiohttp.ClientResponse, credentials: int, secrets: Mapping[str, str]) -> Answer:
    """Read an answer; should it repeat our credentials, they are struck out."""
    if response.content_length == 0 and response.status in _SUCCESS:
        return Answer(response.status, credentials=credentials)
    headers = response.headers
    body, whole = await _read(response)
    for secret in secrets.values():
        body = body.replace(secret.rpartition(" ")[2].encode(), b"***")
    return Answer(
        status=response.status,
        content_type=headers.get("content-type", ""),
        retry_after=headers.get("retry-after"),
        location=headers.get("location"),
        body=body,
        whole=whole,
        credentials=credentials,
    )


async def _read(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """Read the answer's body as far as it is of use, and tell whether it came to its end."""
    body = b""
    try:
        async for part in response.content.iter_any():
            body += part
            if len(body) >= _MOST_READ:
                response.close()
                break
    except (aiohttp.ClientError, TimeoutError, OSError):
        return body, False
    return body, True
