"""One post over HTTP, and what came back of it."""

from __future__ import annotations

import asyncio
import gzip
from functools import cache
from typing import TYPE_CHECKING, Protocol

import httpx

from waybill.export.openlineage.auth import auth_of
from waybill.export.openlineage.connections import FRESH, SENT, Connections
from waybill.export.openlineage.outcomes import SUCCESS, Answer, Verdict
from waybill.export.openlineage.troubles import trouble_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from waybill.export.openlineage.config import OpenLineageAssetExporter
    from waybill.export.openlineage.mapping import RunEvent
    from waybill.export.ports import Deadline

_NO_BODY = ((b"Content-Length", b"0"), (b"content-length", b"0"))
_LEAST_TIME = 0.01
_MOST_READ = 64 * 1024
_MOST_READ_OF_USE = 8 * 1024 * 1024
"""Of the answer to a question, and of one that may name each event of a batch."""
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
        self._url = httpx.URL(url)
        self._gzip_over = config.compression.over if config.compression.type == "gzip" else None
        self._deadline = deadline
        self._auth = auth_of(config.auth, deadline)
        self._most = config.timeout.total
        self._headers: dict[bool, tuple[Mapping[str, str], httpx.Headers]] = {}
        self._broken: set[str] = set()
        self._connections: Connections | None = None

    async def open(self) -> None:
        """Make the pool and the credentials; connections are made when needed.

        Raises:
            ExporterStopped: a secret or certificate cannot be had.
        """
        self._connections = await asyncio.to_thread(Connections, self._config, _COMMON)
        await self._auth.open(self._connections)

    async def close(self) -> None:
        """Close the connections."""
        if self._connections is not None:
            await self._connections.aclose()

    async def post(self, event: RunEvent) -> Answer:
        """Post an event and sort out what happened; over a fresh connection after a kept one broke."""
        body, zipped = event.body, False
        if self._gzip_over is not None and len(body) > self._gzip_over:
            body, zipped = gzip.compress(body, _GZIP_LEVEL, mtime=0), True
        fresh = event.id in self._broken
        answer = await self._exchange("POST", self._url, body, zipped=zipped, fresh=fresh)
        if fresh:
            self._broken.discard(event.id)
        elif answer.stale:
            self._broken.add(event.id)
        return answer

    async def get(self, url: str) -> Answer:
        """Read something from the backend; asked again when a kept connection broke."""
        answer = await self._exchange("GET", httpx.URL(url), b"", zipped=False)
        if answer.stale:
            answer = await self._exchange("GET", httpx.URL(url), b"", zipped=False, fresh=True)
        return answer

    async def renew(self, credentials: int) -> bool:
        """Get new credentials; return whether there is any use in trying again.

        Raises:
            ExporterStopped: they cannot be had.
        """
        return self._connections is not None and await self._auth.renew(self._connections, credentials)

    async def _exchange(self, method: str, url: httpx.URL, body: bytes, *, zipped: bool, fresh: bool = False) -> Answer:
        connections = self._connections
        if self._deadline.remaining() < _LEAST_TIME or connections is None:
            return Answer(fault="the time of the run is over", verdict=Verdict.RETRY)
        auth = self._auth
        credentials = auth.credentials
        own = await auth.headers(method, url, body)
        if method == "POST":
            request: httpx.Request = _Post(url, self._headers_with(own, zipped=zipped), body)
        else:
            request = httpx.Request(method, url, headers={**self._config.headers, **own})
        if fresh:
            request.extensions[FRESH] = True
        response: httpx.Response | None = None
        try:
            async with asyncio.timeout(min(self._most, self._deadline.remaining())):
                response = await connections.handle_async_request(request)
                try:
                    answer = await _answer(response, credentials, own)
                finally:
                    await response.aclose()
        except (httpx.HTTPError, TimeoutError) as error:
            if response is None:
                return trouble_of(error, sent=SENT in request.extensions)
            answer = _answered(response, credentials, own, b"", whole=False)
        if auth.unproven and answer.status in SUCCESS:
            auth.unproven = False
        return answer

    def _headers_with(self, own: Mapping[str, str], *, zipped: bool) -> httpx.Headers:
        """Return the headers of a post but for those of every request; made again only when the credentials' change."""
        made_of, made = self._headers.get(zipped, (None, None))
        if made is None or made_of is not own:
            made = httpx.Headers({**self._config.headers, **own, **({"content-encoding": "gzip"} if zipped else {})})
            self._headers[zipped] = own, made
        return made


class _Post(httpx.Request):
    """A post whose parts are at hand: making a request of them in httpx's own way takes a quarter of the whole post."""

    def __init__(self, url: httpx.URL, headers: httpx.Headers, body: bytes) -> None:
        self.method = "POST"
        self.url = url
        self.headers = headers
        self.extensions = {}
        self._content = body


async def _answer(response: httpx.Response, credentials: int, secrets: Mapping[str, str]) -> Answer:
    """Read an answer."""
    if response.status_code in SUCCESS and any(said in response.headers.raw for said in _NO_BODY):
        return _taken(response.status_code, credentials)
    body, whole = await _read(response)
    return _answered(response, credentials, secrets, body, whole=whole)


@cache
def _taken(status: int, credentials: int) -> Answer:
    """Return the answer that most posts get: a success without a word."""
    return Answer(status, credentials=credentials)


def _answered(
    response: httpx.Response, credentials: int, secrets: Mapping[str, str], body: bytes, *, whole: bool
) -> Answer:
    """Make an answer; should it repeat our credentials, they are struck out."""
    headers = response.headers
    location = headers.get("location")
    for header in secrets.values():
        secret = header.removeprefix("Bearer ").removeprefix("Basic ")
        body = body.replace(secret.encode(), b"***")
        location = location and location.replace(secret, "***")
    return Answer(
        status=response.status_code,
        content_type=headers.get("content-type", ""),
        retry_after=headers.get("retry-after"),
        location=location,
        body=body,
        whole=whole,
        credentials=credentials,
    )


async def _read(response: httpx.Response) -> tuple[bytes, bool]:
    """Read the answer's body, unzipped, as far as it is of use; tell whether it came to its end."""
    most = _MOST_READ_OF_USE if response.status_code in SUCCESS else _MOST_READ
    zipped = "content-encoding" in response.headers
    body = bytearray()
    try:
        async for part in response.aiter_bytes() if zipped else response.aiter_raw():
            body += part
            if len(body) > most:
                return bytes(body[:most]), False
    except httpx.HTTPError:
        return bytes(body), False
    return bytes(body), True
