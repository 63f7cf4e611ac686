"""`sam build`, done again only when what goes into it has changed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from tools.emulator import REGION, ROOT, EmulatorError
from tools.leash import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Target = Literal["host", "release"]

SOURCES = ("template.yaml", "functions", "layers")
KEPT = 4
_SAM_SETTINGS = {"SAM_CLI_TELEMETRY": "0", "SAM_CLI_POLL_DELAY": "0.3"}
"""An emulator has made a stack long before the SAM CLI would ask the second time."""
_OPTIONS: dict[Target, tuple[str, ...]] = {
    "host": ("--config-env", "local"),
    "release": ("--config-env", "default"),
}


def build(target: Target) -> Path:
    """Build the application for an emulator on this machine, or for release, and return the built template.

    Each state of the sources has a folder of its own, so that it is built once, and nobody's build goes away while
    somebody deploys it: the newest few are kept.

    Raises:
        EmulatorError: `sam build` failed; its output is in the message.
    """
    builds = ROOT / "build" / "sam"
    builds.mkdir(parents=True, exist_ok=True)
    folder = builds / f"{target}-{source_digest()[:16]}"
    with _alone(builds / "lock"):
        if not folder.exists():
            unfinished = builds / f"{target}.unfinished"
            sam("build", *_OPTIONS[target], "--build-dir", str(unfinished))
            unfinished.rename(folder)
        folder.touch()
        for old in sorted(builds.glob(f"{target}-*"), key=lambda path: path.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(old)
    return folder / "template.yaml"


def source_digest() -> str:
    """Return a digest of the names and contents of all that goes into a build, and of the Python it is for."""
    digest = hashlib.sha256(os.fsencode(shutil.which("python3") or ""))
    for path in sorted(_sources()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _sources() -> Iterator[Path]:
    for name in SOURCES:
        source = ROOT / name
        yield from [source] if source.is_file() else (path for path in source.rglob("*") if _counts(path))


def _counts(path: Path) -> bool:
    """Tell whether a file is one of ours: caches that tools leave among them are hidden, or hold bytecode."""
    hidden = any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    return path.is_file() and path.suffix != ".pyc" and not hidden


def sam(*arguments: str, environment: dict[str, str] | None = None) -> str:
    """Run the SAM CLI in the project's folder and return what it printed to standard output.

    Args:
        arguments: the command and its options.
        environment: what to add to this process's environment.

    Raises:
        EmulatorError: it is not installed or failed; its output is in the message.
    """
    program = ROOT / ".tools" / "sam" / "bin" / "sam"
    if not program.exists():
        raise EmulatorError("the SAM CLI is not installed: run `make setup`")
    code, output, complaints = run(
        [str(program), *arguments], cwd=ROOT, environment=_sam_environment() | (environment or {})
    )
    if code != 0:
        lines = (output + complaints).splitlines()
        shown = "\n".join(line for line in lines if "Uploading to" not in line)
        raise EmulatorError(f"sam {' '.join(arguments)} failed:\n{shown}")
    return output


def _sam_environment() -> dict[str, str]:
    """Return this process's environment with uv and this project's Python first, and nobody else's AWS account."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SAM_CLI_"))}
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{kept.get('PATH', os.defpath)}"
    return kept | {"PATH": path, "AWS_DEFAULT_REGION": REGION} | _SAM_SETTINGS


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock file, so that tests and a demo that run side by side do not build into each other."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
