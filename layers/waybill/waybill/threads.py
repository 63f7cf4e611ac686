"""Calls that wait for the network, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Item = TypeVar("Item")
Result = TypeVar("Result")

WORKERS = 24
"""Below the connections that a client keeps, so that none is opened and thrown away."""


def side_by_side(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Call a function for every item, up to `WORKERS` at once, and return the results in the order of the items.

    Raises:
        Exception: the first error, in the order of the items, once those that run have ended; the rest are not begun.
    """
    todo = list(items)
    if len(todo) < 2:  # noqa: PLR2004 - one call needs no thread
        return [function(item) for item in todo]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(WORKERS, len(todo))) as pool:
        futures = [pool.submit(function, item) for item in todo]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
