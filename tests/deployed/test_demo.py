"""`make demo`, run as a user runs it: it shows the whole way, leaves its figures, and leaves nothing running."""

from __future__ import annotations

import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from demo.receiver import Receiver
from tests.support.openlineage_schema import check_event, spec_folder
from tools.emulator import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

JAFFLE = ROOT.parent / "shared" / "data" / "task-runs" / "jaffle_shop.jsonl"
needs_spec = pytest.mark.skipif(
    not spec_folder().is_dir(), reason="the schemas of OpenLineage are not beside this checkout"
)
BACKEND = ("OPENLINEAGE_URL", "OPENLINEAGE_ENDPOINT", "OPENLINEAGE_API_KEY", "OPENLINEAGE_BACKEND")


class Demo:
    """A demo in a process of its own, and every process that it ever had."""

    def __init__(self, folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.output = ""
        self._family: set[int] = set()
        plain = {name: value for name, value in os.environ.items() if name not in BACKEND}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "demo.run", *arguments, "--folder", str(folder)],
            cwd=ROOT,
            env=plain | dict(environment or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )

    def until(self, text: str) -> None:
        """Read what it shows until a text comes."""
        assert self._process.stdout is not None
        while text not in self.output:
            line = self._process.stdout.readline()
            assert line, f"the demo ended before it said {text!r}:\n{self.output}"
            self.output += line

    def signal(self, number: signal.Signals) -> None:
        self._family |= descendants(self._process.pid)
        self._process.send_signal(number)

    def end(self) -> int:
        """Wait for its end, and return its exit code."""
        assert self._process.stdout is not None
        while self._process.poll() is None:
            self._family |= descendants(self._process.pid)
            time.sleep(0.05)
        self.output += self._process.stdout.read()
        self._process.stdout.close()
        return self._process.returncode

    @property
    def left_behind(self) -> set[int]:
        """The processes of its family that still run."""
        return {pid for pid in self._family if alive(pid)}

    @property
    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = json.loads((self.folder / "summary.json").read_text())
        return summary

    @property
    def received(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "openlineage.jsonl").read_text().splitlines()]


