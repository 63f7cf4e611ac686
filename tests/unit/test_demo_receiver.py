"""The demo's receiver takes run events as the OpenLineage API does, and keeps them."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from demo.receiver import EVENTS, LINEAGE, Receiver
from tools.emulator import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EVENT: dict[str, Any] = {
    "eventType": "COMPLETE",
    "eventTime": "2026-12-01T09:00:00.000Z",
    "run": {"runId": "01941f29-7c00-7c3e-8e1b-6a1f5d2c9b10"},
    "job": {"namespace": "company.data", "name": "build_marts.fct_orders"},
    "inputs": [{"namespace": "company.data", "name": "warehouse.staging.stg_orders"}],
    "outputs": [{"namespace": "company.data", "name": "warehouse.marts.fct_orders"}],
    "producer": "https://example.com/producer",
    "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
}


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with Receiver(tmp_path / "events.jsonl") as receiver:
        yield receiver


@pytest.fixture
def client(receiver: Receiver) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=receiver.url, trust_env=False) as client:
        yield client


def test_an_event_is_answered_with_201_and_nothing_and_becomes_a_line(receiver: Receiver, client: httpx.Client) -> None:
    answer = client.post(LINEAGE, json=EVENT)

    assert (answer.status_code, answer.content) == (201, b"")
    assert [json.loads(line) for line in receiver.path.read_text().splitlines()] == [EVENT]
    assert receiver.received == 1


def test_a_packed_event_is_unpacked(receiver: Receiver, client: httpx.Client) -> None:
    body = gzip.compress(json.dumps(EVENT).encode())

    assert client.post(LINEAGE, content=body, headers={"Content-Encoding": "gzip"}).status_code == 201
    assert receiver.events() == [EVENT]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"eventType": "DONE"}, "eventType: must be 'START', 'RUNNING', 'COMPLETE', 'ABORT', 'FAIL' or 'OTHER'"),
        ({"eventTime": "2026-12-01T09:00:00"}, "eventTime: input should have timezone info"),
        ({"run": {}}, "run.runId: is required"),
        ({"job": {"namespace": "company.data", "name": ""}}, "job.name: string should have at least 1 character"),
        ({"inputs": [{"name": "orders"}]}, "inputs[0].namespace: is required"),
        ({"outputs": None}, "outputs: must be a JSON list"),
    ],
)
def test_an_event_of_another_shape_is_refused_by_path(
    receiver: Receiver, client: httpx.Client, change: dict[str, Any], line: str
) -> None:
    answer = client.post(LINEAGE, json=EVENT | change)

    assert (answer.status_code, answer.json()) == (422, {"code": 422, "message": line})
    assert receiver.events() == []


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "message"),
    [
        (LINEAGE, b"{", {}, 400, "the body is not JSON"),
        (LINEAGE, b"plain", {"Content-Encoding": "gzip"}, 400, "the body is not gzip"),
        (LINEAGE + "/", b"{}", {}, 404, "POST goes to /api/v1/lineage"),
    ],
)
def test_what_is_no_event_is_refused(
    client: httpx.Client, path: str, body: bytes, headers: dict[str, str], status: int, message: str
) -> None:
    answer = client.post(path, content=body, headers=headers)

    assert (answer.status_code, answer.json()["message"]) == (status, message)


def test_a_connection_goes_on_after_a_refusal(receiver: Receiver, client: httpx.Client) -> None:
    client.post("/elsewhere", json=EVENT)
    client.post(LINEAGE, json=EVENT)

    assert receiver.received == 1


def test_it_tells_what_it_received(client: httpx.Client) -> None:
    client.post(LINEAGE, json=EVENT)

    assert client.get("/").json() == {"received": 1}
    assert client.get(EVENTS).json() == {"events": [EVENT], "totalCount": 1}


def test_its_end_leaves_no_thread_though_a_client_keeps_its_connection(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with Receiver(tmp_path / "events.jsonl") as receiver, httpx.Client(trust_env=False) as client:
        client.get(receiver.url)
        receiver.__exit__(None, None, None)

        assert set(threading.enumerate()) == before


def started(folder: Path, port: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "demo.receiver", str(port)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_run_by_hand_it_keeps_events_until_it_is_interrupted(tmp_path: Path, end: signal.Signals) -> None:
    process = started(tmp_path, 0)
    assert process.stdout is not None
    said = process.stdout.readline().split()
    url = said[3]
    assert httpx.post(url + LINEAGE, json=EVENT, trust_env=False).status_code == 201

    process.send_signal(end)

    assert process.communicate(timeout=10) == ("", "")
    assert process.returncode == 0
    assert " ".join(said) == f"OpenLineage events to {url} are kept in build/openlineage.jsonl"
    assert json.loads((tmp_path / "build" / "openlineage.jsonl").read_text()) == EVENT


def test_a_port_that_is_taken_is_said_in_words(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        process = started(tmp_path, port)
        _, errors = process.communicate(timeout=20)

    assert process.returncode == 2
    assert errors.splitlines()[-1] == f"demo.receiver: error: cannot listen at port {port}: Address already in use"
