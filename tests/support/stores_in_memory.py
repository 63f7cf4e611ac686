"""The engine's stores in the memory of the test, with the same promises: fences, conditions, order of the log."""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from moto.dynamodb.exceptions import ConditionalCheckFailed
from moto.dynamodb.models import DynamoDBBackend

from tests.support.shipping import Died
from waybill.store.log_reader import LogItem, LogPage
from waybill.store.shards import Generation, hour_of, next_hour

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from datetime import datetime


class LogInMemory:
    """A log whose pages are as short as chance has them, or empty with more behind them."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng
        self._keys: dict[str, list[str]] = defaultdict(list)
        self._bodies: dict[str, str] = {}

    def put(self, bucket: str, key: str, body: str) -> None:
        """Append an event."""
        insort(self._keys[bucket], key)
        self._bodies[key] = body

    def page(self, bucket: str, after: str, until: str, limit: int = 400) -> LogPage:
        keys = list(self.keys(bucket, after, until))
        if self._rng is not None:
            limit = self._rng.randint(0, 4)
        more = (keys[limit - 1] if limit else after) if len(keys) > limit else None
        return LogPage([LogItem(key, self._bodies[key]) for key in keys[:limit]], more)

    def keys(self, bucket: str, after: str, until: str) -> Iterator[str]:
        keys = self._keys[bucket]
        return iter(keys[bisect_right(keys, after) : bisect_right(keys, until)])

    def get(self, bucket: str, key: str) -> LogItem | None:
        return LogItem(key, self._bodies[key]) if key in self._keys[bucket] else None


@dataclass
class ShardsInMemory:
    """The generations of a log."""

    clock: Callable[[], datetime]
    found: list[Generation]

    def generations(self) -> list[Generation]:
        return list(self.found)

    def announce(self, shards: int) -> None:
        start = next_hour(next_hour(hour_of(self.clock())))
        if all(generation.start < start for generation in self.found):
            self.found.append(Generation(start, shards))


class TableInMemory:
    """The key-value table: moto's own, so that every condition counts, without the way there."""

    name = "values"

    def __init__(self) -> None:
        self._backend = DynamoDBBackend("us-east-1", "123456789012")
        self._one_at_a_time = threading.Lock()
        keys = ("namespace", "key")
        self._backend.create_table(
            self.name,
            schema=[{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=True)],
            attr=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
            billing_mode="PAY_PER_REQUEST",
            throughput=None,
            global_indexes=None,
            indexes=None,
            streams=None,
            sse_specification=None,
            tags=[],
            deletion_protection_enabled=False,
            warm_throughput=None,
        )

    def position(self) -> str | None:
        """Return the JSON of the only position, or None where there is none yet."""
        return next((item["body"]["S"] for item in self._items() if "body" in item), None)

    def end_fetched_date(self) -> str:
        """Return the end that is stored with the only state, "" where there is none yet."""
        return next((item["endFetchedDate"]["S"] for item in self._items() if "endFetchedDate" in item), "")

    def _items(self) -> list[dict[str, Any]]:
        return [item.to_json()["Attributes"] for item in self._backend.get_table(self.name).all_items()]

    def get(self, key: dict[str, Any]) -> dict[str, Any]:
        """Return an item, empty where there is none."""
        item = self._backend.get_item(self.name, key)
        return item.to_json()["Attributes"] if item else {}

    def update(self, key: dict[str, Any], update: str, condition: str, names: Any, values: Any) -> dict[str, Any]:
        """Update an item, and return it."""
        try:
            with self._one_at_a_time:
                item = self._backend.update_item(self.name, key, update, names, values, condition_expression=condition)
        except ConditionalCheckFailed as error:
            code = {"Error": {"Code": "ConditionalCheckFailedException", "Message": ""}}
            raise ClientError(code, "UpdateItem") from error  # type: ignore[arg-type]
        attributes: dict[str, Any] = item.to_json()["Attributes"]
        return attributes


class Process:
    """The DynamoDB client of one run, whose process may be killed.

    Attributes:
        dead: whatever it still does raises `Died`.
        before_write: told the number of each write before it is carried out.
    """

    def __init__(self, table: TableInMemory, before_write: Callable[[int], None] = lambda _: None) -> None:
        self._table = table
        self._before_write = before_write
        self._writes = 0
        self.dead = False

    def update_item(
        self,
        Key: dict[str, Any],  # noqa: N803 - boto3's names
        UpdateExpression: str,  # noqa: N803
        ConditionExpression: str,  # noqa: N803
        ExpressionAttributeValues: dict[str, Any],  # noqa: N803
        ExpressionAttributeNames: dict[str, str] | None = None,  # noqa: N803
        **_: Any,
    ) -> dict[str, Any]:
        self._writes += 1
        if not self.dead:
            self._before_write(self._writes)
        if self.dead:
            raise Died
        names, values = ExpressionAttributeNames or {}, ExpressionAttributeValues
        return {"Attributes": self._table.update(Key, UpdateExpression, ConditionExpression, names, values)}

    def get_item(self, Key: dict[str, Any], **_: Any) -> dict[str, Any]:  # noqa: N803
        if self.dead:
            raise Died
        return {"Item": self._table.get(Key)}
