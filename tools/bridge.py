"""Lets containers reach a server of this machine that listens on the loopback interface alone.

On Linux, `host.docker.internal` is the address of Docker's bridge. Listening there, and not everywhere, keeps an
emulator, which runs whatever it is sent, from the rest of the network. Elsewhere Docker reaches the loopback by itself.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import sys

USUAL_ADDRESS = "172.17.0.1"
_INTERFACE = b"docker0"
_SIOCGIFADDR = 0x8915
_IP_FREEBIND = 15
"""Lets a socket wait at an address that the machine does not have yet: Docker may be started later."""


def bridge_address() -> str:
    """Return the address of Docker's bridge, or the one that it usually gets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, struct.pack("256s", _INTERFACE))
        except OSError:
            return USUAL_ADDRESS
    return socket.inet_ntoa(answer[20:24])


async def forward(port: int) -> None:
    """Pass on what arrives at the bridge's port to the same port of the loopback interface, for ever."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
    listener.bind((bridge_address(), port))

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))

    async with await asyncio.start_server(connect, sock=listener) as server:
        await server.serve_forever()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


if __name__ == "__main__":
    asyncio.run(forward(int(sys.argv[1])))
