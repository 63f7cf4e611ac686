"""`make bench`: runs every measurement, and writes the figures to `build/benchmarks.json` (DESIGN 9).

`python -m benchmarks ship sender` runs some, and leaves the figures of the others as they are.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from tools.emulator import ROOT

RESULT = ROOT / "build" / "benchmarks.json"


def modules() -> list[str]:
    """Return the names of the modules that measure something."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    return [name for name in names if hasattr(_module(name), "measure")]


def main(names: list[str]) -> int:
    """Measure, print and write."""
    found = {entry["name"]: entry for entry in _kept()} if names else {}
    for name in names or modules():
        for entry in _module(name).measure():
            found[entry["name"]] = entry
            print(_line(entry), flush=True)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(list(found.values()), indent=2) + "\n")
    return 0


def _module(name: str) -> Any:
    return importlib.import_module(f"benchmarks.{name}")


def _kept() -> list[dict[str, Any]]:
    return list(json.loads(RESULT.read_text())) if RESULT.exists() else []


def _line(entry: dict[str, Any]) -> str:
    ratio = f", {entry['ratio']} times {entry['against']}" if entry["ratio"] is not None else ""
    return f"{entry['name']}: {entry['value']} {entry['unit']}{ratio} ({entry['note']})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
