"""Runs a command that ends when whoever started it ends, however that happens.

The starter holds the other end of this process's standard input. When it closes it, or dies without being able to,
the read below returns, and the command is ended with everything it started.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

GRACE_SECONDS = 3.0


def run(command: list[str], *, cwd: Path, environment: dict[str, str]) -> tuple[int, str, str]:
    """Run a command on a leash until it ends, and return its exit code, its output and its complaints."""
    with (
        tempfile.TemporaryFile("w+") as complaints,
        subprocess.Popen(  # noqa: S603
            [sys.executable, __file__, *command],
            cwd=cwd,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
        ) as process,
    ):
        try:
            output = process.stdout.read() if process.stdout else ""
        finally:
            if process.stdin:
                process.stdin.close()
            process.wait()
        complaints.seek(0)
        return process.returncode, output, complaints.read()


def main(command: list[str]) -> int:
    """Run a command until it ends or standard input does, and return its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603
    threading.Thread(target=_end_with_starter, args=(child,), daemon=True).start()
    try:
        return child.wait()
    finally:
        _signal(child, signal.SIGKILL)


def _end_with_starter(child: subprocess.Popen[bytes]) -> None:
    while os.read(0, 1024):  # not by sys.stdin: its lock, held here, would be fatal when the interpreter ends first
        pass
    _signal(child, signal.SIGTERM)
    try:
        child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        _signal(child, signal.SIGKILL)


def _signal(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
