"""A small world to ship in: a log that a test fills as it likes, a clock that it turns, exporters that tell."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.support.tables import Tables, aws_client
from waybill.clock import iso
from waybill.errors import ExporterStopped
from waybill.export.ports import Outcome
from waybill.ids import uuid7
from waybill.model.asset import Asset, AssetRef
from waybill.model.event import LineageEvent
from waybill.model.flow import parse_flow
from waybill.ship.flow import run_flow
from waybill.ship.reader import hour_of_key
from waybill.ship.services import Services
from waybill.store.keyvalue import KeyValueStore
from waybill.store.log_reader import LogReader
from waybill.store.objects import Objects
from waybill.store.shards import Shards, generation_at, shard_of
from waybill.store.states import States

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable

    from waybill.export.ports import BatchExporter, Delivery, Run, StreamExporter
    from waybill.model.flow import AnyExporter
    from waybill.store.offsets import ParameterOffsets

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
SETTLE = timedelta(seconds=30)
NAMESPACE = "company.platform"
STATE_KEY = "AssetShipper-state_ship_ship_lineage"
RETENTION = timedelta(days=400)


class TurnedClock:
    """A clock that stands still until it is turned."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def turn(self, **amount: float) -> None:
        """Let time pass: `turn(minutes=5)`."""
        self.now += timedelta(**amount)


class CatalogInMemory:
    """Assets as a test sets them."""

    def __init__(self) -> None:
        self.assets: dict[str, Asset] = {}
        self.asked: list[set[str]] = []

    def get_many(self, ids: Collection[str]) -> dict[str, Asset]:
        self.asked.append(set(ids))
        return {asset_id: self.assets[asset_id] for asset_id in ids if asset_id in self.assets}

    def put(self, asset_id: str, **properties: Any) -> None:
        self.assets[asset_id] = Asset(id=asset_id, **properties)


@dataclass
class TellingExporter:
    """A StreamExporter that keeps what it gets.

    Attributes:
        keys: the sort keys of what was delivered, over all runs, in the order of the answers.
        down: answers 503 to everything while true.
        before: awaited before each answer.
        outcome: of every event.
    """

    in_flight: int = 4
    down: bool = False
    keys: list[str] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    before: Callable[[Delivery], Awaitable[None]] | None = None
    outcome: Outcome = Outcome.DELIVERED
    here: int = 0

    async def open(self) -> None:
        self.here = 0

    async def deliver(self, delivery: Delivery) -> Outcome:
        if self.down:
            raise ExporterStopped("503")
        if self.before is not None:
            await self.before(delivery)
        self.keys.append(delivery.key)
        self.deliveries.append(delivery)
        self.here += 1
        return self.outcome

    async def close(self) -> None:
        """Nothing is open."""

    def outputs(self) -> dict[str, Any]:
        return {"delivered": self.here}

    def by_job(self) -> dict[str, list[str]]:
        """Return the keys that were delivered by job, in the order of delivery."""
        found: dict[str, list[str]] = defaultdict(list)
        for delivery in self.deliveries:
            found[delivery.event.job].append(delivery.key)
        return dict(found)


@dataclass
class TellingBatches:
    """A BatchExporter that keeps what was committed, under the start of each batch.

    Attributes:
        dies: after so many events of a batch, before its commit, the process is gone.
        dies_after_commit: the process is gone before the position is stored.
        most: how many events fill a batch.
    """

    committed: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    dies: int | None = None
    dies_after_commit: bool = False
    most: int | None = None
    start: str = ""
    written: list[str] = field(default_factory=list)

    def recover(self, start: str) -> str | None:
        return self.committed[start][0] if start in self.committed else None

    def begin(self, start: str) -> None:
        self.start, self.written = start, []

    def write(self, delivery: Delivery) -> None:
        if self.dies == len(self.written):
            raise Died
        self.written.append(delivery.key)

    def full(self) -> bool:
        return self.most is not None and len(self.written) >= self.most

    def commit(self, end: str) -> str:
        self.committed.setdefault(self.start, (end, self.written))
        if self.dies_after_commit:
            raise Died
        return self.committed[self.start][0]

    def abandon(self) -> None:
        self.written = []

    def outputs(self) -> dict[str, Any]:
        return {"batches": len(self.committed)}

    @property
    def keys(self) -> list[str]:
        """The sort keys of all that counts, batch after batch."""
        return [key for _, keys in self.committed.values() for key in keys]


