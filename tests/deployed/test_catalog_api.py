"""The catalog's API as it is deployed: behind API Gateway, for signed requests alone."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support.signed import signed_client
from tools.emulator import ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.stack import Stack

TABLE = "io.kestra.plugin.ee.assets.Table"


@pytest.fixture(scope="module")
def api(stack: Stack) -> Iterator[httpx.Client]:
    with signed_client(stack.url, stack.catalog_url) as client:
        yield client


def report(run: str, reads: list[dict[str, Any]], writes: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "namespace": "company.sales",
        "flowId": "catalog_api",
        "executionId": run,
        "taskId": "load",
        "taskRunId": run,
        "state": "SUCCESS",
        "startDate": "2026-12-01T09:00:00Z",
        "endDate": "2026-12-01T09:00:05Z",
        "assets": {"inputs": reads, "outputs": writes},
    }


def test_an_unsigned_request_is_turned_away(stack: Stack) -> None:
    """Nothing public."""
    assert httpx.get(f"{stack.catalog_url}/assets/search", timeout=60).status_code == 403


def test_what_was_recorded_is_found_and_can_be_changed(stack: Stack, api: httpx.Client) -> None:
    """Rows 65, 66, 69, 71 and 77, from one end to the other."""
    run = uuid.uuid4().hex
    orders, shop = f"orders.{run}", f"shop:{run}"
    stack.invoke("RecorderFunction", report(run, [{"id": shop}], [{"id": orders, "type": TABLE, "batch": run}]))

    assert [asset["id"] for asset in api.get("/assets", params={"metadata[batch]": run}).json()["results"]] == [orders]
    found = api.get("/assets/search", params={"filters[id][IN]": f"{orders},{shop}", "page": "1"}).json()
    assert ([asset["id"] for asset in found["results"]], found["total"]) == ([orders, shop], 2)
    assert api.get(f"/assets/{shop}/dependencies").json()["downstream"] == [orders]
    usages = api.get("/assets/usages/search", params={"filters[assetId][EQUALS]": orders}).json()["results"]
    assert [usage["executionId"] for usage in usages] == [run]
    assert api.post(f"/assets/{orders}/lock", json={"ttl": "PT1M"}).json()["username"] == f"arn:aws:iam::{ACCOUNT}:root"
    assert api.put(f"/assets/{orders}", json={"batch": None}).json()["metadata"] == {}
    assert api.delete(f"/assets/{orders}/lock").status_code == 204
    assert api.delete(f"/assets/{orders}").status_code == 204
    assert api.get(f"/assets/{orders}").status_code == 404
    assert api.get(f"/assets/{orders}", params={"allowDeleted": "true"}).json()["deleted"] is True


def test_readers_and_writers_are_known_by_their_arn(api: httpx.Client) -> None:
    """Row 38."""
    namespace, asset_id = f"closed.n{uuid.uuid4().hex}", uuid.uuid4().hex
    assert api.post("/assets", json={"id": asset_id, "type": TABLE, "namespace": namespace}).status_code == 200
    mine = [f"arn:aws:iam::{ACCOUNT}:*"]
    assert api.put(f"/namespaces/{namespace}", json={"readers": mine, "writers": mine}).status_code == 200
    assert api.get(f"/assets/{asset_id}").status_code == 200
    others = ["arn:aws:iam::111111111111:*"]
    assert api.put(f"/namespaces/{namespace}", json={"readers": others, "writers": others}).status_code == 200
    assert api.get(f"/assets/{asset_id}").status_code == 404
    assert api.put(f"/namespaces/{namespace}", json={}).status_code == 403


def test_a_run_of_a_thousand_inputs_and_outputs_is_recorded_in_time(stack: Stack) -> None:
    """Two thousand rows about it, not a million; the recorder's time-out is a minute."""
    run = uuid.uuid4().hex
    reads = [{"id": f"in.{run}.{number}"} for number in range(1000)]
    writes = [{"id": f"out.{run}.{number}", "type": TABLE, "owner": run} for number in range(1000)]
    started = time.monotonic()

    answer = stack.invoke("RecorderFunction", report(run, reads, writes))

    assert time.monotonic() - started < 60
    assert (len(answer["assets"]["created"]), answer["assets"]["failed"]) == (2000, [])
    pages = stack.client("dynamodb").get_paginator("scan").paginate(TableName=stack.names["CatalogTable"])
    keys = [(item["pk"]["S"], item["sk"]["S"]) for page in pages for item in page["Items"]]
    assert len([sk for pk, sk in keys if run in pk and sk.startswith("use#")]) == 2000
