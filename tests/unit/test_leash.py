"""A command on a leash ends with whoever started it, and all that it started ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.emulator import ROOT
from tools.leash import run

STARTER = """
from pathlib import Path
from tools.leash import run
run(["sh", "-c", "sleep 60 & echo $! > {pids}; echo $$ >> {pids}; wait"], cwd=Path("."), environment={{}})
"""


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_a_command_says_and_how_it_ends_is_told() -> None:
    command = ["sh", "-c", "echo said; echo complained >&2; exit 3"]

    assert run(command, cwd=ROOT, environment=dict(os.environ)) == (3, "said\n", "complained\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_ends_with_its_starter(tmp_path: Path, number: signal.Signals) -> None:
    pids = tmp_path / "pids"
    code = STARTER.format(pids=pids)
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.DEVNULL) as starter:
        deadline = time.monotonic() + 10
        while not (pids.exists() and len(pids.read_text().split()) == 2) and time.monotonic() < deadline:
            time.sleep(0.02)
        family = [int(pid) for pid in pids.read_text().split()]
        assert all(runs(pid) for pid in family)
        starter.send_signal(number)
    while any(runs(pid) for pid in family) and time.monotonic() < deadline:
        time.sleep(0.02)

    assert [pid for pid in family if runs(pid)] == []
