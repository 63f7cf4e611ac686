"""How fast events are sent, beside OpenLineage's own client (`sender.*` of DESIGN 9).

All send the same events to the same receiver, in turns: our exporter (mapping and all), openlineage-python's `http` and
`async_http`, httpx over aiohttp's connections, and a bare loop that writes rendered requests to sockets.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import httpx
import orjson
from httpx_aiohttp import AiohttpTransport
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, RunEvent, RunState
from openlineage.client.event_v2 import Run as OpenLineageRun
from openlineage.client.transport.async_http import AsyncHttpConfig, AsyncHttpTransport
from openlineage.client.transport.http import HttpConfig, HttpTransport

from benchmarks.receiver import receiver
from waybill.export.openlineage.config import OpenLineageAssetExporter
from waybill.export.openlineage.exporter import OpenLineageExporter
from waybill.export.openlineage.mapping import Mapper
from waybill.export.ports import Deadline, Delivery, Run
from waybill.ids import derived_uuid
from waybill.model.asset import TABLE, Asset, AssetRef
from waybill.model.event import LineageEvent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from waybill.store.dead_letters import DeadLetter

IN_FLIGHT = (1, 8, 16, 64)
OURS = 4_000
THEIRS = 500
ROUNDS = 5
SLOW = 0.020
SLOW_IN_FLIGHT = 10
ENOUGH_FASTER = 6.0
ENOUGH_OF_SLOW = 0.9
START = datetime(2026, 12, 1, 9, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Pace:
    """How a sender did.

    Attributes:
        rate: events per second.
        cpu: microseconds of this process per event.
    """

    rate: float
    cpu: float


class _NoDeadLetters:
    def put(self, letter: DeadLetter) -> None:
        raise AssertionError(letter.reason)

    def put_once(self, letter: DeadLetter) -> bool:
        raise AssertionError(letter.reason)


def measure() -> list[dict[str, Any]]:
    """Return the entries of `build/benchmarks.json` that concern the sender."""
    with receiver() as url:
        entries = list(_rates(url))
    with receiver(SLOW) as url:
        slow = _median([_ours(url, SLOW_IN_FLIGHT, 2_000) for _ in range(ROUNDS)])
    bound = SLOW_IN_FLIGHT / SLOW
    note = f"{SLOW_IN_FLIGHT} in flight, each answer after {SLOW * 1000:g} ms; asked for: {ENOUGH_OF_SLOW}"
    return [*entries, _entry("sender.slow_receiver", slow, "in flight / 20 ms", slow.rate / bound, note)]


def _rates(url: str) -> Iterator[dict[str, Any]]:
    """Measure every sender with so many posts in flight, all in turns: a machine is not equally fast all the time."""
    senders: dict[str, Callable[[int], Pace]] = {
        "": lambda in_flight: _ours(url, in_flight, OURS),
        ".async_http": lambda in_flight: _their_async_http(url, in_flight),
        ".httpx_aiohttp": lambda in_flight: _httpx(url, in_flight),
        ".bare": lambda in_flight: _bare(url, in_flight),
    }
    theirs: list[Pace] = []
    paces: dict[tuple[int, str], list[Pace]] = {(in_flight, name): [] for in_flight in IN_FLIGHT for name in senders}
    for _ in range(ROUNDS):
        for (in_flight, name), found in paces.items():
            found.append(senders[name](in_flight))
            if not name:
                theirs.append(their_http(url))
    http, against = _median(theirs), "openlineage-python http"
    for (in_flight, name), found in paces.items():
        pace = _median(found)
        note = "" if name else f"{against}: {http.rate:.0f}/s, {http.cpu:.0f} µs; asked for: {ENOUGH_FASTER:g}"
        yield _entry(f"sender.rate.{in_flight}{name}", pace, against, pace.rate / http.rate, note)


def _entry(name: str, pace: Pace, against: str, ratio: float, note: str) -> dict[str, Any]:
    told = f"{pace.cpu:.0f} µs of CPU per event{'; ' if note else ''}{note}"
    return {
        "name": name,
        "value": round(pace.rate),
        "unit": "events/s",
        "against": against,
        "ratio": round(ratio, 2),
        "note": told,
    }


def _median(paces: Sequence[Pace]) -> Pace:
    return Pace(median(pace.rate for pace in paces), median(pace.cpu for pace in paces))


def deliveries(count: int) -> Iterator[Delivery]:
    """Make events of 16 jobs over 40 assets, about 3 KB each as they are sent."""
    known = assets()
    for number in range(count):
        inputs, outputs = (known[number % 40], known[(number + 1) % 40]), (known[(number + 7) % 40],)
        event = LineageEvent(
            id=derived_uuid("event", str(number)),
            namespace="company.data",
            flow_id="orders",
            execution_id=f"execution-{number}",
            task_id=f"task{number % 16}",
            task_run_id=derived_uuid("run", str(number)),
            state="SUCCESS",
            start_date="2026-12-01T09:00:00.000Z",
            end_date="2026-12-01T09:01:00.000Z",
            labels={"team": "data"},
            inputs=tuple(AssetRef(asset.id) for asset in inputs),
            outputs=tuple(AssetRef(asset.id) for asset in outputs),
        )
        yield Delivery(f"{number:08}", event, inputs, outputs)


def assets() -> list[Asset]:
    """Return the assets that the events read and write."""
    return [_asset(number) for number in range(40)]


def _asset(number: int) -> Asset:
    columns = [{"name": f"column_{position}", "type": "varchar"} for position in range(5)]
    metadata = {"owner": "data", "system": "postgres", "columns": columns}
    about = f"Orders of partition {number}, one row each"
    return Asset(id=f"orders_{number}", type=TABLE, namespace="company.data", description=about, metadata=metadata)


def _config(url: str, in_flight: int) -> OpenLineageAssetExporter:
    said = {"id": "bench", "type": "OpenLineageAssetExporter", "uri": url, "maxInFlight": in_flight}
    return OpenLineageAssetExporter.model_validate(said)


def bodies(count: int) -> list[bytes]:
    """Return the same events as run events, rendered."""
    mapper = Mapper(_config("http://127.0.0.1:1", 1))
    return [event.body for delivery in deliveries(count) for event in mapper.events(delivery)]


def _ours(url: str, in_flight: int, count: int) -> Pace:
    async def run() -> Pace:
        made = list(deliveries(count))
        task = Run("company.platform", "bench", "ship", "bench", START, Deadline(600))
        exporter = OpenLineageExporter(_config(url, in_flight), task, _NoDeadLetters())
        await exporter.open()
        try:
            pace = await _side_by_side(in_flight, made, exporter.deliver)
        finally:
            await exporter.close()
        if exporter.outputs()["delivered"] != count:
            raise AssertionError(exporter.outputs())
        return pace

    return asyncio.run(run())


def _httpx(url: str, in_flight: int) -> Pace:
    async def run() -> Pace:
        transport = AiohttpTransport(verify=False, limits=httpx.Limits(max_connections=in_flight))
        address = httpx.URL(f"{url}/api/v1/lineage")

        async def post(body: bytes) -> None:
            request = httpx.Request("POST", address, headers={"content-type": "application/json"}, content=body)
            response = await transport.handle_async_request(request)
            await response.aclose()

        try:
            return await _side_by_side(in_flight, bodies(OURS), post)
        finally:
            await transport.aclose()

    return asyncio.run(run())


def _bare(url: str, in_flight: int) -> Pace:
    async def run() -> Pace:
        parts = urlsplit(url)
        idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        head = (
            b"POST /api/v1/lineage HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        )

        async def post(body: bytes) -> None:
            reader, writer = idle.pop() if idle else await asyncio.open_connection(parts.hostname, parts.port)
            writer.write(head % len(body) + body)
            await reader.readuntil(b"\r\n\r\n")
            idle.append((reader, writer))

        pace = await _side_by_side(in_flight, bodies(OURS), post)
        for _, writer in idle:
            writer.close()
        return pace

    return asyncio.run(run())


async def _side_by_side(in_flight: int, things: Sequence[Any], send: Callable[[Any], Awaitable[Any]]) -> Pace:
    """Send everything, so many at a time, after those that open the connections."""
    await asyncio.gather(*(send(thing) for thing in things[:in_flight]))
    left = iter(things[in_flight:])

    async def work() -> None:
        for thing in left:
            await send(thing)

    with _Stopwatch(len(things) - in_flight) as watch:
        await asyncio.gather(*(work() for _ in range(in_flight)))
    return watch.pace


def their_http(url: str) -> Pace:
    """Send events with openlineage-python's HTTP transport, made beforehand as objects of the client."""
    transport = HttpTransport(HttpConfig.from_dict({"type": "http", "url": url}))
    events = _their_events()
    transport.emit(events[0])
    with _Stopwatch(THEIRS) as watch:
        for event in events:
            transport.emit(event)
    transport.close()
    return watch.pace


