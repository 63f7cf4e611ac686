"""Every command of README.md and docs/ is run: here, as by one who reads them in turn, or where RUN_ELSEWHERE says."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

from tools.emulator import ROOT, Emulator

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHELL = re.compile(r"^```sh\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

RUN_ELSEWHERE = {
    "make demo": ("tests/deployed/test_demo.py", "demo.run"),
    "make test": (".ci/run", "make test"),
    "make setup": (".ci/run", "make test"),
    "make up": ("tests/container/test_sam_local.py", "standing.up()"),
    "make down": ("tests/container/test_sam_local.py", "standing.down()"),
}
"""What runs a command that cannot be run from within a test, and a word of its that shows it."""

YES = "y\n" * 100_000
"""What one who reads them answers when a deployment asks: enough for every command that reads ahead."""


def commands(document: Path) -> list[str]:
    """The commands of a document in their order, without their comments."""
    lines = [line for block in SHELL.finditer(document.read_text()) for line in block["text"].splitlines()]
    return [command for line in lines if (command := line.partition("  #")[0].strip())]


def elsewhere(command: str) -> str | None:
    return next((name for name in RUN_ELSEWHERE if re.match(rf"([A-Z_]+=\S+ )*{name}\b", command)), None)


def test_the_commands_of_the_documents_do_what_they_say() -> None:
    here = [command for document in DOCUMENTS for command in commands(document) if elsewhere(command) is None]
    with Emulator() as emulator:
        result = subprocess.run(
            ["/bin/bash", "-euxc", "\n".join(here)],
            cwd=ROOT,
            env=os.environ | emulator.environment,
            input=YES,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    assert result.returncode == 0, result.stdout


def test_what_is_run_elsewhere_is_run_there() -> None:
    used = {name for document in DOCUMENTS for command in commands(document) if (name := elsewhere(command))}

    for name in used:
        path, word = RUN_ELSEWHERE[name]
        assert word in (ROOT / path).read_text(), name
