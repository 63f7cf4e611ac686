"""What recording and the catalog cost (`record.write_units` of DESIGN 9), in units that the emulator counts."""

from __future__ import annotations

import random
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from aws_lambda_powertools import Logger

from benchmarks.metered import Metered
from tests.support.catalog_client import CatalogClient
from tests.support.tables import Tables, aws_client, make_tables
from tools.emulator import Emulator
from waybill.catalog import services
from waybill.catalog.caller import Caller
from waybill.catalog.graph import LineageGraph
from waybill.clock import iso, utc_now
from waybill.model.asset import TABLE, Asset
from waybill.model.usage import Usage
from waybill.record import wiring
from waybill.settings import Settings
from waybill.store.batches import write_items
from waybill.store.index import terms_of
from waybill.store.namespaces import NamespaceRules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from waybill.record.recorder import Recorder

ASSETS, NAMESPACES, PER_VM = 100_000, 50, 5
WIDE = 1_000
NODES, FAN = 10_000, 4
MOST_WRITE_UNITS = 12
METADATA = {"owner": "sales", "environment": "production", "system": "snowflake", "tier": "gold"}


def measure() -> list[dict[str, Any]]:
    """Return the entries of `build/benchmarks.json` that concern the recorder and the catalog."""
    with Emulator() as emulator:
        return [
            _write_units(emulator.url),
            _wide_run(emulator.url),
            *_read_units(emulator.url),
            _graph(emulator.url),
        ]


def _entry(name: str, value: float, unit: str, note: str, most: float | None = None) -> dict[str, Any]:
    against = None if most is None else f"{most:g} {unit}"
    ratio = None if most is None else round(value / most, 2)
    return {"name": name, "value": value, "unit": unit, "against": against, "ratio": ratio, "note": note}


def _write_units(url: str) -> dict[str, Any]:
    with _metered(make_tables(url)) as (metered, settings):
        recorder = wiring.recorder_of(settings, Logger(service="bench"))
        recorder.record(_report("first"))
        first = metered.write_units
        metered.reset()
        recorder.record(_report("second"))
        writes = metered.writes
    note = (
        f"event and receipt in a transaction {writes['transact_write_items']:g}, asset and completed receipt "
        f"{writes['update_item']:g}, two usages {writes['batch_write_item']:g}, their index "
        f"{writes['batch_write_item byJob']:g}; the first recording, with both assets new: {first:g}"
    )
    return _entry("record.write_units", sum(writes.values()), "write units", note, MOST_WRITE_UNITS)


def _report(run: str, **changes: Any) -> dict[str, Any]:
    """A report whose event is 1 KB large, of text that does not compress to nothing."""
    output = {"id": "warehouse.marts.fct_orders", "type": TABLE, "namespace": "company.sales", "metadata": METADATA}
    return {
        "namespace": "company.sales",
        "flowId": "daily_marts",
        "executionId": f"execution-{run}",
        "taskId": "build_fct_orders",
        "taskRunId": f"run-{run}",
        "state": "SUCCESS",
        "startDate": "2026-12-01T09:00:00Z",
        "endDate": "2026-12-01T09:00:05Z",
        "labels": {"note": random.Random(run).randbytes(280).hex()},  # noqa: S311 - filling, no secret
        "assets": {"inputs": [{"id": "warehouse.staging.stg_orders"}], "outputs": [output]},
    } | changes


def _wide_run(url: str) -> dict[str, Any]:
    inputs = [{"id": f"in.{number:04}"} for number in range(WIDE)]
    outputs = [{"id": f"out.{number:04}", "type": TABLE, "metadata": METADATA} for number in range(WIDE)]
    tables = make_tables(url)
    with _metered(tables) as (metered, settings):
        recorder = wiring.recorder_of(settings, Logger(service="bench"))
        first = _seconds(recorder, _report("wide", assets={"inputs": inputs, "outputs": outputs}))
        again = _seconds(recorder, _report("wider", assets={"inputs": inputs, "outputs": outputs}))
        pages = metered.client.get_paginator("scan").paginate(TableName=tables.catalog)
        rows = sum(item["sk"]["S"].startswith("use#") for page in pages for item in page["Items"])
    note = f"rows about each of two runs of {WIDE} inputs and outputs; recorded in {first:.1f} s, then {again:.1f} s"
    return _entry("record.wide_rows", rows / 2, "rows", note, 2 * WIDE)


def _seconds(recorder: Recorder, report: dict[str, Any]) -> float:
    started = time.perf_counter()
    recorder.record(report)
    return time.perf_counter() - started


