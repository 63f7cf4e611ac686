"""An OpenLineage receiver that takes everything and keeps nothing, in a process of its own: the sender is measured."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import socketserver
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ANSWER = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"
_LENGTH = re.compile(rb"(?i)content-length: *(\d+)")
_END = b"\r\n\r\n"


class _Takes(asyncio.Protocol):
    def __init__(self) -> None:
        self._data = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        data = self._data + data if self._data else data
        while (end := data.find(_END)) >= 0 and len(data) >= (size := end + len(_END) + _length(data[:end])):
            data = data[size:]
            if self._transport is not None and not self._transport.is_closing():
                self._transport.write(_ANSWER)
        self._data = data


async def _serve(listening: socket.socket) -> None:
    server = await asyncio.get_running_loop().create_server(_Takes, sock=listening)
    await server.serve_forever()


class _TakesItsTime(socketserver.StreamRequestHandler):
    """Answers after a delay that is kept to the tenth of a millisecond, which timers of an event loop do not."""

    delay = 0.0

    def setup(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().setup()

    def handle(self) -> None:
        while head := self._head():
            self.rfile.read(_length(head))
            time.sleep(self.delay)
            self.wfile.write(_ANSWER)

    def _head(self) -> bytes:
        """Return the head of the next request, empty when there is none."""
        lines = []
        while (line := self.rfile.readline()).strip():
            lines.append(line)
        return b"".join(lines)


def _serve_slowly(listening: socket.socket, delay: float) -> None:
    handler = type("Handler", (_TakesItsTime,), {"delay": delay})
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    server.daemon_threads = True
    server.serve_forever()


def _length(head: bytes) -> int:
    said = _LENGTH.search(head)
    return int(said[1]) if said else 0


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
        _serve_slowly(listening, delay) if delay else asyncio.run(_serve(listening))
        os._exit(0)
    listening.close()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
