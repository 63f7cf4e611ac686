"""A log on an emulator, filled with events of a few jobs over many hours, and what it is shipped with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from tests.support.tables import Tables, aws_client, make_tables
from waybill.clock import utc_now
from waybill.export.openlineage.exporter import OpenLineageExporter
from waybill.ids import uuid7
from waybill.model.flow import parse_flow
from waybill.ship.flow import run_flow
from waybill.ship.reader import hour_of_key
from waybill.ship.services import Services
from waybill.store.catalog import AssetStore, Writer
from waybill.store.dead_letters import DeadLetters
from waybill.store.keyvalue import KeyValueStore
from waybill.store.log_reader import LogReader
from waybill.store.objects import Objects
from waybill.store.shards import Shards, shard_of
from waybill.store.states import States

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from waybill.model.asset import Asset
    from waybill.model.event import LineageEvent

SHARDS = 4
PER_BUCKET = 400
"""Events per hour and shard: the emulator reads larger partitions slowly."""

RETENTION = timedelta(days=400)
SETTLE = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class FilledLog:
    """A log of so many events, recorded one after the other until an hour ago."""

    tables: Tables
    events: int

    @property
    def hours(self) -> int:
        """Over how many hours the events were recorded."""
        return -(-self.events // (SHARDS * PER_BUCKET))

    @classmethod
    def make(cls, url: str, events: Iterable[LineageEvent], count: int, assets: Iterable[Asset]) -> FilledLog:
        """Make tables and fill them."""
        log = cls(make_tables(url), count)
        dynamodb = aws_client(url, "dynamodb")
        Shards(dynamodb, log.tables.lineage, SHARDS, lambda: utc_now() - timedelta(hours=log.hours + 2)).generations()
        items = log._items(events)
        while part := list(islice(items, 25)):
            requests = [{"PutRequest": {"Item": item}} for item in part]
            dynamodb.batch_write_item(RequestItems={log.tables.lineage: requests})
        store = AssetStore(dynamodb, log.tables.catalog)
        for asset in assets:
            store.write(asset.id, None, lambda _, asset=asset: asset, Writer("bench"))  # type: ignore[misc]
        return log

    def _items(self, events: Iterable[LineageEvent]) -> Iterator[dict[str, Any]]:
        begun = utc_now() - timedelta(hours=self.hours + 1)
        apart = timedelta(hours=self.hours) / self.events
        for number, event in enumerate(islice(events, self.events)):
            key = uuid7(begun + number * apart)
            bucket = f"{hour_of_key(key)}#{shard_of(event.job, SHARDS)}"
            yield {"bucket": {"S": bucket}, "id": {"S": key}, "body": {"S": event.to_body()}}

    def services(self, dynamodb: Any = None) -> Services:
        """Return what the engine works with."""
        dynamodb = dynamodb or aws_client(self.tables.url, "dynamodb")
        objects = Objects(aws_client(self.tables.url, "s3"), self.tables.bucket)
        letters = DeadLetters(dynamodb, self.tables.key_values, objects, RETENTION)
        return Services(
            key_values=KeyValueStore(dynamodb, self.tables.key_values, RETENTION),
            states=States(dynamodb, self.tables.key_values),
            log=LogReader(dynamodb, self.tables.lineage, objects),
            shards=Shards(dynamodb, self.tables.lineage, SHARDS),
            assets=AssetStore(dynamodb, self.tables.catalog),
            barred=lambda _: [],
            exporter=lambda config, run: OpenLineageExporter(config, run, letters),  # type: ignore[arg-type]
            settle=SETTLE,
        )

    def ship(self, task: str, receiver: str, services: Services | None = None) -> int:
        """Ship the log to a receiver under a key of the task's own, and return how many events were delivered."""
        exporter = {"id": "receiver", "type": "OpenLineageAssetExporter", "uri": receiver}
        shipper = {
            "id": task,
            "type": "AssetShipper",
            "lookbackPeriod": f"PT{self.hours + 2}H",
            "assetExporters": [exporter],
        }
        flow = parse_flow({"id": "bench", "namespace": "company.platform", "tasks": [shipper]})
        answer, _ = asyncio.run(run_flow(services or self.services(), flow, 3_600, "bench"))
        delivered: int = answer["outputs"][task]["outputs"]["receiver"]["delivered"]
        return delivered
