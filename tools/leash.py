"""Runs a command that ends when whoever started it ends, however that happens.

The starter holds the other end of this process's standard input. When it closes it, or dies without being able to,
the read below returns, and the command is ended with everything it started.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

GRACE_SECONDS = 3.0


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
    sys.stdin.buffer.read()
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
