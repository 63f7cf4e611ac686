"""The log backwards, for people who look at it: newest events first, across shards and hours."""

from __future__ import annotations

import heapq
from itertools import islice
from typing import TYPE_CHECKING, Any

from waybill.clock import from_millis
from waybill.ids import uuid7_floor, uuid7_millis
from waybill.store.log_reader import LogItem, log_item
from waybill.store.shards import hour_of, hour_start
from waybill.threads import side_by_side

if TYPE_CHECKING:
    from collections.abc import Iterator

    from waybill.store.hours import Hours
    from waybill.store.objects import Objects
    from waybill.store.shards import Shards

_HOURS = 6
"""Hours whose first pages are read side by side."""
_PAGE = 100


class History:
    """Reads events backwards."""

    def __init__(self, client: Any, table: str, shards: Shards, hours: Hours, objects: Objects) -> None:
        self._client = client
        self._table = table
        self._shards = shards
        self._hours = hours
        self._objects = objects

    def newest_first(self, oldest: str, before: str) -> Iterator[tuple[str, str, LogItem | None]]:
        """Go through the events with `oldest` <= key < `before`.

        Yields:
            Key and bucket of each event, and the event; after every few hours the key that was reached, and nothing.
        """
        hours = self._hours.newest_first(_hour_of_key(oldest), _hour_of_key(before))
        while part := list(islice(hours, _HOURS)):
            buckets = [[f"{hour}#{shard}" for shard in range(self._shards.at(hour).shards)] for hour in part]
            asks = [(bucket, oldest, before) for hour in buckets for bucket in hour]
            pages = iter(side_by_side(lambda ask: self._page(*ask), asks))
            for hour in buckets:
                streams = [self._rest(bucket, oldest, *next(pages)) for bucket in hour]
                yield from heapq.merge(*streams, key=lambda found: found[0], reverse=True)
            before = uuid7_floor(hour_start(part[-1]))
            yield before, "", None

    def _rest(
        self, bucket: str, oldest: str, items: list[LogItem], more: str | None
    ) -> Iterator[tuple[str, str, LogItem | None]]:
        yield from ((item.key, bucket, item) for item in items)
        while more is not None:
            items, more = self._page(bucket, oldest, more)
            yield from ((item.key, bucket, item) for item in items)

    def _page(self, bucket: str, oldest: str, before: str) -> tuple[list[LogItem], str | None]:
        """Read a page; return with it the key before which to go on, None at the end."""
        answer = self._client.query(
            TableName=self._table,
            KeyConditionExpression="#bucket = :bucket AND id BETWEEN :oldest AND :before",
            ExpressionAttributeNames={"#bucket": "bucket"},
            ExpressionAttributeValues={":bucket": {"S": bucket}, ":oldest": {"S": oldest}, ":before": {"S": before}},
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=_PAGE,
        )
        items = [log_item(item, self._objects) for item in answer["Items"] if item["id"]["S"] != before]
        last = answer.get("LastEvaluatedKey")
        return items, last["id"]["S"] if last else None


def _hour_of_key(key: str) -> str:
    return hour_of(from_millis(uuid7_millis(key)))
