"""A stand-in for Marquez that answers by what was measured on a real one (`openlineage.md` 3.1), and can be read back.

It stores, refuses, breaks its own lists and goes down as the real one does; the suite that uses it runs unchanged
against a real server.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.openlineage_schema import check_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HTML = b"<html><head><title>Error 500</title></head><body>There was an error processing your request.</body></html>"
STATES = {
    "START": "RUNNING",
    "RUNNING": "RUNNING",
    "OTHER": "RUNNING",
    "COMPLETE": "COMPLETED",
    "FAIL": "FAILED",
    "ABORT": "ABORTED",
}
_NAMESPACE = re.compile(r"[A-Za-z0-9:;=/_\-.@+]{1,1024}")
_KNOWN_FACETS = frozenset(
    ("schema", "documentation", "parent", "nominalTime", "jobType", "sql", "sourceCodeLocation", "columnLineage",
     "symlinks", "dataSource", "lifecycleStateChange")
)  # fmt: skip
_INDEXED = 2_700
_LONGEST_COLUMN = 255

Answer = tuple[int, bytes]


class _Refused(Exception):
    def __init__(self, status: int, body: bytes) -> None:
        self.answer = (status, body)


@dataclass
class Marquez:
    """What the server holds, and what is wrong with it.

    Attributes:
        events: what was stored, in order of arrival.
        down: every request is answered as when the database is down.
        hook: answers a post in the place of the server, or None to let it pass.
        poisoned: lists answer 500 from now on.
    """

    events: list[dict[str, Any]] = field(default_factory=list)
    down: bool = False
    hook: Callable[[dict[str, Any]], Answer | None] = lambda event: None  # noqa: ARG005 - the shape of a hook
    poisoned: list[str] = field(default_factory=list)
    posts: int = 0
    reset_after_storing: int = 0
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def listening(self) -> Iterator[Marquez]:
        """Listen on a free port for as long as the block lasts."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"marquez": self}))
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()

    def post(self, body: bytes) -> Answer:
        """Take an event as the real one does."""
        self.posts += 1
        try:
            event = json.loads(body, parse_constant=_no_constant)
        except ValueError:
            return 500, b'{"code": 400, "message": "Unable to process JSON"}'
        if not isinstance(event, dict):
            return 500, b'{"code": 400, "message": "Unable to process JSON"}'
        answer = self.hook(event)
        if answer is not None:
            return answer
        if self.down:
            return 500, HTML
        try:
            self._check(event)
        except _Refused as refused:
            return refused.answer
        check_event(event)
        self.events.append(event)
        return 201, b""

    def _check(self, event: dict[str, Any]) -> None:
        _require_fields(event)
        _require_times(event)
        datasets = [*event.get("inputs", ()), *event.get("outputs", ())]
        job = event["job"]
        if not job["name"].strip() or not job["namespace"].strip() or len(job["namespace"]) > 1024:
            self.poisoned.append("job")
            raise _Refused(400, HTML)
        if "\\u0000" in json.dumps(event) or any(_too_long(dataset) for dataset in datasets):
            raise _Refused(500, HTML)
        for dataset in datasets:
            if not _NAMESPACE.fullmatch(dataset["namespace"]) or not dataset["name"].strip():
                self.poisoned.append("dataset")
                raise _Refused(400, HTML)
            self._notice_poison(dataset.get("facets", {}))
        parent = event["run"].get("facets", {}).get("parent")
        if parent and not parent["job"]["name"].strip():
            self.poisoned.append("parent")

    def _notice_poison(self, facets: dict[str, Any]) -> None:
        source = facets.get("dataSource", {})
        if not source.get("uri") or not str(source.get("name", "")).strip():
            self.poisoned.append("sources")
        for identifier in facets.get("symlinks", {}).get("identifiers", ()):
            if not _NAMESPACE.fullmatch(identifier["namespace"]):
                self.poisoned.append("symlink")

    def get(self, target: str) -> Answer:
        """Answer a question about what is stored."""
        if self.down:
            return 500, HTML
        parts = urlsplit(target)
        steps = [unquote(step) for step in parts.path.removeprefix("/api/v1/").split("/")]
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        match steps:
            case ["namespaces"] | ["jobs"] | ["sources"] | ["namespaces", _, "jobs" | "datasets"]:
                return (500, HTML) if self.poisoned else (200, json.dumps({"totalCount": 0}).encode())
            case ["namespaces", namespace, "jobs", name]:
                return _found(self._job(namespace, name))
            case ["namespaces", namespace, "datasets", name]:
                return _found(self._dataset(namespace, name))
            case ["jobs", "runs", run]:
                return _found(self._run(run))
            case ["events", "lineage"]:
                return 200, json.dumps({"events": self._between(query)}).encode()
            case ["lineage"]:
                return 200, json.dumps({"graph": self._graph()}).encode()
        return 404, HTML

    def _between(self, query: dict[str, str]) -> list[dict[str, Any]]:
        after, before = (datetime.fromisoformat(query[name]) for name in ("after", "before"))
        return [event for event in self.events if after <= datetime.fromisoformat(event["eventTime"]) < before]

    def _run(self, run: str) -> dict[str, Any] | None:
        mine = [event for event in self.events if event["run"]["runId"] == run]
        if not mine:
            return None
        started = next(
            (event["eventTime"] for event in reversed(mine) if event["eventType"] in ("START", "RUNNING")), None
        )
        state = STATES[mine[-1]["eventType"]]
        ended = mine[-1]["eventTime"] if state != "RUNNING" else None
        span = datetime.fromisoformat(ended) - datetime.fromisoformat(started) if started and ended else None
        duration = span.total_seconds() * 1000 if span else None
        return {"id": run, "state": state, "startedAt": started, "endedAt": ended, "durationMs": duration}

    def _job(self, namespace: str, name: str) -> dict[str, Any] | None:
        mine = [
            event for event in self.events if (event["job"]["namespace"], event["job"]["name"]) == (namespace, name)
        ]
        if not mine:
            return None
        newest = mine[-1]["run"]["runId"]
        sides = {
            side: [
                {"namespace": ns, "name": dataset}
                for ns, dataset in dict.fromkeys(
                    (item["namespace"], item["name"])
                    for event in self.events
                    if event["run"]["runId"] == newest
                    for item in event[side]
                )
            ]
            for side in ("inputs", "outputs")
        }
        return {"id": {"namespace": namespace, "name": name}, "name": name, "latestRun": self._run(newest), **sides}

    def _dataset(self, namespace: str, name: str) -> dict[str, Any] | None:
        for event in reversed(self.events):
            for item in (*event["outputs"], *event["inputs"]):
                if (item["namespace"], item["name"]) == (namespace, name):
                    facets = item.get("facets", {})
                    description = facets.get("documentation", {}).get("description")
                    fields = facets.get("schema", {}).get("fields", [])
                    return {"name": name, "description": description, "fields": fields, "facets": facets}
        return None

    def _graph(self) -> list[dict[str, Any]]:
        jobs = dict.fromkeys((event["job"]["namespace"], event["job"]["name"]) for event in self.events)
        edges = []
        for namespace, name in jobs:
            job = self._job(namespace, name) or {}
            own = f"job:{namespace}:{name}"
            edges += [(f"dataset:{item['namespace']}:{item['name']}", own) for item in job["inputs"]]
            edges += [(own, f"dataset:{item['namespace']}:{item['name']}") for item in job["outputs"]]
        nodes = dict.fromkeys(node for edge in edges for node in edge)
        return [
            {"id": node, "outEdges": [{"origin": node, "destination": there} for here, there in edges if here == node]}
            for node in nodes
        ]


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _found(document: dict[str, Any] | None) -> Answer:
    if document is None:
        return 404, b'{"code": 404, "message": "not found"}'
    return 200, json.dumps(document).encode()


