"""Each block of Python in the documents runs, as it stands, against a deployed stack."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tools.emulator import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tools.emulator import Emulator
    from tools.stack import Stack

BLOCK = re.compile(r"^```python\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTS = [path for path in sorted((ROOT / "docs").glob("*.md")) if BLOCK.search(path.read_text())]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_python_of_a_document_runs(document: Path, emulator: Emulator, stack: Stack) -> None:
    code = "\n\n".join(block["text"] for block in BLOCK.finditer(document.read_text()))
    environment = os.environ | emulator.environment | {"WAYBILL_RECORDER": stack.outputs["RecorderFunctionName"]}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
