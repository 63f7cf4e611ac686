"""The tables, the bucket and the bus of the stack in the memory of the test, for one test."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from aws_lambda_powertools import Logger
from moto import mock_aws

from waybill.model.asset import TABLE
from waybill.model.event import LineageEvent, event_from_body
from waybill.record.wiring import recorder_of
from waybill.settings import Settings
from waybill.store import aws
from waybill.store.catalog import AssetStore, Writer
from waybill.store.locks import LockStore
from waybill.store.namespaces import NamespaceStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from waybill.model.asset import Asset
    from waybill.record.recorder import Recorder


def report(**changes: Any) -> dict[str, Any]:
    """Return a report of a successful run of `company.sales`, `load.customers`, with changes."""
    return {
        "namespace": "company.sales",
        "flowId": "load",
        "executionId": "execution-1",
        "taskId": "customers",
        "taskRunId": "run-1",
        "state": "SUCCESS",
        "startDate": "2026-12-01T09:00:00Z",
        "endDate": "2026-12-01T09:00:05Z",
    } | changes


@pytest.fixture(scope="module")
def _moto() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.delenv("AWS_ENDPOINT_URL", raising=False)
        with mock_aws():
            _forget_clients()
            yield
    _forget_clients()


@pytest.fixture
def stack(_moto: None) -> StackInMemory:
    """A stack of the test's own."""
    return stack_in_memory()


@pytest.fixture(scope="module")
def module_stack(_moto: None) -> StackInMemory:
    """A stack that the tests of a module share."""
    return stack_in_memory()


@pytest.fixture
def stack_of_comparison(_moto: None) -> StackInMemory:
    """Another stack, to compare with."""
    return stack_in_memory()


def _forget_clients() -> None:
    aws.client.cache_clear()
    aws.single_try_client.cache_clear()


@dataclass
class StackInMemory:
    """A stack on moto: what the recorder needs, and ways to look at what it left."""

    settings: Settings
    dynamodb: Any
    s3: Any
    sqs: Any
    bus_queue: str

    @property
    def recorder(self) -> Recorder:
        """A recorder as the function makes it."""
        return recorder_of(self.settings, Logger(service="test"))

    @property
    def assets(self) -> AssetStore:
        return AssetStore(self.dynamodb, self.settings.catalog_table)

    @property
    def locks(self) -> LockStore:
        return LockStore(self.dynamodb, self.settings.catalog_table)

    @property
    def namespaces(self) -> NamespaceStore:
        return NamespaceStore(self.dynamodb, self.settings.key_value_table)

    def record(self, **changes: Any) -> dict[str, Any]:
        """Record a report and return the answer."""
        return self.recorder.record(report(**changes))

    def write(self, asset_id: str, *, run: str = "", **properties: Any) -> dict[str, Any]:
        """Record a run of its own that writes one asset."""
        output = {"id": asset_id, "type": TABLE} | properties
        return self.record(taskRunId=run or uuid.uuid4().hex, assets={"outputs": [output]})

    def delete(self, asset_id: str) -> None:
        """Mark an asset as deleted."""
        stored = self.assets.load(asset_id)
        self.assets.write(asset_id, stored, _deleted, Writer("USER#test"))

    def asset(self, asset_id: str) -> Asset:
        """Return a stored asset."""
        return self.assets.get_many([asset_id])[asset_id]

    def items(self, table: str) -> list[dict[str, Any]]:
        """Return all items of a table."""
        items: list[dict[str, Any]] = []
        for page in self.dynamodb.get_paginator("scan").paginate(TableName=table):
            items += page["Items"]
        return items

    def events(self) -> list[LineageEvent]:
        """Return the lineage events of the log in the order of their recording."""
        items = [item for item in self.items(self.settings.lineage_table) if "body" in item]
        return [
            event_from_body(item["id"]["S"], item["body"]["S"]) for item in sorted(items, key=lambda i: i["id"]["S"])
        ]

    def uses(self) -> list[tuple[str, str]]:
        """Return the use rows as (asset id, R or W), sorted."""
        rows = [(item["pk"]["S"], item["sk"]["S"]) for item in self.items(self.settings.catalog_table)]
        return sorted((pk.removeprefix("asset#"), sk.split("#")[1]) for pk, sk in rows if sk.startswith("use#"))

    def empty(self) -> None:
        """Remove every item of the log and the catalog."""
        for table, keys in (
            (self.settings.lineage_table, ("bucket", "id")),
            (self.settings.catalog_table, ("pk", "sk")),
        ):
            for item in self.items(table):
                self.dynamodb.delete_item(TableName=table, Key={key: item[key] for key in keys})

    def announced(self) -> list[dict[str, Any]]:
        """Return what was put on the bus since the last call."""
        messages = self.sqs.receive_message(QueueUrl=self.bus_queue, MaxNumberOfMessages=10).get("Messages", [])
        return [json.loads(message["Body"]) for message in messages]


def _deleted(asset: Asset | None) -> Asset | None:
    return asset and asset.model_copy(update={"deleted": True})


def stack_in_memory() -> StackInMemory:
    """Make a stack under names that nobody else uses. Moto must be active."""
    name = uuid.uuid4().hex[:12]
    dynamodb, s3, sqs, bus = boto3.client("dynamodb"), boto3.client("s3"), boto3.client("sqs"), boto3.client("events")
    _table(dynamodb, f"log-{name}", ("bucket", "id"), {})
    indexes = {"byNamespace": ("namespace", "id"), "byJob": ("job", "use")}
    _table(dynamodb, f"catalog-{name}", ("pk", "sk"), indexes)
    _table(dynamodb, f"values-{name}", ("namespace", "key"), {})
    s3.create_bucket(Bucket=f"bucket-{name}")
    bus.create_event_bus(Name=f"bus-{name}")
    queue = sqs.create_queue(QueueName=f"queue-{name}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = json.dumps({"detail-type": ["Task State Changed"]})
    bus.put_rule(Name="all", EventBusName=f"bus-{name}", EventPattern=pattern)
    bus.put_targets(Rule="all", EventBusName=f"bus-{name}", Targets=[{"Id": "queue", "Arn": arn}])
    settings = Settings(f"log-{name}", f"catalog-{name}", f"values-{name}", f"bucket-{name}", f"bus-{name}")
    return StackInMemory(settings, dynamodb, s3, sqs, queue)


def _table(dynamodb: Any, name: str, keys: tuple[str, str], indexes: dict[str, tuple[str, str]]) -> None:
    def schema(pair: tuple[str, str]) -> list[dict[str, str]]:
        return [{"AttributeName": pair[0], "KeyType": "HASH"}, {"AttributeName": pair[1], "KeyType": "RANGE"}]

    attributes = {attribute for pair in (keys, *indexes.values()) for attribute in pair}
    projection = {"ProjectionType": "KEYS_ONLY"}
    secondary = [
        {"IndexName": index, "KeySchema": schema(pair), "Projection": projection} for index, pair in indexes.items()
    ]
    dynamodb.create_table(
        TableName=name,
        KeySchema=schema(keys),
        AttributeDefinitions=[{"AttributeName": attribute, "AttributeType": "S"} for attribute in sorted(attributes)],
        BillingMode="PAY_PER_REQUEST",
        **({"GlobalSecondaryIndexes": secondary} if secondary else {}),
    )
