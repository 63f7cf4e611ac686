"""Work beside the caller, one job after the other: lines are compressed and stored while the next are made."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

DEPTH = 16
"""Jobs that may wait; with `CHUNK_BYTES` it bounds the memory that waits to be stored."""

Result = TypeVar("Result")


class Pipeline:
    """Runs jobs in order on one thread of its own. After one that failed, none is run any more."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="files")
        self._waiting: deque[Future[Any]] = deque()
        self._failure: Exception | None = None

    def submit(self, job: Callable[..., Result], *arguments: object) -> Future[Result]:
        """Add a job; wait while too many are waiting.

        Raises:
            Exception: what an earlier job raised.
        """
        future = self._pool.submit(self._run, job, *arguments)
        self._waiting.append(future)
        while self._waiting and (len(self._waiting) > DEPTH or self._waiting[0].done()):
            self._waiting.popleft().result()
        return future

    def finish(self) -> None:
        """Wait until every job is done.

        Raises:
            Exception: what the first job that failed raised.
        """
        try:
            while self._waiting:
                self._waiting.popleft().result()
        finally:
            self.stop()

    def stop(self) -> None:
        """Run none of the jobs that wait, and end the thread once the present one is done. Never raises."""
        self._waiting.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, job: Callable[..., Result], *arguments: object) -> Result:
        if self._failure is not None:
            raise self._failure
        try:
            return job(*arguments)
        except Exception as error:
            self._failure = error
            raise
