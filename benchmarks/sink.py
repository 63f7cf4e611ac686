"""An S3 that takes everything and keeps nothing, in a process of its own: the writer is measured, not the store."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_BEGUN = b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
_DONE = b"<CompleteMultipartUploadResult><ETag>1</ETag></CompleteMultipartUploadResult>"
_NOTHING = b"<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>"
BLOCK = 1024 * 1024


class _Sink(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        self._swallow()
        self._answer(b"")

    def do_POST(self) -> None:
        self._swallow()
        self._answer(_BEGUN if self.path.endswith("?uploads") else _DONE)

    def do_GET(self) -> None:
        self._answer(_NOTHING)

    def do_DELETE(self) -> None:
        self._answer(b"")

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _swallow(self) -> None:
        left = int(self.headers.get("Content-Length", 0))
        block = memoryview(bytearray(min(left, BLOCK)))
        while left:
            left -= self.rfile.readinto(block[: min(left, BLOCK)])

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def sink() -> Iterator[str]:
    """Run a sink on a free port of the loopback interface; the block gets its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Sink)
    child = os.fork()
    if not child:
        server.serve_forever()
        os._exit(0)
    server.server_close()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
