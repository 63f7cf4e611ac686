"""One exchange over a connection of aiohttp: a request is written, the head of its answer is read."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp

from waybill.export.openlineage.outcomes import SUCCESS

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.http import RawResponseMessage
    from aiohttp.streams import StreamReader

    Head = tuple[RawResponseMessage, StreamReader]

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


def is_unfit(protocol: ResponseHandler | None, *, fresh: bool) -> bool:
    """Whether a kept connection is of no use: a fresh one is asked for, or something came that nobody asked for.

    What came is no answer to the next request, and would be read as one.
    """
    return protocol is not None and (fresh or protocol.should_close) and is_kept(protocol)


async def exchange(protocol: ResponseHandler, transport: asyncio.Transport, request: bytes) -> Head:
    """Write a request and read the head of its answer, which may come before all is written.

    The time for it begins when all is written, and again when a server says that it is at work.
    """
    early = None
    if len(request) > _PIECE:
        early = await _write_large(protocol, transport, request)
    else:
        transport.write(request)
        if transport.get_write_buffer_size():
            early = await _drained(protocol, transport)
    if early is not None:
        return early
    protocol.start_timeout()
    head = await protocol.read()
    while head[0].code in _INFORMATION:
        protocol.start_timeout()
        head = await protocol.read()
    return head


async def _write_large(protocol: ResponseHandler, transport: asyncio.Transport, request: bytes) -> Head | None:
    """Write a large request as fast as it is taken; return the head of an answer that comes before the end.

    A server that takes what it answered before the end still gets all of it. The system keeps little in buffers of its
    own: what lies there is not seen, and counted as sent.
    """
    _set(transport, socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _PIECE)
    for start in range(0, len(request), _PIECE):
        if transport.is_closing():
            break
        transport.write(request[start : start + _PIECE])
        early = await _drained(protocol, transport)
        if early is not None:
            if early[0].code in SUCCESS:
                transport.write(request[start + _PIECE :])
            return early
    return None


async def _drained(protocol: ResponseHandler, transport: asyncio.Transport) -> Head | None:
    """Wait until all is sent; return the head of an answer that comes before."""
    while transport.get_write_buffer_size():
        if protocol.should_close:
            early = await protocol.read()
            if early[0].code not in _INFORMATION:
                return early
        await asyncio.sleep(_A_MOMENT)
    return None
