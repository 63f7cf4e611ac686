"""What the functions import before they work: the cold start that is ours (`import.ratio` of DESIGN 9)."""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median
from typing import Any

from tools.emulator import ROOT, client_environment

ROUNDS = 7
FUNCTIONS = ("recorder", "shipper", "file_exporter", "catalog")
_TIMED = """
import time
began = time.perf_counter()
{code}
print((time.perf_counter() - began) * 1000)
"""
_BARE = "import boto3; boto3.client('dynamodb')"
_NAMES = ("LINEAGE_TABLE", "CATALOG_TABLE", "KEY_VALUE_TABLE", "LINEAGE_BUCKET", "LINEAGE_BUS")


def measure() -> list[dict[str, Any]]:
    """Return the entry of `build/benchmarks.json` that concerns imports."""
    found: dict[str, list[float]] = {name: [] for name in ("", *FUNCTIONS)}
    for _ in range(ROUNDS):
        for name, times in found.items():
            times.append(_milliseconds("import app" if name else _BARE, name))
    bare = median(found.pop(""))
    medians = {name: median(values) for name, values in found.items()}
    slowest = max(medians, key=lambda name: medians[name])
    each = ", ".join(f"{name} {value:.0f}" for name, value in medians.items())
    return [
        {
            "name": "import.ratio",
            "value": round(medians[slowest], 1),
            "unit": "ms",
            "against": f"boto3 with one client, {bare:.0f} ms",
            "ratio": round(medians[slowest] / bare, 2),
            "note": f"the slowest, {slowest}; ms of each: {each}; medians of {ROUNDS} processes",
        }
    ]


def _milliseconds(code: str, function: str) -> float:
    # What is compared is imports, not compilation: Lambda brings boto3 compiled, and the layers hold bytecode too.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = kept | client_environment("http://127.0.0.1:1") | dict.fromkeys(_NAMES, "name")
    folder = ROOT / "functions" / function if function else ROOT
    command = [sys.executable, "-c", _TIMED.format(code=code)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder, env=environment)  # noqa: S603
    return float(done.stdout)
