"""`make demo`: the whole way of lineage on an emulator, from task run reports to a backend and to files.

    python -m demo.run [REPORTS.jsonl] [--folder build/demo]

Ships to OPENLINEAGE_URL (with OPENLINEAGE_ENDPOINT, OPENLINEAGE_API_KEY and OPENLINEAGE_BACKEND) when that is set, else
to a receiver of its own. Whatever happens, it leaves no process behind.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from demo.flows import Backend, backend_of, file_flow, ship_flow
from demo.job import Delivery, DemoFault, deliver, fetch, keep_secret, read_reports, record, run_once
from demo.lineage import lineage_of
from demo.picture import Steps, counts_table, lineage_tree
from demo.receiver import Receiver
from tools.build import build
from tools.emulator import ROOT, Emulator, EmulatorError
from tools.stack import FunctionFailed, Stack, deploy
from waybill import errors

if TYPE_CHECKING:
    from types import FrameType

REPORTS = ROOT / "events" / "demo" / "warehouse.jsonl"
FOLDER = ROOT / "build" / "demo"
SETTLE_SECONDS = 2
COMPANY_BUCKET = "company-lineage"
SHIPPER, FILE_EXPORTER = "ShipperFunction", "FileExporterFunction"


class Demo:
    """One run of the demo.

    Args:
        console: where to show it.
        reports: a file of task run reports, one a line.
        folder: where what it finds is written; emptied first.
    """

    def __init__(self, console: Console, reports: Path, folder: Path) -> None:
        self._console = console
        self._path = reports
        self._folder = folder
        self._steps = Steps(console)

    def run(self) -> None:
        """Run it and show what came of it.

        Raises:
            DemoFault, EmulatorError, FunctionFailed: it could not be done; the message says why.
        """
        reports = read_reports(self._path)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        with self._steps.step("build", "the functions and layers of template.yaml"):
            build("host")
        with ExitStack() as running:
            with self._steps.step("emulator", "of AWS, on a free port"):
                emulator = running.enter_context(Emulator(enforce_iam=True, log=self._folder / "emulator.log"))
            receiver = running.enter_context(Receiver(self._folder / "openlineage.jsonl"))
            with self._steps.step("deploy", "template.yaml to the emulator"):
                stack = self._deployed(emulator)
            with self._steps.step("record", "task run reports") as say:
                recorded = len(record(stack, reports, say))
            with self._steps.step("settle", f"the log is read {SETTLE_SECONDS} s behind now"):
                time.sleep(SETTLE_SECONDS)
            backend = backend_of(os.environ) or Backend(receiver.url)
            shipped = self._ship(stack, backend, recorded)
            filed, events = self._file(stack, recorded)
        self._write_summary(recorded, shipped, len(events))
        self._show(len(reports), recorded, backend, shipped, filed, events)

    def _deployed(self, emulator: Emulator) -> Stack:
        """Deploy the stack, and make the bucket of the guide's company, in which it may file."""
        parameters = {"SettleSeconds": str(SETTLE_SECONDS), "ExportBucket": COMPANY_BUCKET}
        stack = deploy(emulator, parameters=parameters)
        stack.client("s3").create_bucket(Bucket=COMPANY_BUCKET)
        return stack

    def _ship(self, stack: Stack, backend: Backend, recorded: int) -> Delivery:
        """Ship all that was recorded, then once more, which must find nothing to send."""
        secret = keep_secret(stack, backend.api_key) if backend.api_key else None
        flow = ship_flow(backend.exporter(secret))
        with self._steps.step("ship", f"to {backend.uri}") as say:
            shipped = deliver(stack, SHIPPER, flow, recorded, say)
            say(f"{shipped.size} lineage events to {backend.uri}")
        with self._steps.step("again", "the same flow once more") as say:
            second = Delivery()
            run_once(stack, SHIPPER, flow, second)
            say(f"{second.size} lineage events, for there is nothing new")
            if second.size:
                raise DemoFault(f"shipping again sent {second.size} lineage events; it must send none")
        return shipped

    def _file(self, stack: Stack, recorded: int) -> tuple[Delivery, list[dict[str, Any]]]:
        """File all that was recorded, and bring the files home before the emulator is gone."""
        with self._steps.step("file", "in S3") as say:
            filed = deliver(stack, FILE_EXPORTER, file_flow(COMPANY_BUCKET), recorded, say)
            events = fetch(stack, filed.uris, self._folder / "files")
            say(f"{len(events)} lineage events in {len(filed.uris)} file{'s' * (len(filed.uris) != 1)}")
            return filed, events

    def _write_summary(self, recorded: int, shipped: Delivery, filed: int) -> None:
        summary = {
            "recorded": recorded,
            "shipped": shipped.size,
            "filed": filed,
            "endFetchedDate": shipped.end_fetched_date,
            "seconds": self._steps.seconds,
        }
        (self._folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")

    def _show(
        self,
        reports: int,
        recorded: int,
        backend: Backend,
        shipped: Delivery,
        filed: Delivery,
        events: list[dict[str, Any]],
    ) -> None:
        folder = _short(self._folder)
        rows = [
            ("recorded", recorded, f"lineage events of {reports} task runs in {_short(self._path)}"),
            ("shipped", shipped.size, f"to {backend.uri}, the log up to {shipped.end_fetched_date}"),
            ("filed", len(events), f"in S3, copied to {folder / 'files'}"),
        ]
        self._console.print()
        self._console.print(counts_table(rows))
        for uri in filed.uris:
            self._console.print(f"          [dim]{escape(uri)}[/]", soft_wrap=True, highlight=False)
        self._console.print()
        self._console.print(lineage_tree(lineage_of(events)))
        self._console.print(f"\n[dim]written: {folder}/summary.json, {folder}/openlineage.jsonl[/]")


def _short(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - what a signal handler is given
    """End the demo, once: what ends it must not be ended in turn."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    """Run the demo and return the exit code."""
    parser = argparse.ArgumentParser(prog="demo", description="Record, ship and file lineage on an emulator.")
    parser.add_argument(
        "reports", nargs="?", type=Path, default=REPORTS, help="task run reports, one JSON object a line"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where what it finds is written; emptied first")
    chosen = parser.parse_args(arguments)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, interrupt)
    console = Console() if sys.stdout.isatty() else Console(width=120)
    try:
        Demo(console, chosen.reports, chosen.folder).run()
    except KeyboardInterrupt:
        console.print("[yellow]stopped; nothing of it still runs[/]")
        return 130
    except FunctionFailed as error:
        # Of an error of ours the message says all; of any other the trace tells where it is from.
        ours = hasattr(errors, error.error_type)
        complain(console, f"{error.error_type}: {error.error_message}" if ours else str(error))
        return 1
    except (DemoFault, EmulatorError) as error:
        complain(console, str(error))
        return 1
    return 0


def complain(console: Console, text: str) -> None:
    """Show why the demo failed, its lines as they are."""
    console.print(f"[red]{escape(text)}[/]", soft_wrap=True, highlight=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
