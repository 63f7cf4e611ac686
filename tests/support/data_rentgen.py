"""A real OpenLineage backend, Data.Rentgen, started for the session and asked through its own API."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support.shared import SHARED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_START_SECONDS = 300
_STOP_SECONDS = 60
_VISIBLE_SECONDS = 30
_SINCE = {"since": "2020-01-01T00:00:00Z"}
_PORTS = ("PG_PORT", "KAFKA_PORT", "KAFKA_CONTROLLER_PORT", "API_PORT", "INGEST_PORT", "CONSUMER_PORT")


@dataclass
class DataRentgen:
    """An instance of our own.

    Attributes:
        environment: what `up` is run with; it keeps state and ports apart from other instances.
    """

    environment: dict[str, str]
    url: str = ""
    endpoint: str = ""
    token: str = ""
    api_url: str = ""

    def up(self) -> None:
        """Start what does not run."""
        environment = {**os.environ, **self.environment}
        try:
            done = subprocess.run(
                [str(SHARED / "data-rentgen" / "up")], env=environment, capture_output=True, text=True,
                timeout=_START_SECONDS, check=True,
            )  # fmt: skip
        except subprocess.CalledProcessError as error:
            pytest.skip(f"../shared/data-rentgen/up does not run here: {error.stderr.strip().splitlines()[-1]}")
        said = dict(re.findall(r"export (\w+)=(\S+)", done.stdout))
        self.url, self.endpoint = said["DATA_RENTGEN_INGEST_URL"], said["DATA_RENTGEN_INGEST_ENDPOINT"]
        self.api_url, self.token = said["DATA_RENTGEN_API_URL"], said["DATA_RENTGEN_TOKEN"]

    def down(self) -> None:
        """Stop everything."""
        environment = {**os.environ, **self.environment}
        subprocess.run(
            [str(SHARED / "data-rentgen" / "down"), "--purge"], env=environment, capture_output=True,
            timeout=_STOP_SECONDS, check=False,
        )  # fmt: skip

    def stop_receiver(self) -> None:
        """Stop the HTTP receiver gracefully; `up` starts it again."""
        pid = int((Path(self.environment["LINEAGE_BACKEND_STATE"]) / "pid" / "http2kafka").read_text().split()[0])
        os.kill(pid, signal.SIGTERM)
        with contextlib.suppress(ProcessLookupError):
            for _ in range(200):
                os.kill(pid, 0)
                if Path(f"/proc/{pid}/stat").read_text().split(") ")[1].startswith("Z"):
                    return
                time.sleep(0.05)

    def ask(self, path: str, **parameters: Any) -> dict[str, Any]:
        """Read from its API."""
        answer = httpx.get(
            f"{self.api_url}/v1/{path}",
            params=parameters,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=30,
        )
        answer.raise_for_status()
        document: dict[str, Any] = answer.json()
        return document

    def run(self, run_id: str) -> dict[str, Any] | None:
        """Return a run, or None."""
        items = self.ask("runs", run_id=run_id)["items"]
        return items[0] if items else None

    def wait_for(self, run_ids: list[str]) -> None:
        """Wait until the runs can be seen: a 201 means received, not stored."""
        self._until(lambda: all(self.run(run_id) for run_id in run_ids))

    def status(self, run_id: str) -> str:
        """Return the status of a run."""
        run = self.run(run_id)
        assert run is not None, run_id
        status: str = run["data"]["status"]
        return status

    def job_of(self, run_id: str) -> str:
        """Return the name of the job of a run."""
        run = self.run(run_id)
        assert run is not None, run_id
        name: str = run["job"]["name"]
        return name

    def jobs(self, name: str) -> list[str]:
        """Return the jobs of exactly this name."""
        return [item["id"] for item in self.ask("jobs", search_query=name)["items"] if item["data"]["name"] == name]

    def datasets_of(self, run_id: str) -> tuple[set[str], set[str]]:
        """Return the names of a run's inputs and outputs."""
        found = self.ask("runs/lineage", start_node_id=run_id, **_SINCE)
        names = {node_id: node["name"] for node_id, node in found["nodes"]["datasets"].items()}
        read, written = found["relations"]["inputs"], found["relations"]["outputs"]
        inputs = {names[edge["from"]["id"]] for edge in read if edge["to"]["kind"] == "RUN"}
        outputs = {names[edge["to"]["id"]] for edge in written if edge["from"]["kind"] == "RUN"}
        return inputs, outputs

    def dataset(self, name: str) -> str:
        """Return the id of the dataset of exactly this name."""
        items = self.ask("datasets", search_query=name)["items"]
        (found,) = [str(item["id"]) for item in items if item["data"]["name"] == name]
        return found

    def reached_from(self, name: str) -> set[str]:
        """Return the names of the datasets downstream of one, however far."""
        where = {"start_node_id": self.dataset(name), "direction": "DOWNSTREAM", "depth": 3, **_SINCE}
        found = self.ask("datasets/lineage", granularity="DATASET", **where)
        return {node["name"] for node in found["nodes"]["datasets"].values()} - {name}

    def count_runs(self, search_query: str) -> int:
        """Return how many runs match."""
        total: int = self.ask("runs", search_query=search_query, page_size=1, **_SINCE)["meta"]["total_count"]
        return total

    def _until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + _VISIBLE_SECONDS
        while not holds():
            assert time.monotonic() < end, f"not so within {_VISIBLE_SECONDS} s"
            time.sleep(0.1)


@pytest.fixture(scope="session")
def data_rentgen() -> Iterator[DataRentgen]:
    """An instance on free ports, gone with the session."""
    if not (SHARED / "data-rentgen" / "up").exists():
        pytest.skip("needs ../shared/data-rentgen/up")
    with tempfile.TemporaryDirectory(prefix="data-rentgen-") as folder:
        Path(folder).chmod(0o755)
        ports = {f"LINEAGE_BACKEND_{name}": str(_free_port()) for name in _PORTS}
        instance = DataRentgen({"LINEAGE_BACKEND_STATE": f"{folder}/run", **ports})
        try:
            instance.up()
            yield instance
        finally:
            instance.down()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
