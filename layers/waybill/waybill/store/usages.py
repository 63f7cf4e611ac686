"""Who read and wrote which asset in which run: one row per asset and event. Edges are made when they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from waybill.clock import utc_now
from waybill.model.usage import Usage, usage_from
from waybill.store.batches import get_items, write_items
from waybill.store.hours import Hours
from waybill.store.skipping import Range, first_of_each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime, timedelta

    from waybill.model.usage import Direction


class UsageStore:
    """The usages, in the table of the catalog.

    Args:
        client: a DynamoDB client.
        table: the table of the catalog.
        keep: how long a usage is kept: as long as the log keeps its event.
        clock: tells the present.
    """

    def __init__(self, client: Any, table: str, keep: timedelta, clock: Callable[[], datetime] = utc_now) -> None:
        self._client = client
        self._table = table
        self._keep = keep
        self._clock = clock
        self.hours = Hours(client, table, keep, clock)

    def put_all(self, usages: Sequence[Usage]) -> None:
        """Write usages; writing one again changes nothing."""
        self.hours.add(usage.log_bucket.partition("#")[0] for usage in usages)
        expires = str(int((self._clock() + self._keep).timestamp()))
        requests = [{"PutRequest": {"Item": _item(usage, expires)}} for usage in usages]
        write_items(self._client, self._table, requests)

    def delete_all(self, usages: Sequence[Usage]) -> None:
        """Remove usages for good."""
        write_items(self._client, self._table, [{"DeleteRequest": {"Key": _key(usage)}} for usage in usages])

    def stored(self, usages: Sequence[Usage]) -> list[Usage]:
        """Return those of the usages that have been written, as they stand there."""
        return [_usage(item) for item in get_items(self._client, self._table, [_key(usage) for usage in usages])]

    def of_asset(self, asset_id: str, after: str = "") -> Iterator[Usage]:
        """Go through the usages of an asset in the order of their rows, from after a row on."""
        low = f"{after}\x00" if after else "use#"
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="pk = :pk AND sk BETWEEN :low AND :high",
            ExpressionAttributeValues={
                ":pk": {"S": f"asset#{asset_id}"},
                ":low": {"S": low},
                ":high": {"S": "use#\uffff"},
            },
            PaginationConfig={"PageSize": 200},
        )
        for page in pages:
            yield from (_usage(item) for item in page["Items"])

    def one_of_each_shape(self, asset_id: str, direction: Direction) -> Iterator[Usage]:
        """Go through the different ways in which an asset is read or written: one usage per job and shape."""
        where = Range(
            {"TableName": self._table, "ConsistentRead": True},
            ("pk", f"asset#{asset_id}"),
            "sk",
            f"use#{direction}#",
        )
        for item in first_of_each(self._client, where, lambda item: item["sk"]["S"].rsplit("#", 1)[0] + "#"):
            yield _usage(item)

    def neighbours(self, usage: Usage) -> Sequence[str]:
        """Return the assets on the other side of a usage: what the run wrote with what it read, or the other way."""
        if usage.neighbours is not None:
            return usage.neighbours
        prefix = f"{'W' if usage.direction == 'R' else 'R'}#{usage.shape}#"
        where = Range({"TableName": self._table, "IndexName": "byJob"}, ("job", usage.job), "use", prefix)
        items = first_of_each(self._client, where, lambda item: str(item["use"]["S"]), after_group="\x00")
        return [item["use"]["S"].removeprefix(prefix) for item in items]


def _item(usage: Usage, expires: str) -> dict[str, Any]:
    return _key(usage) | {
        "job": {"S": usage.job},
        "use": {"S": f"{usage.direction}#{usage.shape}#{usage.asset_id}"},
        "body": {"S": usage.to_body()},
        "expires": {"N": expires},
    }


def _usage(item: dict[str, Any]) -> Usage:
    return usage_from(item["pk"]["S"].removeprefix("asset#"), item["sk"]["S"], item["body"]["S"])


def _key(usage: Usage) -> dict[str, Any]:
    return {"pk": {"S": f"asset#{usage.asset_id}"}, "sk": {"S": usage.row}}
