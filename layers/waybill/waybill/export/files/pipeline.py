"""Work beside the caller, one job after the other: lines are compressed and stored while the next are made."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


class Pipeline:
    """Runs one job at a time on a thread of its own. After one that failed it takes no more."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="files")
        self._last: Future[Any] | None = None

    def submit(self, job: Callable[..., Result], *arguments: object) -> Future[Result]:
        """Add a job once the last one is done.

        Raises:
            Exception: what an earlier job raised.
        """
        self._await_last()
        future = self._pool.submit(job, *arguments)
        self._last = future
        return future

    def finish(self) -> None:
        """Wait until every job is done, and end the thread.

        Raises:
            Exception: what the last job raised.
        """
        try:
            self._await_last()
        finally:
            self.stop()

    def stop(self) -> None:
        """End the thread once the present job is done. Never raises."""
        self._pool.shutdown(wait=True)

    def _await_last(self) -> None:
        if self._last is not None:
            self._last.result()
