"""Reading the different groups of a sorted range without reading every row of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FIRST_PAGE = 64
_LARGEST_PAGE = 1024
_HEX_END = "g"
"""Sorts after every hexadecimal text, so after every row of a group whose rows end in an id."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range of sort keys below one partition key, of a table or an index of it.

    Attributes:
        query: the arguments of the query that name table, index and consistency.
        partition: name and value of the partition key.
        sort: name of the sort key.
        prefix: what every sort key of the range begins with.
    """

    query: dict[str, Any]
    partition: tuple[str, str]
    sort: str
    prefix: str


def first_of_each(
    client: Any, where: Range, group_of: Callable[[dict[str, Any]], str], after_group: str = _HEX_END
) -> Iterator[dict[str, Any]]:
    """Yield one item of each group, in their order.

    A page is read; when it holds few groups for its size, the rest of the last one is jumped over, else the next page
    is larger. So a thousand rows of one group cost two queries, and a thousand groups of one row few large ones.

    Args:
        client: a DynamoDB client.
        where: the range.
        group_of: the beginning of an item's sort key that its group has in common.
        after_group: what, added to that beginning, sorts after the group's items and before the next group's.
    """
    low, limit, last = where.prefix, _FIRST_PAGE, ""
    while True:
        page = _page(client, where, low, limit)
        groups = 0
        for item in page["Items"]:
            group = group_of(item)
            if group != last:
                groups, last = groups + 1, group
                yield item
        if "LastEvaluatedKey" not in page:
            return
        if groups * 2 < len(page["Items"]):
            low = last + after_group
        else:
            low, limit = page["LastEvaluatedKey"][where.sort]["S"] + "\x00", min(limit * 2, _LARGEST_PAGE)


def _page(client: Any, where: Range, low: str, limit: int) -> dict[str, Any]:
    name, value = where.partition
    page: dict[str, Any] = client.query(
        **where.query,
        KeyConditionExpression="#partition = :value AND #sort BETWEEN :low AND :high",
        ExpressionAttributeNames={"#partition": name, "#sort": where.sort},
        ExpressionAttributeValues={
            ":value": {"S": value},
            ":low": {"S": low},
            ":high": {"S": where.prefix + "\uffff"},
        },
        Limit=limit,
    )
    return page