def _require_fields(event: dict[str, Any]) -> None:
    errors = [name for name in ("run", "job", "producer", "eventTime") if not event.get(name)]
    errors += [name for name in ("namespace", "name") if not isinstance(event.get("job", {}).get(name), str)]
    errors += [] if event.get("run", {}).get("runId") else ["runId"]
    sides = [event.get("inputs", []), event.get("outputs", [])]
    if any(dataset is None for side in sides for dataset in side or ()):
        raise _Refused(500, HTML)
    datasets = [dataset for side in sides for dataset in side]
    errors += [f"dataset {name}" for dataset in datasets for name in ("namespace", "name") if dataset.get(name) is None]
    holders = [event.get("run", {}), event.get("job", {}), *datasets]
    for facets in (holder.get("facets", {}) for holder in holders):
        errors += [
            f"{key}.{name}"
            for key, facet in facets.items()
            if key in _KNOWN_FACETS
            for name in ("_producer", "_schemaURL")
            if not facet.get(name)
        ]
        if "jobType" in facets and not all(
            facets["jobType"].get(n) for n in ("processingType", "integration", "jobType")
        ):
            errors.append("jobType")
        errors += ["field name" for item in facets.get("schema", {}).get("fields", ()) if not item.get("name")]
    if errors:
        raise _Refused(422, json.dumps({"errors": errors}).encode())


def _require_times(event: dict[str, Any]) -> None:
    try:
        zoned = "T" in event["eventTime"] and datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    except ValueError:
        zoned = False
    if not zoned:
        raise _Refused(500, b'{"code": 400, "message": "Unable to process JSON"}')


def _too_long(dataset: dict[str, Any]) -> bool:
    facets = dataset.get("facets", {})
    columns = [item["name"] for item in facets.get("schema", {}).get("fields", ())]
    return len(dataset["name"].encode()) > _INDEXED or any(len(name) > _LONGEST_COLUMN for name in (*facets, *columns))


class _Handler(BaseHTTPRequestHandler):
    marquez: Marquez
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path != "/api/v1/lineage":
            self._answer(404, HTML)
            return
        with self.marquez.lock:
            status, answer = self.marquez.post(body)
            silent = self.marquez.reset_after_storing > 0
            self.marquez.reset_after_storing -= silent
        if silent:
            self.close_connection = True
            self.connection.close()
        else:
            self._answer(status, answer)

    def do_GET(self) -> None:
        with self.marquez.lock:
            status, answer = self.marquez.get(self.path)
        self._answer(status, answer)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if body.startswith(b"<") else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
