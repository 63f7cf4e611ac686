"""Who read and wrote which asset in which run: one row per asset and event. Edges are made when they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from waybill.clock import utc_now
from waybill.model.usage import Usage, usage_from
from waybill.store.batches import get_items, write_items

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta


class UsageStore:
    """The usages, in the table of the catalog.

    Args:
        keep: how long a usage is kept: as long as the log keeps its event.
    """

    def __init__(self, client: Any, table: str, keep: timedelta, clock: Callable[[], datetime] = utc_now) -> None:
        self._client = client
        self._table = table
        self._keep = keep
        self._clock = clock

    def put_all(self, usages: Sequence[Usage]) -> None:
        """Write usages; writing one again changes nothing."""
        expires = {"N": str(int((self._clock() + self._keep).timestamp()))}
        requests = [
            {
                "PutRequest": {
                    "Item": {
                        **_key(usage),
                        "job": {"S": usage.job},
                        "use": {"S": f"{usage.direction}#{usage.shape}#{usage.asset_id}"},
                        "body": {"S": usage.to_body()},
                        "expires": expires,
                    }
                }
            }
            for usage in usages
        ]
        write_items(self._client, self._table, requests)

    def stored(self, usages: Sequence[Usage]) -> list[Usage]:
        """Return those of the usages that have been written, as they stand there."""
        items = get_items(self._client, self._table, [_key(usage) for usage in usages])
        return [_usage(item) for item in items]


def _usage(item: dict[str, Any]) -> Usage:
    return usage_from(item["pk"]["S"].removeprefix("asset#"), item["sk"]["S"], item["body"]["S"])


def _key(usage: Usage) -> dict[str, Any]:
    return {"pk": {"S": f"asset#{usage.asset_id}"}, "sk": {"S": usage.row}}