def status(pid: int) -> tuple[str, int] | None:
    """Return the state and the parent of a process, None when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[1])


def alive(pid: int) -> bool:
    found = status(pid)
    return found is not None and found[0] != "Z"


def descendants(ancestor: int) -> set[int]:
    parents = {
        int(entry.name): found[1]
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and (found := status(int(entry.name)))
    }
    family = {ancestor}
    while found_more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= found_more
    return family - {ancestor}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    demo = Demo(tmp_path_factory.mktemp("warehouse"))
    assert demo.end() == 0, demo.output
    return demo


def test_all_that_is_recorded_is_shipped_and_filed(warehouse: Demo) -> None:
    summary = warehouse.summary

    assert {name: summary[name] for name in ("recorded", "shipped", "filed")} == {
        "recorded": 16,
        "shipped": 16,
        "filed": 16,
    }
    assert summary["endFetchedDate"].endswith("Z")
    assert list(summary["seconds"]) == ["build", "emulator", "deploy", "record", "settle", "ship", "again", "file"]


def test_the_receiver_got_one_event_per_lineage_event(warehouse: Demo) -> None:
    assert len(warehouse.received) == 16
    assert {event["eventType"] for event in warehouse.received} == {"COMPLETE", "FAIL"}


@needs_spec
def test_each_event_is_as_the_spec_says(warehouse: Demo) -> None:
    for event in warehouse.received:
        check_event(event)


def test_the_run_that_failed_keeps_its_edges(warehouse: Demo) -> None:
    (failed,) = (event for event in warehouse.received if event["eventType"] == "FAIL")

    assert failed["job"]["name"] == "build_marts.fct_orders"
    assert [asset["name"] for asset in failed["inputs"]] == [
        "warehouse.staging.stg_orders",
        "warehouse.staging.stg_payments",
    ]
    assert [asset["name"] for asset in failed["outputs"]] == ["warehouse.marts.fct_orders"]


def test_it_shows_each_step_the_counts_the_tree_and_where_the_files_are(warehouse: Demo) -> None:
    output = warehouse.output
    files = [path.name for path in (warehouse.folder / "files").iterdir()]

    assert [line.split()[1] for line in output.splitlines() if line.startswith("✓")] == list(
        warehouse.summary["seconds"]
    )
    assert "again    0 lineage events, for there is nothing new" in output
    assert "recorded  16  lineage events of 15 task runs in events/demo/warehouse.jsonl" in output
    assert "└── bi.dashboard.revenue publish.refresh_dashboard" in output
    assert "warehouse.marts.fct_orders build_marts.fct_orders FAILED" in output
    assert len(files) == 1
    assert re.search(rf"s3://company-lineage/kestra/\d{{4}}-\d\d-\d\d/{re.escape(files[0])}\n", output)


def test_it_leaves_no_process_behind(warehouse: Demo) -> None:
    assert warehouse.left_behind == set()


@pytest.mark.skipif(not JAFFLE.exists(), reason="the data of a real run is not beside this checkout")
def test_a_real_run_of_eight_models_is_recorded_shipped_and_filed(tmp_path: Path) -> None:
    demo = Demo(tmp_path / "demo", str(JAFFLE))

    assert demo.end() == 0, demo.output
    assert [demo.summary[name] for name in ("recorded", "shipped", "filed")] == [8, 8, 8]
    assert "jaffle_shop.main.customers dbt_build.customers" in demo.output
    (customers,) = (event for event in demo.received if event["job"]["name"] == "dbt_build.customers")
    assert [asset["name"] for asset in customers["inputs"]] == [
        "jaffle_shop.main.stg_customers",
        "jaffle_shop.main.stg_orders",
        "jaffle_shop.main.stg_payments",
    ]


class KeyedHandler(http.server.BaseHTTPRequestHandler):
    """Takes every event, and remembers with which key and where it came."""

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, str | None]]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, self.headers.get("Authorization")))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def keyed_backend() -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    seen: list[tuple[str, str | None]] = []
    handler = type("Handler", (KeyedHandler,), {"seen": seen})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", seen
    server.shutdown()
    thread.join()
    server.server_close()


def test_it_ships_to_the_backend_that_openlineages_variables_name(
    tmp_path: Path, keyed_backend: tuple[str, list[tuple[str, str | None]]]
) -> None:
    url, seen = keyed_backend
    environment = {"OPENLINEAGE_URL": url, "OPENLINEAGE_ENDPOINT": "v1/openlineage", "OPENLINEAGE_API_KEY": "demo-key"}
    demo = Demo(tmp_path / "demo", environment=environment)

    assert demo.end() == 0, demo.output
    assert seen == [("/v1/openlineage", "Bearer demo-key")] * 16
    assert demo.received == []
    assert "demo-key" not in demo.output + "".join(path.read_text() for path in demo.folder.glob("*.*"))


def test_a_backend_that_is_down_is_named_and_ends_the_demo(tmp_path: Path) -> None:
    with Receiver(tmp_path / "nothing.jsonl") as receiver:
        url = receiver.url
    demo = Demo(tmp_path / "demo", environment={"OPENLINEAGE_URL": url})

    assert demo.end() == 1
    assert "ExportFailed" in demo.output
    assert url in demo.output
    assert demo.left_behind == set()


def test_a_report_that_is_refused_is_named_with_its_faults(tmp_path: Path) -> None:
    reports = tmp_path / "reports.jsonl"
    reports.write_text('{"namespace": "company.data", "flowId": "build"}\n')
    demo = Demo(tmp_path / "demo", str(reports))

    assert demo.end() == 1
    assert "report 1: InvalidReport\n" in demo.output
    assert "taskRunId: is required\n" in demo.output
    assert demo.left_behind == set()


def test_input_that_is_not_there_is_named_before_anything_starts(tmp_path: Path) -> None:
    demo = Demo(tmp_path / "demo", str(tmp_path / "nothing.jsonl"))

    assert demo.end() == 1
    assert demo.output == f"{tmp_path}/nothing.jsonl: No such file or directory\n"


@pytest.mark.parametrize(
    ("after", "number"),
    [("✓ emulator", signal.SIGINT), ("✓ deploy", signal.SIGTERM), ("✓ record", signal.SIGINT)],
)
def test_stopped_at_any_step_it_leaves_no_process_behind(tmp_path: Path, after: str, number: signal.Signals) -> None:
    demo = Demo(tmp_path / "demo")
    demo.until(after)
    time.sleep(0.3)
    demo.signal(number)

    assert demo.end() == 130
    assert demo.output.endswith("stopped; nothing of it still runs\n")
    assert demo.left_behind == set()


def test_killed_outright_it_takes_its_emulator_along(tmp_path: Path) -> None:
    demo = Demo(tmp_path / "demo")
    demo.until("✓ deploy")
    demo.signal(signal.SIGKILL)
    demo.end()
    deadline = time.monotonic() + 10
    while demo.left_behind and time.monotonic() < deadline:
        time.sleep(0.1)

    assert demo.left_behind == set()
