"""Does things side by side without leaving any of them behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable


async def together(steps: Iterable[Awaitable[object]], failed: Callable[[], None] | None = None) -> None:
    """Await all, each to its own end, and only then raise the first error.

    Args:
        steps: what to await.
        failed: called as soon as one fails, so that the others can come to an early end.
    """

    async def one(step: Awaitable[object]) -> None:
        try:
            await step
        except BaseException:
            if failed is not None:
                failed()
            raise

    ends = await asyncio.gather(*map(one, steps), return_exceptions=True)
    for end in ends:
        if isinstance(end, BaseException):
            raise end
