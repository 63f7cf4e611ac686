"""An OpenLineage receiver that takes everything and keeps nothing, in a process of its own: the sender is measured."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ANSWER = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"
_LENGTH = b"content-length:"


class _Takes(asyncio.Protocol):
    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._data = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (size := self._request_size()) is not None and len(self._data) >= size:
            self._data = self._data[size:]
            asyncio.get_running_loop().call_later(self._delay, self._answer) if self._delay else self._answer()

    def _request_size(self) -> int | None:
        head, end, _ = self._data.partition(b"\r\n\r\n")
        if not end:
            return None
        _, _, rest = head.lower().partition(_LENGTH)
        return len(head) + len(end) + int(rest.split(b"\r\n", 1)[0])

    def _answer(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(_ANSWER)


async def _serve(listening: socket.socket, delay: float) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: _Takes(delay), sock=listening)
    await server.serve_forever()


@contextmanager
def receiver(delay: float = 0.0) -> Iterator[str]:
    """Run a receiver on a free port of the loopback interface; the block gets its address.

    Args:
        delay: seconds before each answer.
    """
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    port = listening.getsockname()[1]
    child = os.fork()
    if not child:
        asyncio.run(_serve(listening, delay))
        os._exit(0)
    listening.close()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
