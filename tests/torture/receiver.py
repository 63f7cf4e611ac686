"""A receiver of run events over real sockets, in a thread: it notes which run posted what, and answers at once."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from types import TracebackType

SETTLING_TURNS = 20
"""Turns of the loop: a connection that was just made needs several before what it brought is read."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_RUN = re.compile(rb"\r\nx-run: *(\d+)", re.IGNORECASE)


class Received(NamedTuple):
    """An event that was answered with success: who posted it, and its run id."""

    run: int
    run_id: str


class Receiver:
    """The receiver.

    Attributes:
        received: everything, in the order of arrival.
        down: whether it turns everything away.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.down = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        self.uri = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def settle(self) -> None:
        """Wait until everything that has arrived is noted."""
        asyncio.run_coroutine_threadsafe(self._turns(), self._loop).result()

    async def _turns(self) -> None:
        for _ in range(SETTLING_TURNS):
            await asyncio.sleep(0.001)

    async def _listen(self) -> asyncio.Server:
        return await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)

    def take(self, head: bytes, body: bytes) -> int:
        """Note a post and return the status of the answer."""
        if self.down:
            return 401
        run = _RUN.search(head)
        if run is None or not body:
            return 400
        self.received.append(Received(int(run[1]), json.loads(body)["run"]["runId"]))
        return 201


class _Connection(asyncio.Protocol):
    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[: end + 2]
            length = _LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._data) < whole:
                return
            status = self._receiver.take(head, self._data[end + 4 : whole])
            self._data = self._data[whole:]
            self._transport.write(b"HTTP/1.1 %d Answer\r\ncontent-length: 0\r\n\r\n" % status)
