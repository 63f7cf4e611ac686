"""Pages of lists: by number with an exact total, or by a token that says where to go on."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from waybill.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGEST_PAGE = 1000
LARGEST_ANSWER = 4_500_000
"""Bytes of results that an answer may hold; a function's answer takes 6 MB, with everything around them."""


@dataclass(frozen=True, slots=True)
class Paging:
    """Which part of a list is wanted.

    Attributes:
        page: its number, from 1; None for a walk by token.
        sort: the field to sort by; "" for the order of the list itself.
        after: where a walk goes on; "" at its beginning.
        seen: how many results the walk has given before.
    """

    size: int = 10
    page: int | None = None
    sort: str = ""
    descending: bool = False
    after: str = ""
    seen: int = 0

    @property
    def by_number(self) -> bool:
        """Whether the whole list must be looked through, to count it or to sort it."""
        return self.page is not None or bool(self.sort)

    @property
    def slice(self) -> slice:
        """The part of the whole list."""
        start = ((self.page or 1) - 1) * self.size
        return slice(start, start + self.size)


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list.

    Attributes:
        total: how many results the whole list has; None as long as that is not known.
        next_token: asks for the next part; None after the last.
    """

    results: list[dict[str, Any]]
    total: int | None
    next_token: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the page as callers see it."""
        return {"results": self.results, "total": self.total, "nextToken": self.next_token}


def paging_of(
    *, page: int | None, size: int, sort: str | None, token: str | None, sortable: Iterable[str], own_order: str
) -> Paging:
    """Read the parameters of a list.

    Args:
        page: number of the page, from 1.
        size: results of a page.
        sort: `field:asc` or `field:desc`.
        token: what the page before gave.
        sortable: the fields that the list can be sorted by.
        own_order: the order that the list has by itself, as `sort` writes it.

    Raises:
        InvalidRequest: one line for each parameter that cannot be used.
    """
    faults: list[str] = []
    field, _, direction = (sort or own_order).partition(":")
    if field not in sortable or direction not in ("", "asc", "desc"):
        faults.append(f"sort: must be field:asc or field:desc of {', '.join(sortable)}")
    if token and (page is not None or (sort and sort != own_order)):
        faults.append("nextToken: goes without page and sort; a walk by token has the list's own order")
    after, seen = "", 0
    if token:
        try:
            after, seen = _read(token)
        except ValueError:
            faults.append("nextToken: must be what the page before gave")
    if faults:
        raise InvalidRequest(faults)
    is_own = not sort or sort == own_order
    return Paging(size, page, "" if is_own else field, direction == "desc", after, seen)


def token_of(after: str, seen: int) -> str:
    """Return the token that goes on after a key."""
    return base64.urlsafe_b64encode(orjson.dumps([after, seen])).decode().rstrip("=")


def _read(token: str) -> tuple[str, int]:
    try:
        after, seen = orjson.loads(base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, orjson.JSONDecodeError, TypeError) as error:
        raise ValueError("no token") from error
    if not isinstance(after, str) or not isinstance(seen, int):
        raise ValueError("no token")  # noqa: TRY004 - what is wrong is the value of the token
    return after, seen
