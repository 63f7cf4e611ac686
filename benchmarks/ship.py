"""How fast the log is shipped, in how much memory, and what an idle run reads (`ship.*` of DESIGN 9).

From the log on the emulator to the receiver's answers, in one process, beside openlineage-python's HTTP transport that
sends the same events from ready-made objects in the same run, and beside a bare loop of the HTTP client that we use.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import aiohttp

from benchmarks.filled_log import FilledLog
from benchmarks.memory import peak
from benchmarks.receiver import receiver
from benchmarks.sender import OURS, Pace, assets, bodies, deliveries, their_http
from tests.support.tables import Tables, aws_client
from tools.emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from waybill.model.event import LineageEvent

EVENTS = 12_000
ROUNDS = 3
IN_FLIGHT = 10
FEW, MANY = 2_000, 200_000
ENOUGH_FASTER = 4.0
MOST_GROWTH = 1.3
MOST_UNITS = 2.0


def measure() -> list[dict[str, Any]]:
    """Return the entries of `build/benchmarks.json` that concern shipping."""
    with Emulator() as emulator, receiver() as url:
        return [*_rates(emulator.url, url), _memory_growth(emulator.url, url), _idle_units(emulator.url, url)]


def _rates(emulator: str, url: str) -> list[dict[str, Any]]:
    """Measure ours, theirs and the floor, in turns."""
    log = FilledLog.make(emulator, _events(EVENTS), EVENTS, assets())
    ours, theirs, floor, calls = [], [], [], Counter[str]()
    for number in range(ROUNDS):
        theirs.append(their_http(url))
        floor.append(_bare_loop(url))
        ours.append(_ours(log, url, f"round_{number}", calls))
    faster = [own.rate / other.rate for own, other in zip(ours, theirs, strict=True)]
    their, own, bare = _median(theirs), _median(ours), _median(floor)
    requests = f"{sum(calls.values()) / EVENTS / ROUNDS:.3f} requests to DynamoDB per event"
    note = f"{own.cpu:.0f} µs of CPU per event, theirs {their.cpu:.0f}; {requests}; asked for: {ENOUGH_FASTER:g}"
    floor_note = f"ready-made bodies, {IN_FLIGHT} in flight, {bare.cpu:.0f} µs of CPU per event"
    against = "openlineage-python http"
    return [
        _entry("ship.rate", own.rate, "events/s", against, median(faster), note),
        _entry("ship.rate.floor", bare.rate, "events/s", against, bare.rate / their.rate, floor_note),
    ]


def _ours(log: FilledLog, url: str, task: str, calls: Counter[str]) -> Pace:
    dynamodb = aws_client(log.tables.url, "dynamodb")

    def count(model: Any, **_: Any) -> None:
        calls[model.name] += 1

    dynamodb.meta.events.register("before-call", count)
    cpu, began = time.process_time(), time.perf_counter()
    delivered = log.ship(task, url)
    pace = Pace(log.events / (time.perf_counter() - began), (time.process_time() - cpu) / log.events * 1e6)
    dynamodb.meta.events.unregister("before-call", count)
    if delivered != log.events:
        raise AssertionError(delivered)
    return pace


def _bare_loop(url: str) -> Pace:
    """Post ready-made bodies with the HTTP client that the exporter uses, and nothing around it."""

    async def run() -> Pace:
        left = iter(bodies(OURS))

        async def work(session: aiohttp.ClientSession) -> None:
            for body in left:
                async with session.post(f"{url}/api/v1/lineage", data=body, headers=headers):
                    pass

        headers = {"content-type": "application/json"}
        connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
            cpu, began = time.process_time(), time.perf_counter()
            await asyncio.gather(*(work(session) for _ in range(IN_FLIGHT)))
            return Pace(OURS / (time.perf_counter() - began), (time.process_time() - cpu) / OURS * 1e6)

    return asyncio.run(run())


def _memory_growth(emulator: str, url: str) -> dict[str, Any]:
    few, few_seconds = _peak(emulator, url, FEW)
    many, many_seconds = _peak(emulator, url, MANY)
    note = (
        f"peak resident memory of a process that ships {MANY} events; "
        f"µs per event: {many_seconds / MANY * 1e6:.0f}, at {FEW} events {few_seconds / FEW * 1e6:.0f}; "
        f"asked for: {MOST_GROWTH:g} at most"
    )
    return _entry("ship.memory_growth", many, "bytes", f"the peak at {FEW} events, {few} bytes", many / few, note)


def _peak(emulator: str, url: str, events: int) -> tuple[int, float]:
    """Ship so many events in a process of its own; return its peak of memory in bytes, and the seconds it took."""
    log = FilledLog.make(emulator, _events(events), events, assets())
    tables = log.tables
    names = [tables.url, tables.lineage, tables.catalog, tables.key_values, tables.bucket]
    command = [sys.executable, "-m", "benchmarks.ship", url, str(events), *names]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])  # noqa: S603
    most, seconds = json.loads(done.stdout)
    return most, seconds


def _idle_units(emulator: str, url: str) -> dict[str, Any]:
    """Ship a log at rest, and ship again with nothing to ship: what does that read?"""
    log = FilledLog.make(emulator, _events(FEW), FEW, assets())
    log.ship("idle", url)
    units: list[float] = []
    buckets: set[str] = set()

    def meter(params: dict[str, Any], model: Any, **_: Any) -> None:
        if model.name in ("Query", "GetItem", "BatchGetItem", "Scan"):
            params["ReturnConsumedCapacity"] = "TOTAL"
        bucket = params.get("ExpressionAttributeValues", {}).get(":bucket", {}).get("S")
        buckets.update([bucket] if bucket else [])

    def note(parsed: dict[str, Any], **_: Any) -> None:
        consumed = parsed.get("ConsumedCapacity", [])
        units.extend(one["CapacityUnits"] for one in (consumed if isinstance(consumed, list) else [consumed]))

    events = aws_client(emulator, "dynamodb").meta.events
    events.register("provide-client-params.dynamodb", meter)
    events.register("after-call.dynamodb", note)
    delivered = log.ship("idle", url)
    events.unregister("provide-client-params.dynamodb", meter)
    events.unregister("after-call.dynamodb", note)
    if delivered:
        raise AssertionError(delivered)
    told = (
        f"{sum(units):g} units in {len(units)} consistent reads of an idle run, which looks into "
        f"{len(buckets)} buckets of an hour and a shard; asked for: {MOST_UNITS:g} at most"
    )
    return _entry("ship.idle_read_units", sum(units) / len(buckets), "read units", None, None, told)


def _events(count: int) -> Iterator[LineageEvent]:
    return (delivery.event for delivery in deliveries(count))


def _median(paces: list[Pace]) -> Pace:
    return Pace(median(pace.rate for pace in paces), median(pace.cpu for pace in paces))


def _entry(name: str, value: float, unit: str, against: str | None, ratio: float | None, note: str) -> dict[str, Any]:
    rounded = round(value, 2) if unit == "read units" else round(value)
    told = None if ratio is None else round(ratio, 2)
    return {"name": name, "value": rounded, "unit": unit, "against": against, "ratio": told, "note": note}


def _print_peak(url: str, events: int, tables: Tables) -> None:
    began = time.perf_counter()
    delivered = FilledLog(tables, events).ship("peak", url)
    if delivered != events:
        raise AssertionError(delivered)
    print(json.dumps([peak(), time.perf_counter() - began]))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _print_peak(sys.argv[1], int(sys.argv[2]), Tables(*sys.argv[3:]))
    else:
        print(json.dumps(measure(), indent=2))
