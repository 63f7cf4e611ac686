"""The stack on an emulator that stays: `make up` and `make down`.

It stands at `AWS_ENDPOINT_URL`, by default http://127.0.0.1:4566. An emulator that answers there already is used, and
left alone by `make down`; otherwise one is started, with its log in `build/up/`. The demo and the tests never touch it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tools.build import build
from tools.emulator import ROOT, START_SECONDS, EmulatorError, answers, client_environment, command, process_environment
from tools.stack import STACK_NAME, Stack, deploy_to

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_URL = "http://127.0.0.1:4566"
FOLDER = ROOT / "build" / "up"
PIDS = FOLDER / "pids"
SAM_LOCAL = ROOT / "build" / "sam-local.json"
SAM_PARAMETERS = ROOT / "build" / "sam-parameters.yaml"
SAM_BUILD = ROOT / "build" / "sam-build"
STOP_SECONDS = 10.0
_LOOPBACK = ("127.0.0.1", "localhost")
_TABLES = {
    "LINEAGE_TABLE": "LineageTable",
    "CATALOG_TABLE": "CatalogTable",
    "KEY_VALUE_TABLE": "KeyValueTable",
    "LINEAGE_BUCKET": "LineageBucket",
    "LINEAGE_BUS": "LineageBus",
}


def up() -> None:
    """Start the emulator unless one answers, deploy the stack, write down its names, and say what to try.

    Raises:
        EmulatorError: the address is not of this machine, or the emulator or the deployment failed.
    """
    url = os.environ.get("AWS_ENDPOINT_URL", DEFAULT_URL).rstrip("/")
    if not answers(url):
        start(url)
    print(f"emulator at {url}; deploying the stack {STACK_NAME} ...", flush=True)
    stack = deploy_to(url)
    write_names(stack)
    print(summary(stack))


def down() -> None:
    """End the emulator that `up` started, if it did, and with it the stack and all its data."""
    if not PIDS.exists():
        print("nothing to end: make up has started no emulator")
        return
    for pid in PIDS.read_text().split():
        _end(int(pid))
    shutil.rmtree(FOLDER)
    for file in (SAM_LOCAL, SAM_PARAMETERS, SAM_BUILD):
        file.unlink(missing_ok=True)
    print("the emulator is gone, and with it the stack")


def start(url: str) -> None:
    """Start an emulator that outlives this process, at an address of the loopback interface.

    Raises:
        EmulatorError: the address is not of this machine, or nothing answered there in time.
    """
    address = urlsplit(url)
    if address.hostname not in _LOOPBACK:
        raise EmulatorError(f"nothing answers at AWS_ENDPOINT_URL={url}, and an emulator is started on 127.0.0.1 alone")
    port = address.port or 80
    data = FOLDER / "data"
    data.mkdir(parents=True, exist_ok=True)
    processes = [_detached(command(), process_environment(port, data))]
    if sys.platform == "linux":
        processes.append(_detached([sys.executable, "-m", "tools.bridge", str(port)], dict(os.environ)))
    PIDS.write_text(" ".join(str(process.pid) for process in processes))
    deadline = time.monotonic() + START_SECONDS
    while not answers(url):
        if processes[0].poll() is not None or time.monotonic() > deadline:
            log = (FOLDER / "emulator.log").read_text(errors="replace")
            down()
            raise EmulatorError(f"the emulator does not answer at {url}; its log:\n{log}")
        time.sleep(0.05)


def write_names(stack: Stack) -> None:
    """Write down what `sam local invoke` cannot know: there a `Ref` is a logical id, and 127.0.0.1 the container."""
    url = stack.url
    for name in _LOOPBACK:
        url = url.replace(f"//{name}", "//host.docker.internal")
    variables = {variable: stack.names[logical_id] for variable, logical_id in _TABLES.items()}
    SAM_LOCAL.write_text(
        json.dumps({"Parameters": {**variables, "STACK_NAME": stack.name, "AWS_ENDPOINT_URL": url}}, indent=2) + "\n"
    )
    architecture = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
    SAM_PARAMETERS.write_text(f"Stage: local\nSettleSeconds: 2\nArchitecture: {architecture}\n")
    SAM_BUILD.unlink(missing_ok=True)
    SAM_BUILD.symlink_to(build("host").parent)


def summary(stack: Stack) -> str:
    """Say how to reach the stack, what its parts are called, and what to try first."""
    exports = "\n".join(f"  export {name}={value}" for name, value in client_environment(stack.url).items())
    names = "\n".join(f"  {name:<26}{value}" for name, value in sorted(stack.outputs.items()))
    return f"""
The stack {stack.name} is up. To use it from here:

{exports}

Its names:

{names}

To try it:

  .venv/bin/waybill record events/demo/warehouse.jsonl
  .venv/bin/waybill ship events/ship_lineage_to_marquez.json
  sam local invoke ShipperFunction --event events/ship_lineage_to_marquez.json    # in a container

After a change run make up again; make down ends it."""


def _detached(arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    with (FOLDER / "emulator.log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603
            list(arguments),
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _end(group: int) -> None:
    """End a process group that `start` made, unless it is gone or its number is somebody else's by now."""
    if not _is_ours(group):
        return
    os.killpg(group, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while _is_ours(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    if _is_ours(group):
        os.killpg(group, signal.SIGKILL)


def _is_ours(group: int) -> bool:
    found = subprocess.run(["ps", "-o", "args=", "-p", str(group)], capture_output=True, text=True, check=False)  # noqa: S603, S607
    return "ministack" in found.stdout or "tools.bridge" in found.stdout


def main(arguments: Sequence[str]) -> int:
    """Run `up` or `down`; a failure is told in words."""
    try:
        {"up": up, "down": down}[arguments[0]]()
    except EmulatorError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
