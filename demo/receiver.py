"""A small OpenLineage receiver: it checks the shape of each run event and keeps it as a line of a file.

    with Receiver(Path("events.jsonl")) as receiver:
        ...  # POST to receiver.url + "/api/v1/lineage"
    receiver.received

    python -m demo.receiver PORT    # one to play with, until it is interrupted

It answers as the OpenLineage API says (https://openlineage.io/apidocs/openapi): 201 for an event that it has kept, 422
with one line per fault for one that it has not. It is no catalog: it remembers nothing but the lines.
"""

from __future__ import annotations

import argparse
import gzip
import json
import signal
import socket
import threading
import zlib
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import AnyUrl, AwareDatetime, BaseModel, Field, ValidationError

from waybill.faults import fault_lines

if TYPE_CHECKING:
    from types import TracebackType

LINEAGE = "/api/v1/lineage"
EVENTS = "/api/v1/events/lineage"
KEPT = Path("build/openlineage.jsonl")
LARGEST_BODY = 16 * 1024 * 1024

Name = Annotated[str, Field(min_length=1)]


class Run(BaseModel):
    """The run of an event."""

    runId: UUID  # noqa: N815
    facets: dict[str, Any] = Field(default_factory=dict)


class Named(BaseModel):
    """A job or a dataset of an event."""

    namespace: Name
    name: Name
    facets: dict[str, Any] = Field(default_factory=dict)


class RunEvent(BaseModel):
    """What every OpenLineage run event holds (spec 2-0-2)."""

    eventType: Literal["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]  # noqa: N815
    eventTime: AwareDatetime  # noqa: N815
    run: Run
    job: Named
    inputs: list[Named] = Field(default_factory=list)
    outputs: list[Named] = Field(default_factory=list)
    producer: AnyUrl
    schemaURL: AnyUrl  # noqa: N815


class Refused(Exception):
    """A request that is not taken, and why."""

    def __init__(self, status: HTTPStatus, *lines: str) -> None:
        self.status = status
        super().__init__("\n".join(lines))


class Receiver:
    """The receiver as a context manager, on a thread of its own.

    Args:
        path: the file that the events are added to, one JSON object a line; emptied at the start.
        host: the address to listen at.
        port: the port to listen at; 0 takes a free one.
    """

    def __init__(self, path: Path, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.path = path
        self.received = 0
        self._lock = threading.Lock()
        self._address = (host, port)
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The base URL. Only while the receiver runs."""
        if self._server is None:
            raise RuntimeError("the receiver does not run")
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def __enter__(self) -> Self:
        """Start to listen.

        Raises:
            OSError: the address is taken.
        """
        self._server = _Server(self._address, self)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"")
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening, and end what is open."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.hang_up()
            self._server.server_close()
            self._server = self._thread = None

    def keep(self, body: bytes) -> None:
        """Keep an event.

        Raises:
            Refused: it is not JSON or no run event.
        """
        try:
            event = json.loads(body)
        except ValueError:
            raise Refused(HTTPStatus.BAD_REQUEST, "the body is not JSON") from None
        try:
            RunEvent.model_validate(event)
        except ValidationError as error:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, *fault_lines(error)) from None
        line = json.dumps(event, separators=(",", ":")) + "\n"
        with self._lock, self.path.open("a") as file:
            file.write(line)
            self.received += 1

    def events(self) -> list[dict[str, Any]]:
        """Return the events that were kept, in the order of their coming."""
        with self._lock:
            return [json.loads(line) for line in self.path.read_text().splitlines()]


class _Server(ThreadingHTTPServer):
    """Answers each connection on a thread, and can end them all."""

    daemon_threads = False
    block_on_close = True

    def __init__(self, address: tuple[str, int], receiver: Receiver) -> None:
        self.receiver = receiver
        self.connections: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def hang_up(self) -> None:
        """End the connections that clients keep for later; their threads would wait for them."""
        for connection in tuple(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


class _Handler(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        super().finish()

    def do_POST(self) -> None:
        try:
            self._keep(self._body())
        except Refused as refusal:
            self._answer(refusal.status, {"code": refusal.status, "message": str(refusal)})
        else:
            self._answer(HTTPStatus.CREATED)

    def do_GET(self) -> None:
        receiver = self.server.receiver
        if self.path == EVENTS:
            events = receiver.events()
            self._answer(HTTPStatus.OK, {"events": events, "totalCount": len(events)})
        elif self.path == "/":
            self._answer(HTTPStatus.OK, {"received": receiver.received})
        else:
            self._answer(HTTPStatus.NOT_FOUND, {"message": f"GET answers at / and {EVENTS}"})

    def _keep(self, body: bytes) -> None:
        if self.path != LINEAGE:
            raise Refused(HTTPStatus.NOT_FOUND, f"POST goes to {LINEAGE}")
        self.server.receiver.keep(body)

    def _body(self) -> bytes:
        """Read the body, unpacked.

        Raises:
            Refused: it has no length, is too long, or is not what it says it is.
        """
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            self.close_connection = True
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "Content-Length is required")
        if int(length) > LARGEST_BODY:
            self.close_connection = True
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the most is {LARGEST_BODY} bytes")
        body = self.rfile.read(int(length))
        if self.headers.get("Content-Encoding", "identity") != "gzip":
            return body
        try:
            return gzip.decompress(body)
        except (OSError, EOFError, zlib.error):
            raise Refused(HTTPStatus.BAD_REQUEST, "the body is not gzip") from None

    def _answer(self, status: HTTPStatus, document: Any = None) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: whoever runs the receiver shows what it received."""


def main() -> None:
    """Run a receiver until it is interrupted."""
    parser = argparse.ArgumentParser(prog="demo.receiver", description=f"Take OpenLineage events into {KEPT}.")
    parser.add_argument("port", type=int, help="of 127.0.0.1, where it listens; 0 takes a free one")
    port: int = parser.parse_args().port
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # before there are threads, which might take them otherwise
    try:
        with Receiver(KEPT, port=port) as receiver:
            print(f"OpenLineage events to {receiver.url} are kept in {KEPT}", flush=True)
            signal.sigwait(ends)
    except OSError as error:
        parser.error(f"cannot listen at port {port}: {error.strerror}")


if __name__ == "__main__":
    main()
