"""`make up`, then `sam local invoke` in the image of the Lambda runtime, against the emulator of this machine."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from demo.receiver import Receiver
from tools.bridge import bridge_address
from tools.build import sam
from tools.emulator import ROOT, answers, free_port
from tools.up import BUILD, Standing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tools.stack import Stack

IMAGE = "public.ecr.aws/lambda/python:3.13"
MARQUEZ_PORT = 5000


def missing() -> str:
    """What this machine lacks to run a function in a container, or nothing."""
    if shutil.which("docker") is None:
        return "no docker command; ../shared/lambda-runtime/up installs an engine on Debian"
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:  # noqa: S607
        return "no Docker engine answers; ../shared/lambda-runtime/up starts one"
    if subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True, check=False).returncode:  # noqa: S607
        return f"the image {IMAGE} is not here; docker pull it, or ../shared/lambda-runtime/up makes a stand-in"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((bridge_address(), MARQUEZ_PORT))
        except OSError as error:
            return f"{bridge_address()}:{MARQUEZ_PORT}, where the guide's flow finds Marquez, cannot be had: {error}"
    return ""


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    """A stack that stays until the tests of this file are done, away from one that `make up` has left running."""
    standing = Standing(f"http://127.0.0.1:{free_port()}", tmp_path_factory.mktemp("up"))
    try:
        yield standing
    finally:
        standing.down()


@pytest.fixture(scope="module")
def stack(standing: Standing) -> Stack:
    return standing.up()


def test_make_up_leaves_a_stack_that_answers_and_says_its_names(standing: Standing, stack: Stack) -> None:
    written = json.loads(standing.names.read_text())["Parameters"]
    assert written == {
        "LINEAGE_TABLE": stack.names["LineageTable"],
        "CATALOG_TABLE": stack.names["CatalogTable"],
        "KEY_VALUE_TABLE": stack.names["KeyValueTable"],
        "LINEAGE_BUCKET": stack.names["LineageBucket"],
        "LINEAGE_BUS": stack.names["LineageBus"],
        "STACK_NAME": "waybill",
        "AWS_ENDPOINT_URL": standing.url.replace("127.0.0.1", "host.docker.internal"),
    }


def test_samconfig_names_what_make_up_writes() -> None:
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())["default"]["local_invoke"]["parameters"]
    up = Standing(folder=BUILD)
    assert ROOT / config["env_vars"] == up.names
    assert ROOT / config["parameter_overrides"].removeprefix("file://") == up.parameters
    assert ROOT / config["template_file"] == up.built / "template.yaml"
    assert config["add_host"] == ["host.docker.internal:host-gateway", "marquez:host-gateway"]


def invoke(standing: Standing, function: str, event: str) -> Any:
    """The answer of a function that runs in a container."""
    output = sam(
        *("local", "invoke", function, "--event", event),
        *("--config-file", str(ROOT / "samconfig.toml"), "--template-file", str(standing.built / "template.yaml")),
        *("--env-vars", str(standing.names), "--parameter-overrides", f"file://{standing.parameters}"),
    )
    return json.loads(output)


@pytest.mark.skipif(bool(missing()), reason=missing() or "nothing is missing")
def test_in_a_container_a_report_is_recorded_shipped_and_the_position_moves(
    standing: Standing, stack: Stack, tmp_path: Path
) -> None:
    recorded = invoke(standing, "RecorderFunction", "events/record_success.json")
    time.sleep(2.5)
    received = tmp_path / "received.jsonl"
    with Receiver(received, host=bridge_address(), port=MARQUEZ_PORT):
        shipped = invoke(standing, "ShipperFunction", "events/ship_lineage_to_marquez.json")
        again = invoke(standing, "ShipperFunction", "events/ship_lineage_to_marquez.json")
    assert recorded["state"] == "SUCCESS"
    assert len(recorded["lineageEvents"]) == 1
    first, second = (answer["outputs"]["ship_lineage"] for answer in (shipped, again))
    assert (first["size"], second["size"]) == (1, 0)
    assert first["endFetchedDate"] == second["endFetchedDate"]
    events = [json.loads(line) for line in received.read_text().splitlines()]
    assert [event["eventType"] for event in events] == ["COMPLETE"]
    key = {
        "namespace": {"S": "company.platform"},
        "key": {"S": "AssetShipper-state_ship_lineage_to_marquez_ship_lineage"},
    }
    assert "Item" in stack.client("dynamodb").get_item(TableName=stack.names["KeyValueTable"], Key=key)


def test_make_down_leaves_nothing_behind(standing: Standing, stack: Stack) -> None:
    assert stack.outputs
    assert standing.down()
    assert not answers(standing.url)
    assert list(standing.folder.iterdir()) == []
    assert not standing.down()
