"""Many items in few calls. DynamoDB may leave a part of a batch undone; here that part is asked for again."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from waybill.errors import StoreBusy
from waybill.threads import side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MOST_READ = 100
_MOST_WRITTEN = 25
_ATTEMPTS = 10


def get_items(client: Any, table: str, keys: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Read items by their keys, consistently, in no order; keys without an item give none. Keys must differ.

    Raises:
        StoreBusy: the table stays too busy.
    """

    def read(part: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []

        def once(left: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
            answer = client.batch_get_item(RequestItems={table: {"Keys": left, "ConsistentRead": True}})
            found.extend(answer["Responses"].get(table, ()))
            undone: Sequence[dict[str, Any]] = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", ())
            return undone

        _until_done(once, part)
        return found

    return [item for items in side_by_side(read, _parts(keys, _MOST_READ)) for item in items]


def write_items(client: Any, table: str, requests: Sequence[dict[str, Any]]) -> None:
    """Carry out put and delete requests without conditions, on keys that differ.

    Raises:
        StoreBusy: the table stays too busy; a part of the requests may have been carried out.
    """

    def once(left: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
        undone: Sequence[dict[str, Any]] = (
            client.batch_write_item(RequestItems={table: left}).get("UnprocessedItems", {}).get(table, ())
        )
        return undone

    side_by_side(lambda part: _until_done(once, part), _parts(requests, _MOST_WRITTEN))


def _parts(items: Sequence[dict[str, Any]], size: int) -> list[Sequence[dict[str, Any]]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _until_done(
    once: Callable[[Sequence[dict[str, Any]]], Sequence[dict[str, Any]]], part: Sequence[dict[str, Any]]
) -> None:
    for attempt in range(_ATTEMPTS):
        part = once(part)
        if not part:
            return
        time.sleep(random.uniform(0.5, 1) * min(2.0, 0.05 * 2**attempt))  # noqa: S311 - jitter is no secret
    raise StoreBusy(f"{len(part)} items of a batch were left undone {_ATTEMPTS} times; the table is too busy")
