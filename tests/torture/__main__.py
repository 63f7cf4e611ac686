"""`make torture`: many episodes, and what came of them in `build/torture.json` (DESIGN 9)."""

from __future__ import annotations

import argparse
import json
import sys
import time

from tests.torture.torture import torture
from tools.emulator import ROOT


def main() -> int:
    """Torture, print and write the figures, and return 1 when anything was lost, doubled or wrong."""
    parser = argparse.ArgumentParser(prog="make torture", description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    figures, report = torture(options.runs, options.seed, tell=lambda line: print(line, flush=True))
    path = ROOT / "build" / "torture.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))
    for fault in figures.faults:
        print(fault, file=sys.stderr)
    return 1 if figures.faults or figures.lost or figures.repeated_other or figures.out_of_order else 0


if __name__ == "__main__":
    sys.exit(main())
