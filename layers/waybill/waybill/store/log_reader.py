"""The log of lineage events, for readers: consistent pages of one bucket, in the order of the sort key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from waybill.model.event import event_from_body
from waybill.store.quick_queries import quicken

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from waybill.model.event import LineageEvent
    from waybill.store.objects import Objects

PAGE_ITEMS = 400
MOST_FETCHED_BYTES = 8_000_000
"""A page ends early when the bodies that it fetched from S3 are larger than this."""


@dataclass(frozen=True, slots=True)
class LogItem:
    """An event as it stands in the log: its sort key and its body, unread; or why there is no body."""

    key: str
    body: str | bytes
    fault: str | None = None

    def event(self) -> LineageEvent | str:
        """Return the event, or say why it cannot be read."""
        if self.fault is not None:
            return f"the log item holds no lineage event: {self.fault}"
        try:
            return event_from_body(self.key, self.body)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return f"the log item holds no lineage event: {type(error).__name__}: {error}"


def log_item(item: dict[str, Any], objects: Objects) -> LogItem:
    """Make an item of the table ready to be read; a large body is fetched from S3."""
    key = item["id"]["S"]
    inline = item.get("body")
    if inline is not None:
        return LogItem(key, inline["S"]) if "S" in inline else LogItem(key, "", "its body is no text")
    name = item.get("object", {}).get("S")
    if not name:
        return LogItem(key, "", "it has no body")
    body = objects.find(name)
    return LogItem(key, "", f"its body {name} is not in S3 any more") if body is None else LogItem(key, body)


@dataclass(frozen=True, slots=True)
class LogPage:
    """A page of a bucket. `more` is the key to go on after; None is the end of what was asked for."""

    items: list[LogItem]
    more: str | None


class LogReader:
    """Reads and deletes events. Bodies that stand in S3 are fetched; readers never notice."""

    def __init__(self, client: Any, table: str, objects: Objects) -> None:
        quicken(client)
        self._client = client
        self._table = table
        self._objects = objects

    def page(self, bucket: str, after: str, until: str, limit: int = PAGE_ITEMS) -> LogPage:
        """Read the events of a bucket with `after` < key <= `until`, at most `limit` of them."""
        answer = self._query(bucket, after, until, "id, body, #object", limit, {"#object": "object"})
        items: list[LogItem] = []
        room = MOST_FETCHED_BYTES
        for item in answer["Items"]:
            items.append(log_item(item, self._objects))
            room -= len(items[-1].body) if "object" in item else 0
            if room < 0:
                return LogPage(items, items[-1].key)
        more = answer.get("LastEvaluatedKey")
        return LogPage(items, more["id"]["S"] if more else None)

    def keys(self, bucket: str, after: str, until: str) -> Iterator[str]:
        """Return the sort keys of a bucket with `after` < key <= `until`."""
        more: str | None = after
        while more is not None:
            answer = self._query(bucket, more, until, "id", None, {})
            yield from (item["id"]["S"] for item in answer["Items"])
            last = answer.get("LastEvaluatedKey")
            more = last["id"]["S"] if last else None

    def get(self, bucket: str, key: str) -> LogItem | None:
        """Read one event."""
        answer = self._client.get_item(
            TableName=self._table, Key={"bucket": {"S": bucket}, "id": {"S": key}}, ConsistentRead=True
        )
        return log_item(answer["Item"], self._objects) if "Item" in answer else None

    def delete(self, keys: Sequence[tuple[str, str]]) -> None:
        """Delete events by `(bucket, id)`."""
        for start in range(0, len(keys), 25):
            requests = [
                {"DeleteRequest": {"Key": {"bucket": {"S": bucket}, "id": {"S": key}}}}
                for bucket, key in keys[start : start + 25]
            ]
            while requests:
                answer = self._client.batch_write_item(RequestItems={self._table: requests})
                requests = answer.get("UnprocessedItems", {}).get(self._table, [])

    def _query(
        self, bucket: str, after: str, until: str, projection: str, limit: int | None, names: dict[str, str]
    ) -> dict[str, Any]:
        # BETWEEN takes both its ends in; a sort key with something behind it is the least one after it.
        bound = {} if limit is None else {"Limit": limit}
        answer: dict[str, Any] = self._client.query(
            TableName=self._table,
            KeyConditionExpression="#bucket = :bucket AND id BETWEEN :after AND :until",
            ExpressionAttributeNames={"#bucket": "bucket"} | names,
            ExpressionAttributeValues={":bucket": {"S": bucket}, ":after": {"S": f"{after}+"}, ":until": {"S": until}},
            ProjectionExpression=projection,
            ConsistentRead=True,
            **bound,
        )
        return answer
