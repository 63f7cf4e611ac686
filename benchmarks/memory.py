"""The peak of memory of this process."""

from __future__ import annotations

import re
import resource
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak() -> int:
    """Return the most resident memory that this process has had, in bytes.

    Not `ru_maxrss` where there is better: a process inherits it from the one that started it.
    """
    if _STATUS.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())):
        return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