class Died(BaseException):
    """The process is gone; nothing of ours may catch this."""


class MortalClient:
    """A client whose process can be killed: nothing that it would still write arrives."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        if self.dead:
            raise Died
        return getattr(self._client, name)


@dataclass
class World:
    """Stores on an emulator, and a clock, a catalog and exporters of the test's own."""

    tables: Tables
    clock: TurnedClock = field(default_factory=TurnedClock)
    catalog: CatalogInMemory = field(default_factory=CatalogInMemory)
    exporters: dict[str, Any] = field(default_factory=dict)
    barred: list[str] = field(default_factory=list)
    offsets: ParameterOffsets | None = None
    first_shards: int = 4
    settle: timedelta = SETTLE
    fixed_services: Services | None = None

    def __post_init__(self) -> None:
        self.dynamodb = aws_client(self.tables.url, "dynamodb")
        self.process = MortalClient(self.dynamodb)
        self.objects = Objects(aws_client(self.tables.url, "s3"), self.tables.bucket)
        self.shards = Shards(self.dynamodb, self.tables.lineage, self.first_shards, self.clock)
        self.clock.turn(days=-30)
        self.shards.generations()
        self.clock.turn(days=30)

    @property
    def services(self) -> Services:
        """What the engine works with."""
        return self.fixed_services or Services(
            key_values=KeyValueStore(self.process, self.tables.key_values, RETENTION, self.clock),
            states=States(self.dynamodb, self.tables.key_values),
            log=LogReader(self.dynamodb, self.tables.lineage, self.objects),
            shards=self.shards,
            assets=self.catalog,
            barred=lambda _: self.barred,
            exporter=self._exporter,
            settle=self.settle,
            offsets=self.offsets,
            clock=self.clock,
        )

    def _exporter(self, config: AnyExporter, run: Run) -> StreamExporter | BatchExporter:  # noqa: ARG002 - the port
        exporter: StreamExporter | BatchExporter = self.exporters[config.id]
        return exporter

    def stream(self, exporter_id: str = "marquez", **properties: Any) -> TellingExporter:
        """Make an exporter that answers event by event."""
        return self.exporters.setdefault(exporter_id, TellingExporter(**properties))  # type: ignore[no-any-return]

    def batches(self, exporter_id: str = "files") -> TellingBatches:
        """Make an exporter of batches."""
        return self.exporters.setdefault(exporter_id, TellingBatches())  # type: ignore[no-any-return]

    def event(self, job: str = "load.customers", *, ago: float = 60, key: str | None = None, **changes: Any) -> str:
        """Put an event into the log, recorded so many seconds ago, and return its sort key."""
        key = key or uuid7(self.clock() - timedelta(seconds=ago))
        self.put_body(key, job, lineage_event(job, **changes).to_body())
        return key

    def fill(self, jobs: Iterable[str], *, ago: float, apart: float = 0.5) -> list[str]:
        """Put an event of each job into the log, so many seconds apart, and return their sort keys."""
        shards = self.shards.generations()
        keys, requests = [], []
        for number, job in enumerate(jobs):
            key = uuid7(self.clock() - timedelta(seconds=ago - number * apart))
            hour = hour_of_key(key)
            bucket = f"{hour}#{shard_of(f'{NAMESPACE}/{job}', generation_at(shards, hour).shards)}"
            item = {"bucket": {"S": bucket}, "id": {"S": key}, "body": {"S": lineage_event(job).to_body()}}
            requests.append({"PutRequest": {"Item": item}})
            keys.append(key)
        for start in range(0, len(requests), 25):
            self.dynamodb.batch_write_item(RequestItems={self.tables.lineage: requests[start : start + 25]})
        return keys

    def put_body(self, key: str, job: str, body: str) -> None:
        """Put a body, whatever it is, into the bucket of a job and a sort key."""
        hour = hour_of_key(key)
        shard = shard_of(f"{NAMESPACE}/{job}", generation_at(self.shards.generations(), hour).shards)
        item = {"bucket": {"S": f"{hour}#{shard}"}, "id": {"S": key}, "body": {"S": body}}
        self.dynamodb.put_item(TableName=self.tables.lineage, Item=item)

    def flow(self, flow_id: str = "ship", task_id: str = "ship_lineage", **properties: Any) -> Any:
        """Return a flow with one task to all exporters of this world."""
        exporters = [
            {"id": name, "type": "OpenLineageAssetExporter", "uri": "http://127.0.0.1:1"} for name in self.exporters
        ]
        task = {
            "id": task_id,
            "type": "AssetShipper",
            "assetExporters": exporters,
            "lookbackPeriod": "PT6H",
        } | properties
        return parse_flow({"id": flow_id, "namespace": NAMESPACE, "tasks": [task]})

    def ship(self, flow: Any = None, *, seconds: float = 60, owner: str = "run", **properties: Any) -> dict[str, Any]:
        """Run a flow, and return the answer of its task."""
        flow = flow or self.flow(**properties)
        answer, _ = asyncio.run(run_flow(self.services, flow, seconds, owner))
        outputs: dict[str, Any] = answer["outputs"][flow.shippers[0].id]
        return outputs

    def ship_and_die(self, **properties: Any) -> None:
        """Run a flow whose process is killed on the way: something must set `process.dead`."""
        try:
            self.ship(**properties)
        except Died:
            self.process.dead = False
            self.clock.turn(seconds=61)
        else:
            raise AssertionError("nothing killed the process")

    def state(self) -> dict[str, Any]:
        """Return the state of the task, without types; empty where there is none."""
        key = {"namespace": {"S": NAMESPACE}, "key": {"S": STATE_KEY}}
        item = self.dynamodb.get_item(TableName=self.tables.key_values, Key=key, ConsistentRead=True).get("Item", {})
        return {name: next(iter(value.values())) for name, value in item.items()}

    def delete_state(self) -> None:
        """Do what a user does to start again."""
        key = {"namespace": {"S": NAMESPACE}, "key": {"S": STATE_KEY}}
        self.dynamodb.delete_item(TableName=self.tables.key_values, Key=key)

    def values(self) -> dict[str, dict[str, Any]]:
        """Return all items of the key-value table by key, without types."""
        items = self.dynamodb.scan(TableName=self.tables.key_values)["Items"]
        return {item["key"]["S"]: {name: next(iter(value.values())) for name, value in item.items()} for item in items}

    def position_name(self, exporter_id: str) -> str:
        """Return the key under which an exporter's position is stored."""
        (name,) = (name for name in self.values() if name.endswith(f"#{exporter_id}"))
        return name

    def put_position(self, name: str, body: dict[str, str]) -> None:
        """Put something else, with its type, where a position is stored."""
        self.dynamodb.update_item(
            TableName=self.tables.key_values,
            Key={"namespace": {"S": NAMESPACE}, "key": {"S": name}},
            UpdateExpression="SET body = :body",
            ExpressionAttributeValues={":body": body},
        )

    def log_keys(self) -> set[str]:
        """Return the sort keys of the events in the log."""
        items = self.dynamodb.scan(TableName=self.tables.lineage, ConsistentRead=True)["Items"]
        return {item["id"]["S"] for item in items if "body" in item}


def lineage_event(job: str = "load.customers", **changes: Any) -> LineageEvent:
    """Return an event of a job `<flowId>.<taskId>`, one asset read and one written."""
    flow_id, _, task_id = job.partition(".")
    said: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "namespace": NAMESPACE,
        "flow_id": flow_id,
        "execution_id": "execution",
        "task_id": task_id,
        "task_run_id": str(uuid.uuid4()),
        "state": "SUCCESS",
        "start_date": iso(NOON),
        "end_date": iso(NOON),
        "inputs": (AssetRef("raw", "table", NAMESPACE),),
        "outputs": (AssetRef("clean", "table", NAMESPACE),),
    }
    return LineageEvent(**(said | changes))
