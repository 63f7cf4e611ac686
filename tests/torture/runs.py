"""Runs of the engine, each in a process of its own that may be killed or frozen at a point.

`python -m tests.torture.runs` is a process that has everything imported and forks a child for each line of its
standard input; `Forks` drives one.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import traceback
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.support.shipping import NAMESPACE, RETENTION
from tests.support.tables import Tables, aws_client
from tests.torture.clock import SharedClock
from tests.torture.points import OddPages, Points, watch_calls, watch_posts, watched_loop
from tools.emulator import ROOT
from waybill.errors import WaybillError
from waybill.export.files.exporter import FileExporter
from waybill.export.openlineage.exporter import OpenLineageExporter
from waybill.model.flow import parse_flow
from waybill.ship import checkpoints
from waybill.ship.flow import run_flow
from waybill.ship.services import Services
from waybill.store.catalog import AssetStore
from waybill.store.dead_letters import DeadLetters
from waybill.store.keyvalue import KeyValueStore
from waybill.store.log_reader import LogReader
from waybill.store.objects import Objects
from waybill.store.shards import Shards
from waybill.store.states import States

if TYPE_CHECKING:
    from types import TracebackType

SETTLE = timedelta(seconds=6)
SHIPPER_SKEW = timedelta(seconds=1)
"""By which the clock of a run may be wrong, either way."""

IN_FLIGHT = 4
FLOW_ID = "load"
"""The flow that is shipped; what the others record is dropped by the filter."""

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Order:
    """What a run is to be.

    Attributes:
        kind: of the point at which the run is struck, "" for none.
        number: which of that kind.
        signal_number: what strikes it.
        checkpoint: answers per checkpoint.
        uri: of the receiver; "" ships to files.
        result: the file that a run which lives writes its end to.
    """

    run: int
    seed: int
    tables: Tables
    clock: str
    result: str
    uri: str
    first_shards: int
    kind: str = ""
    number: int = 0
    signal_number: int = signal.SIGKILL
    checkpoint: int = 200
    throttled: float = 0.0
    odd_pages: float = 0.0
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended, or that it was stopped.

    Attributes:
        answer: of the flow; None when it failed or was killed.
        error: why it failed.
        crash: the traceback of an error that should never come.
        counts: the points it passed, by kind.
    """

    pid: int
    killed: bool = False
    stopped: bool = False
    answer: dict[str, Any] | None = None
    error: str = ""
    crash: str = ""
    counts: dict[str, int] | None = None

    @property
    def complete(self) -> bool:
        """Whether the run reached the end of the log."""
        return bool(self.answer and self.answer["outputs"]["ship_lineage"]["complete"])

    @property
    def busy(self) -> bool:
        """Whether another run held the lease."""
        return bool(self.answer and "busy" in self.answer["outputs"]["ship_lineage"])


class Forks:
    """Starts runs, one at a time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._result = Path()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.runs", self._url],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()

    def start(self, order: Order) -> None:
        """Start a run."""
        self._result = Path(order.result)
        self._result.unlink(missing_ok=True)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(order)) + "\n")
        self._process.stdin.flush()

    def end(self) -> End:
        """Wait until the run has ended or stopped."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process that starts runs is gone: {self._process.wait()}")
        said = json.loads(line)
        if said["stopped"] or said["signal"]:
            return End(said["pid"], stopped=said["stopped"], killed=said["signal"] == signal.SIGKILL)
        return End(said["pid"], **json.loads(self._result.read_text()))

    def run(self, order: Order) -> End:
        """Start a run and wait for its end."""
        self.start(order)
        return self.end()


def _ship(order: Order, points: Points, dynamodb: Any, s3: Any) -> dict[str, Any]:
    """Run the flow as the function does, on the clock of the world."""
    checkpoints.ANSWERS_PER_CHECKPOINT = order.checkpoint
    checkpoints.MOST_UNSAVED = 2 * order.checkpoint
    rng = random.Random(order.seed)  # noqa: S311 - to be the same again, not to be secret
    shared = SharedClock(Path(order.clock))
    skew = rng.uniform(-1, 1) * SHIPPER_SKEW

    def clock() -> datetime:
        return shared() + skew

    for client in (dynamodb, s3):
        watch_calls(points, client, rng, order.throttled if client is dynamodb else 0.0)
    watch_posts(points)
    tables = order.tables
    objects = Objects(s3, tables.bucket)

    def exporter(config: Any, run: Any) -> Any:
        if order.uri:
            return OpenLineageExporter(config, run, DeadLetters(dynamodb, tables.key_values, objects, RETENTION))
        return FileExporter(config, run, s3, tables.bucket)

    services = Services(
        key_values=KeyValueStore(dynamodb, tables.key_values, RETENTION, clock),
        states=States(dynamodb, tables.key_values),
        log=LogReader(OddPages(dynamodb, rng, order.odd_pages), tables.lineage, objects),
        shards=Shards(dynamodb, tables.lineage, order.first_shards, clock),
        assets=AssetStore(dynamodb, tables.catalog),
        barred=lambda _: [],
        exporter=exporter,
        settle=SETTLE,
        clock=clock,
    )
    with asyncio.Runner(loop_factory=lambda: watched_loop(points)) as runner:
        return runner.run(run_flow(services, parse_flow(_flow(order)), order.seconds, f"run-{order.run}"))[0]


def _flow(order: Order) -> dict[str, Any]:
    exporter: dict[str, Any] = {"id": "files", "type": "FileAssetExporter", "format": "JSON", "maxLinesPerFile": 20}
    if order.uri:
        exporter = {
            "id": "receiver",
            "type": "OpenLineageAssetExporter",
            "uri": order.uri,
            "backend": "generic",
            "maxInFlight": IN_FLIGHT,
            "headers": {"x-run": str(order.run)},
        }
    task = {
        "id": "ship_lineage",
        "type": "AssetShipper",
        "flowId": FLOW_ID,
        "lookbackPeriod": "P2D",
        "assetExporters": [exporter],
    }
    return {"id": "torture", "namespace": NAMESPACE, "tasks": [task]}


def _child(order: Order, dynamodb: Any, s3: Any) -> None:
    _die_with_parent()
    points = Points(order.kind, order.number, order.signal_number)
    said: dict[str, Any] = {}
    try:
        said["answer"] = _ship(order, points, dynamodb, s3)
    except WaybillError as error:
        said["error"] = f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001 - whatever it is, the harness must hear of it
        said["crash"] = traceback.format_exc()
    Path(order.result).write_text(json.dumps(said | {"counts": points.counts}))
    os._exit(0)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _main(url: str) -> None:
    """Fork a child for each order, and tell how it ends."""
    _die_with_parent()
    dynamodb, s3 = aws_client(url, "dynamodb", 5), aws_client(url, "s3", 5)
    for line in sys.stdin:
        said = json.loads(line)
        order = Order(**said | {"tables": Tables(**said["tables"])})
        pid = os.fork()
        if not pid:
            _child(order, dynamodb, s3)
        stopped = True
        while stopped:
            _, status = os.waitpid(pid, os.WUNTRACED)
            stopped = os.WIFSTOPPED(status)
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            print(json.dumps({"pid": pid, "stopped": stopped, "signal": number}), flush=True)


if __name__ == "__main__":
    _main(sys.argv[1])
