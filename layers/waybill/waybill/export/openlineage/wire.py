"""One exchange over a connection of aiohttp: a request is written, the head of its answer is read."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.http import RawResponseMessage
    from aiohttp.streams import StreamReader

    Head = tuple[RawResponseMessage, StreamReader]

SUCCESS = range(200, 300)
_INFORMATION = (100, *range(102, 200))
_PIECE = 256 * 1024
_A_MOMENT = 0.002
_AT_ONCE = struct.pack("ii", 1, 0)


def reset(transport: asyncio.Transport) -> None:
    """End a connection at once, and throw away what is still to be sent: it must not arrive after a later event."""
    _set(transport, socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    transport.abort()


def _set(transport: asyncio.Transport, level: int, option: int, value: int | bytes) -> None:
    """Set an option of the socket, if it is still open."""
    open_socket = transport.get_extra_info("socket")
    if open_socket is not None:
        with suppress(OSError):
            open_socket.setsockopt(level, option, value)


def is_kept(protocol: ResponseHandler) -> bool:
    """Whether a connection has carried a request before: only then does it know a time for the answer."""
    return protocol.read_timeout is not None


def nothing_came(error: Exception) -> bool:
    """Whether a connection broke before any byte of an answer; aiohttp hands over what came."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return isinstance(error.message, str)
    return isinstance(error, OSError) and not isinstance(error, TimeoutError)


async def write(protocol: ResponseHandler, transport: asyncio.Transport, request: bytes) -> Head | None:
    """Write a request, a large one as fast as it is taken; return the head of an answer that comes before the end.

    A server that takes what it answered before the end still gets all of it. The time for the answer begins at the end.
    Of a large one the system keeps little in buffers of its own: what lies there is not seen, and counted as sent.
    """
    if len(request) > _PIECE:
        _set(transport, socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _PIECE)
    for start in range(0, len(request), _PIECE):
        if transport.is_closing():
            break
        transport.write(request[start : start + _PIECE])
        while transport.get_write_buffer_size():
            if protocol.should_close and (early := await protocol.read())[0].code not in _INFORMATION:
                if early[0].code in SUCCESS:
                    transport.write(request[start + _PIECE :])
                return early
            await asyncio.sleep(_A_MOMENT)
    protocol.start_timeout()
    return None


async def final(protocol: ResponseHandler) -> Head:
    """Read the head of the answer; what a server says before it only shows that it is at work."""
    head = await protocol.read()
    while head[0].code in _INFORMATION:
        protocol.start_timeout()
        head = await protocol.read()
    return head
