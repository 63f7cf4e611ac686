"""How many shards the log has, hour by hour.

A generation begins at an hour border and holds until the next one begins. It is announced at least two borders ahead,
and no writer keeps what it knows beyond a border, so all writers of an hour agree.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from waybill.clock import utc_now
from waybill.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Callable

_PARTITION = "shards"
FIRST = "0000"
_BORDERS_AHEAD = 2
_WRONG_CLOCKS = timedelta(hours=1)
"""No writer's clock is further behind than this."""

MOST_SHARDS = 256


@dataclass(frozen=True, slots=True)
class Generation:
    """A number of shards, from an hour (`2026-12-01T09`) on.

    Attributes:
        begun: of the first generation, an hour before which nobody can have written; "" where it is not known.
    """

    start: str
    shards: int
    begun: str = ""


def hour_of(moment: datetime) -> str:
    """Return the UTC hour that an instant lies in: `2026-12-01T09`."""
    return f"{moment.year:04}-{moment.month:02}-{moment.day:02}T{moment.hour:02}"


def hour_start(hour: str) -> datetime:
    """Return the first instant of an hour."""
    return datetime.fromisoformat(f"{hour}:00:00+00:00")


def next_hour(hour: str) -> str:
    """Return the hour after an hour."""
    return hour_of(hour_start(hour) + timedelta(hours=1))


def shard_of(job: str, shards: int) -> int:
    """Return the shard of a job: always the same while the number of shards is."""
    return zlib.crc32(job.encode()) % shards


class Shards:
    """The generations of one log."""

    def __init__(self, client: Any, table: str, first: int, clock: Callable[[], datetime] = utc_now) -> None:
        self._client = client
        self._table = table
        self._first = first
        self._clock = clock
        self._known: tuple[str, list[Generation]] = ("", [])

    def generations(self) -> list[Generation]:
        """Read all generations, oldest first; the first one is written down when nobody has yet."""
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="#bucket = :partition",
            ExpressionAttributeNames={"#bucket": "bucket"},
            ExpressionAttributeValues={":partition": {"S": _PARTITION}},
            ConsistentRead=True,
        )
        found = [_generation(item) for page in pages for item in page["Items"]]
        if not found:
            self._put(Generation(FIRST, self._first, hour_of(self._clock() - _WRONG_CLOCKS)))
            return self.generations()
        return found

    def at(self, hour: str) -> Generation:
        """Return the generation of an hour that has begun, as known since the last border at most."""
        now = hour_of(self._clock())
        if self._known[0] != now:
            self._known = (now, self.generations())
        return generation_at(self._known[1], hour)

    def announce(self, shards: int) -> Generation:
        """Change the number of shards from two hour borders ahead on.

        Raises:
            Conflict: another number was announced for that hour already.
        """
        self.generations()
        hour = hour_of(self._clock())
        for _ in range(_BORDERS_AHEAD):
            hour = next_hour(hour)
        if not self._put(Generation(hour, shards)):
            raise Conflict(f"a number of shards was announced for {hour} already; try again in the next hour")
        return Generation(hour, shards)

    def _put(self, generation: Generation) -> bool:
        try:
            self._client.put_item(
                TableName=self._table,
                Item={
                    "bucket": {"S": _PARTITION},
                    "id": {"S": generation.start},
                    "shards": {"N": str(generation.shards)},
                    "begun": {"S": generation.begun},
                },
                ConditionExpression="attribute_not_exists(id)",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            return False
        return True


def _generation(item: dict[str, Any]) -> Generation:
    return Generation(item["id"]["S"], int(item["shards"]["N"]), item.get("begun", {}).get("S", ""))


def generation_at(generations: list[Generation], hour: str) -> Generation:
    """Return the generation that an hour belongs to."""
    return generations[bisect_right([generation.start for generation in generations], hour) - 1]
