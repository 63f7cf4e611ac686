"""The stack on an emulator that stays: `make up` and `make down`.

It stands at `AWS_ENDPOINT_URL`, by default http://127.0.0.1:4566. An emulator that answers there already is used, and
left alone by `make down`; otherwise one is started, with its log in `build/up/<port>/`. `make down` ends each that was
started from here, at whatever port. The demo and the tests never touch them.
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
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tools.build import build
from tools.emulator import ROOT, START_SECONDS, EmulatorError, answers, client_environment, command, process_environment
from tools.stack import STACK_NAME, Stack, deploy_to

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

DEFAULT_URL = "http://127.0.0.1:4566"
BUILD = ROOT / "build"
STOP_SECONDS = 10.0
ANOTHERS = """\
WARNING: an emulator answers at {url} already that was not started from here. Its stack {stack} is replaced.
To take another port: AWS_ENDPOINT_URL=http://127.0.0.1:PORT make up"""
_LOOPBACK = ("127.0.0.1", "localhost")
_VARIABLES = {
    "LINEAGE_TABLE": "LineageTable",
    "CATALOG_TABLE": "CatalogTable",
    "KEY_VALUE_TABLE": "KeyValueTable",
    "LINEAGE_BUCKET": "LineageBucket",
    "LINEAGE_BUS": "LineageBus",
}


@dataclass(frozen=True)
class Standing:
    """A stack that stays, and the files that tell of it.

    Attributes:
        url: where its emulator stands.
        folder: where the files lie; samconfig's `local_invoke` names three of them.
    """

    url: str = DEFAULT_URL
    folder: Path = BUILD

    @property
    def names(self) -> Path:
        """Variables of the functions, for `sam local invoke --env-vars`."""
        return self.folder / "sam-local.json"

    @property
    def parameters(self) -> Path:
        """Parameters of the template, for `sam local invoke --parameter-overrides`."""
        return self.folder / "sam-parameters.yaml"

    @property
    def built(self) -> Path:
        """The build that was deployed, for `sam local invoke --template-file`."""
        return self.folder / "sam-build"

    @property
    def log(self) -> Path:
        """What the emulator and the functions print."""
        return self._here / "emulator.log"

    @property
    def is_anothers(self) -> bool:
        """Whether an emulator answers there that was not started from here."""
        started = any(map(_is_ours, _groups_in(self._groups))) if self._groups.exists() else False
        return answers(self.url) and not started

    @property
    def _here(self) -> Path:
        return self.folder / "up" / str(self._port)

    @property
    def _groups(self) -> Path:
        return self._here / "process-groups"

    @property
    def _port(self) -> int:
        return urlsplit(self.url).port or 80

    def up(self) -> Stack:
        """Start the emulator unless one answers, deploy the stack, and write down its names.

        Raises:
            EmulatorError: the address is not of this machine, or the emulator or the deployment failed.
        """
        if not answers(self.url):
            self._start()
        stack = deploy_to(self.url)
        self._write_down(stack)
        return stack

    def down(self) -> bool:
        """End each emulator that `up` started, and with it its stack and data; tell whether there was one."""
        started = list(self.folder.glob("up/*/process-groups"))
        for groups in started:
            for group in _groups_in(groups):
                _end(group)
        shutil.rmtree(self.folder / "up", ignore_errors=True)
        for file in (self.names, self.parameters, self.built):
            file.unlink(missing_ok=True)
        return bool(started)

    def _start(self) -> None:
        if urlsplit(self.url).hostname not in _LOOPBACK:
            raise EmulatorError(f"nothing answers at {self.url}, and make up starts an emulator on 127.0.0.1 alone")
        port = self._port
        data = self._here / "data"
        data.mkdir(parents=True, exist_ok=True)
        groups = [self._detached(command(), process_environment(port, data))]
        if sys.platform == "linux":
            groups.append(self._detached([sys.executable, "-m", "tools.bridge", str(port)], dict(os.environ)))
        self._groups.write_text(" ".join(map(str, groups)))
        deadline = time.monotonic() + START_SECONDS
        while not answers(self.url):
            if not _is_ours(groups[0]) or time.monotonic() > deadline:
                log = self.log.read_text(errors="replace")
                for group in groups:
                    _end(group)
                self._groups.unlink()
                raise EmulatorError(f"the emulator does not answer at {self.url}; its log:\n{log}")
            time.sleep(0.05)

    def _detached(self, arguments: Sequence[str], environment: Mapping[str, str]) -> int:
        """Start a process that outlives this one and leads a group; return the group."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603
                list(arguments),
                cwd=ROOT,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        process.returncode = 0  # nobody waits for it, and Popen need not warn of that
        return process.pid

    def _write_down(self, stack: Stack) -> None:
        """Write what `sam local invoke` cannot know: there a `Ref` is a logical id, and 127.0.0.1 the container."""
        url = self.url
        for name in _LOOPBACK:
            url = url.replace(f"//{name}", "//host.docker.internal")
        variables = {variable: stack.names[logical_id] for variable, logical_id in _VARIABLES.items()}
        variables |= {"STACK_NAME": stack.name, "AWS_ENDPOINT_URL": url}
        self.names.write_text(json.dumps({"Parameters": variables}, indent=2) + "\n")
        architecture = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
        self.parameters.write_text(f"Stage: local\nSettleSeconds: 2\nArchitecture: {architecture}\n")
        self.built.unlink(missing_ok=True)
        self.built.symlink_to(build("host").parent)


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
  .venv/bin/waybill ship --flow events/file_lineage.json
  .tools/sam/bin/sam local invoke FileExporterFunction --event events/file_lineage.json    # in a container

events/ship_lineage_to_marquez.json needs a Marquez at http://marquez:5000. To ship to a receiver that keeps what comes:

  .venv/bin/python -m demo.receiver 5000 &
  sed s/marquez:5000/127.0.0.1:5000/ events/ship_lineage_to_marquez.json > build/flow.json
  .venv/bin/waybill ship --flow build/flow.json

After a change run make up again; make down ends it."""


def _groups_in(file: Path) -> list[int]:
    return [int(group) for group in file.read_text().split()]


def _end(group: int) -> None:
    """End a process group that `up` started, unless it is gone or its number is somebody else's by now."""
    if not _is_ours(group):
        return
    os.killpg(group, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while _is_ours(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    if _is_ours(group):
        os.killpg(group, signal.SIGKILL)


def _is_ours(group: int) -> bool:
    found = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(group)], capture_output=True, text=True, check=False)  # noqa: S603, S607
    return "ministack" in found.stdout or "tools.bridge" in found.stdout


def main(arguments: Sequence[str]) -> int:
    """Run `up` or `down` at `AWS_ENDPOINT_URL`; a failure is told in words."""
    standing = Standing(os.environ.get("AWS_ENDPOINT_URL", DEFAULT_URL).rstrip("/"))
    if arguments[0] == "down":
        ended = standing.down()
        print("the emulator is gone, and with it the stack" if ended else "make up has started no emulator here")
        return 0
    if standing.is_anothers:
        print(ANOTHERS.format(stack=STACK_NAME, url=standing.url), file=sys.stderr, flush=True)
    print(f"putting the stack {STACK_NAME} on the emulator at {standing.url} ...", flush=True)
    try:
        print(summary(standing.up()))
    except EmulatorError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
