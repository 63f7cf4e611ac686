"""The emulator of AWS: one process of its own on a free port of the loopback interface, gone when its block ends."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

ROOT = Path(__file__).resolve().parents[1]
ACCOUNT = "000000000000"
REGION = "us-east-1"
START_SECONDS = 30.0
STOP_SECONDS = 10.0
INHERITED = ("HOME", "LANG", "PATH", "SSL_CERT_FILE")


class EmulatorError(Exception):
    """The emulator cannot be started. The message says what to do."""


class Emulator:
    """Ministack as a context manager.

    Args:
        port: where to listen; 0 takes a free port.
        enforce_iam: whether each call is checked against the policies of its caller.
        log: where its output, and so that of the functions, goes; a file of its own temporary folder when not given.
    """

    def __init__(self, *, port: int = 0, enforce_iam: bool = False, log: Path | None = None) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.enforce_iam = enforce_iam
        self._folder: Path | None = None
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What an AWS client reads from its environment to work with this emulator."""
        return client_environment(self.url)

    @property
    def log(self) -> str:
        """What the emulator and the functions in it have printed so far."""
        return self._log.read_text(errors="replace") if self._log and self._log.exists() else ""

    def __enter__(self) -> Self:
        """Start the emulator and wait until it answers.

        Raises:
            EmulatorError: it is not installed, or did not answer in time; its log is in the message.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="waybill-emulator-"))
        self._log = self._log or self._folder / "emulator.log"
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "tools.leash", *command()],
                cwd=ROOT,
                env=process_environment(self.port, self._folder, enforce_iam=self.enforce_iam),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._await_answer()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the emulator and every function that still runs in it."""
        self.stop()

    def stop(self) -> None:
        """Stop the emulator, wait until it is gone, and remove its files. Safe to call again."""
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _await_answer(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not answers(self.url):
            if self._process is None or self._process.poll() is not None or time.monotonic() > deadline:
                raise EmulatorError(f"the emulator does not answer at {self.url}; its log:\n{self.log}")
            time.sleep(0.05)


def command() -> list[str]:
    """Return the command that runs the emulator.

    Raises:
        EmulatorError: its environment has not been made.
    """
    program = ROOT / ".tools" / "emulator" / "bin" / "ministack"
    if not program.exists():
        raise EmulatorError("the emulator is not installed: run `make setup`")
    return [str(program)]


def process_environment(
    port: int, folder: Path, *, host: str = "127.0.0.1", enforce_iam: bool = False
) -> dict[str, str]:
    """Return the emulator's environment: nothing of ours but what it needs, so that functions see nothing of ours."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return inherited | {
        "AUTH": "true" if enforce_iam else "false",
        "AWS_ACCESS_KEY_ID": ACCOUNT,
        "AWS_SECRET_ACCESS_KEY": "emulator",
        "BIND_HOST": host,
        "GATEWAY_PORT": str(port),
        "LAMBDA_EXECUTOR": "local",
        "LOG_LEVEL": "WARNING",
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_REGION": REGION,
        "TMPDIR": str(folder),
        "S3_DATA_DIR": str(folder / "s3"),
    }


def client_environment(url: str) -> dict[str, str]:
    """Return what an AWS client reads from its environment to work with the emulator at an address."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": ACCOUNT,
        "AWS_SECRET_ACCESS_KEY": "emulator",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
    }


def answers(url: str) -> bool:
    """Tell whether an emulator answers at an address."""
    try:
        with urllib.request.urlopen(f"{url}/_ministack/health", timeout=2) as answer:  # noqa: S310
            return bool(answer.status == 200)  # noqa: PLR2004
    except (urllib.error.URLError, OSError):
        return False


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