def _their_async_http(url: str, in_flight: int) -> Pace:
    config = {"type": "async_http", "url": url, "max_concurrent_requests": in_flight}
    transport = AsyncHttpTransport(AsyncHttpConfig.from_dict(config))
    events = _their_events()
    transport.emit(events[0])
    transport.wait_for_completion(30)
    with _Stopwatch(THEIRS) as watch:
        for event in events:
            transport.emit(event)
        transport.wait_for_completion(60)
    transport.close(5)
    return watch.pace


def _their_events() -> list[RunEvent]:
    """Return the same events as objects of the client."""
    return [_their_event(orjson.loads(body)) for body in bodies(THEIRS)]


def _their_event(said: dict[str, Any]) -> RunEvent:
    def datasets(kind: Any, side: str) -> list[Any]:
        return [kind(item["namespace"], item["name"], facets=item["facets"]) for item in said[side]]

    return RunEvent(
        eventTime=said["eventTime"],
        eventType=RunState[said["eventType"]],
        run=OpenLineageRun(said["run"]["runId"], facets=said["run"]["facets"]),
        job=Job(said["job"]["namespace"], said["job"]["name"], facets=said["job"]["facets"]),
        producer=said["producer"],
        inputs=datasets(InputDataset, "inputs"),
        outputs=datasets(OutputDataset, "outputs"),
    )


class _Stopwatch:
    def __init__(self, events: int) -> None:
        self._events = events
        self.pace = Pace(0, 0)

    def __enter__(self) -> Self:
        self._began, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        seconds, cpu = time.perf_counter() - self._began, time.process_time() - self._cpu
        self.pace = Pace(self._events / seconds, cpu / self._events * 1e6)
