"""The hours in which something was recorded, so that looking back does not ask for every empty one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from waybill.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime, timedelta

_HOURS = "hours"


class Hours:
    """The hours, in the table of the catalog: `2026-12-01T09`.

    Args:
        client: a DynamoDB client.
        table: the table of the catalog.
        keep: how long the log keeps an event.
        clock: tells the present.
    """

    def __init__(self, client: Any, table: str, keep: timedelta, clock: Callable[[], datetime] = utc_now) -> None:
        self._client = client
        self._table = table
        self._keep = keep
        self._clock = clock
        self._known: set[str] = set()

    def add(self, hours: Iterable[str]) -> None:
        """Remember hours; each costs this process one write."""
        for hour in set(hours) - self._known:
            expires = str(int((self._clock() + self._keep).timestamp()) + 3600)
            item = {"pk": {"S": _HOURS}, "sk": {"S": hour}, "expires": {"N": expires}}
            self._client.put_item(TableName=self._table, Item=item)
            self._known.add(hour)

    def newest_first(self, oldest: str, newest: str) -> Iterator[str]:
        """Go through the hours between two, both included."""
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="pk = :pk AND sk BETWEEN :oldest AND :newest",
            ExpressionAttributeValues={":pk": {"S": _HOURS}, ":oldest": {"S": oldest}, ":newest": {"S": newest}},
            ScanIndexForward=False,
            ConsistentRead=True,
            PaginationConfig={"PageSize": 200},
        )
        for page in pages:
            yield from (item["sk"]["S"] for item in page["Items"])
