"""Ids in their order, from indexes, with seeking: what several indexes have in common costs few reads of each."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Protocol

from waybill.threads import side_by_side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from waybill.store.skipping import Range

_FIRST_PAGE = 32
_LARGEST_PAGE = 1024


class Ids(Protocol):
    """Ids in their order."""

    def at_or_after(self, least: str) -> str | None:
        """Return the first id that is not less than a text, or None. Each call asks for no less than the one before."""
        ...


def walk(ids: Ids, after: str = "") -> Iterator[str]:
    """Go through ids, from after one of them on."""
    found = ids.at_or_after(f"{after}\x00" if after else "")
    while found is not None:
        yield found
        found = ids.at_or_after(f"{found}\x00")


class FixedIds:
    """Ids that somebody named."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = sorted(set(ids))

    def at_or_after(self, least: str) -> str | None:
        """See `Ids`."""
        position = bisect_left(self._ids, least)
        return self._ids[position] if position < len(self._ids) else None


class SortedIds:
    """The sort keys below one partition key. Pages grow while they are read one after the other."""

    def __init__(self, client: Any, where: Range) -> None:
        self._client = client
        self._where = where
        self._page: list[str] = []
        self._is_last = False
        self._limit = _FIRST_PAGE

    def at_or_after(self, least: str) -> str | None:
        """See `Ids`."""
        position = bisect_left(self._page, least)
        if position == len(self._page) and not self._is_last:
            self._read(least)
            position = 0
        return self._page[position] if position < len(self._page) else None

    def _read(self, least: str) -> None:
        name, value = self._where.partition
        names, values = {"#partition": name}, {":value": {"S": value}}
        condition = "#partition = :value"
        if least:
            condition += " AND #sort >= :least"
            names["#sort"], values[":least"] = self._where.sort, {"S": least}
        answer = self._client.query(
            **self._where.query,
            KeyConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
            Limit=self._limit,
        )
        self._page = [item[self._where.sort]["S"] for item in answer["Items"]]
        self._is_last = "LastEvaluatedKey" not in answer
        self._limit = min(self._limit * 2, _LARGEST_PAGE)


class AnyOf:
    """The ids that one or more of several have."""

    def __init__(self, parts: Sequence[Ids]) -> None:
        self._parts = parts
        self._heads: list[tuple[str, int]] | None = None

    def at_or_after(self, least: str) -> str | None:
        """See `Ids`."""
        if self._heads is None:
            firsts = side_by_side(lambda part: part.at_or_after(least), self._parts)
            self._heads = [(first, number) for number, first in enumerate(firsts) if first is not None]
            heapq.heapify(self._heads)
        while self._heads and self._heads[0][0] < least:
            number = self._heads[0][1]
            head = self._parts[number].at_or_after(least)
            if head is None:
                heapq.heappop(self._heads)
            else:
                heapq.heapreplace(self._heads, (head, number))
        return self._heads[0][0] if self._heads else None


class AllOf:
    """The ids that several have in common: each in turn seeks what the one before found."""

    def __init__(self, parts: Sequence[Ids]) -> None:
        self._parts = parts

    def at_or_after(self, least: str) -> str | None:
        """See `Ids`."""
        agreed, turn = 0, 0
        while agreed < len(self._parts):
            found = self._parts[turn].at_or_after(least)
            if found is None:
                return None
            agreed = agreed + 1 if found == least else 1
            least, turn = found, (turn + 1) % len(self._parts)
        return least
