"""Stores a position while its run goes on, so that a kill repeats no more than what was in flight."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from waybill.errors import WaybillError

if TYPE_CHECKING:
    from collections.abc import Callable

ANSWERS_PER_CHECKPOINT = 200
MOST_UNSAVED = 2 * ANSWERS_PER_CHECKPOINT
"""With so many answers not stored, no further event is begun."""

SECONDS_PER_CHECKPOINT = 1.0

Trouble = WaybillError | BotoCoreError | ClientError
TROUBLE = (WaybillError, BotoCoreError, ClientError)
"""What ends a run in good order, its position kept; anything else is a fault of ours."""


class Checkpoints:
    """Stores what is answered: every 200 answers, every second, and in the end.

    Args:
        snapshot: returns the position as it is now.
        save: stores a position; blocks.
        failed: told when a position cannot be stored.
    """

    def __init__(
        self, snapshot: Callable[[], str], save: Callable[[str], None], failed: Callable[[Trouble], None]
    ) -> None:
        self._snapshot = snapshot
        self._save = save
        self._failed = failed
        self._unsaved = 0
        self._ended = False
        self._due = asyncio.Event()
        self._saved = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()

    def answered(self) -> None:
        """Count an answer."""
        self._unsaved += 1
        if self._unsaved >= ANSWERS_PER_CHECKPOINT:
            self._due.set()

    @property
    def full(self) -> bool:
        """Whether so many answers are not stored that no further event may be begun."""
        return self._unsaved >= MOST_UNSAVED and not self._ended

    async def room(self) -> None:
        """Wait until a position was stored, or none will be any more."""
        self._saved.clear()
        await self._saved.wait()

    async def keep(self) -> None:
        """Store until told to end. A storing that was begun is finished: one overtaken would move the position back."""
        while not self._ended:
            try:
                async with asyncio.timeout(SECONDS_PER_CHECKPOINT):
                    await self._due.wait()
            except TimeoutError:
                pass
            self._due.clear()
            if self._unsaved and not self._ended:
                try:
                    await self.store()
                except TROUBLE as error:
                    self._failed(error)
                    self.end()

    def end(self) -> None:
        """Let `keep` come to its end, and nobody wait any more."""
        self._ended = True
        self._due.set()
        self._saved.set()

    async def store(self) -> None:
        """Store the position as it is now; what is answered meanwhile comes with the next one.

        Raises:
            LeaseLost: another run has taken over.
        """
        async with self._one_at_a_time:
            unsaved = self._unsaved
            await asyncio.to_thread(self._save, self._snapshot())
            self._unsaved -= unsaved
            self._saved.set()