def _read_units(url: str) -> list[dict[str, Any]]:
    tables = make_tables(url)
    _fill(tables)
    questions: tuple[tuple[str, str, dict[str, str], str], ...] = (
        ("catalog.get_units", f"/assets/{_id(4711)}", {}, "one asset by its id"),
        ("catalog.function_units", "/assets", {"metadata[vm]": "vm-00942"}, "assets(metadata={'vm': …}), 5 found"),
        (
            "catalog.page_units",
            "/assets/search",
            {"filters[namespace][EQUALS]": "company.team07", "size": "10"},
            "one page of 10 of the 2,000 assets of a namespace",
        ),
    )
    entries: list[dict[str, Any]] = []
    with _metered(tables) as (metered, settings):
        api = CatalogClient(settings)
        for name, path, query, what in questions:
            metered.reset()
            answer = api.get(path, query)
            if answer.status != 200:  # noqa: PLR2004
                raise RuntimeError(f"{path}: {answer.body}")
            calls = ", ".join(f"{count} {operation}" for operation, count in metered.calls.items())
            entries.append(_entry(name, metered.read_units, "read units", f"{what}, of {ASSETS:,}: {calls}"))
    return entries


def _fill(tables: Tables) -> None:
    """Put assets into the catalog with their rows of the index, as writing them one by one would leave them."""
    client, now = aws_client(tables.url, "dynamodb"), utc_now()
    for start in range(0, ASSETS, 5_000):
        items: list[dict[str, Any]] = []
        for number in range(start, start + 5_000):
            namespace = f"company.team{number % NAMESPACES:02}"
            metadata = {"vm": f"vm-{number // PER_VM:05}"}
            asset = Asset(id=_id(number), type=TABLE, namespace=namespace, metadata=metadata, created=now, updated=now)
            items.append(_item(asset))
            items += [{"pk": {"S": term}, "sk": {"S": asset.id}, "version": {"N": "1"}} for term in terms_of(asset)]
        write_items(client, tables.catalog, [{"PutRequest": {"Item": item}} for item in items])
    names = [f"company.team{number:02}" for number in range(NAMESPACES)]
    rows = [{"pk": {"S": "namespaces"}, "sk": {"S": name}} for name in names]
    write_items(client, tables.catalog, [{"PutRequest": {"Item": row}} for row in rows])


def _id(number: int) -> str:
    return f"warehouse.schema{number % 97:02}.table_{number:06}"


def _item(asset: Asset) -> dict[str, Any]:
    namespace = asset.namespace or "-"
    return {
        "pk": {"S": f"asset#{asset.id}"},
        "sk": {"S": "asset"},
        "id": {"S": asset.id},
        "namespace": {"S": namespace},
        "version": {"N": "1"},
        "body": {"S": asset.to_json()},
        "writer": {"S": ""},
    }


def _graph(url: str) -> dict[str, Any]:
    """A tree of assets, each read by a job that wrote a few others."""
    tables = make_tables(url)
    client, now = aws_client(url, "dynamodb"), utc_now()
    items = [_item(Asset(id=f"node.{number}", type=TABLE, created=now, updated=now)) for number in range(NODES)]
    for parent in range(NODES):
        children = [f"node.{child}" for child in range(FAN * parent + 1, min(FAN * parent + FAN + 1, NODES))]
        items += [_use(f"node.{parent}", "R", parent, children)] if children else []
    write_items(client, tables.catalog, [{"PutRequest": {"Item": item}} for item in items])
    with _metered(tables) as (metered, settings):
        stores = services.services_of(settings)
        caller = Caller("bench", NamespaceRules(stores.namespaces))
        started = time.perf_counter()
        graph = LineageGraph(stores.assets, stores.usages, caller, seconds=300)
        found = graph.around("node.0", destination_only=False, expand_all=True)
        seconds = time.perf_counter() - started
    if not found.complete or len(found.downstream) != NODES - 1:
        raise RuntimeError(f"the graph has {len(found.downstream)} of {NODES - 1} assets")
    note = f"a tree of {NODES:,} assets, whole; {metered.read_units:g} read units"
    return _entry("catalog.graph_seconds", round(seconds, 1), "s", note)


def _use(asset_id: str, direction: str, job: int, others: Sequence[str]) -> dict[str, Any]:
    details = {"namespace": "company", "flowId": f"flow{job}", "created": iso(utc_now()), "log": "hour#0/key"}
    usage = Usage(asset_id, "R", f"company/flow{job}.task", f"{job:016x}", f"{job:036x}", details, tuple(others))
    return {
        "pk": {"S": f"asset#{asset_id}"},
        "sk": {"S": usage.row},
        "job": {"S": usage.job},
        "use": {"S": f"{direction}#{usage.shape}#{asset_id}"},
        "body": {"S": usage.to_body()},
    }


@contextmanager
def _metered(tables: Tables) -> Iterator[tuple[Metered, Settings]]:
    """Make whatever is wired inside the block use tables through a client that counts."""
    metered = Metered(aws_client(tables.url, "dynamodb"))
    settings = Settings(tables.lineage, tables.catalog, tables.key_values, tables.bucket, "no-bus")

    def client(service: str, *_: Any) -> Any:
        return metered if service == "dynamodb" else aws_client(tables.url, service)

    with (
        mock.patch.object(wiring, "client", client),
        mock.patch.object(wiring, "single_try_client", client),
        mock.patch.object(services, "client", client),
    ):
        yield metered, settings
