"""Work beside the caller, one job after the other: lines are compressed and stored while the next are made."""

from __future__ import annotations

import sys
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


_MOST_WAITING = 2
"""One job that runs and one that waits, so that the next begins the moment that one ends."""
_HAND_OVER = 0.0005
"""Seconds after which a thread that is busy with Python makes way for another. By default they are ten times as many:
as long as it takes to compress a block, so neither thread would work while the other does."""


class _HandOver:
    """Makes threads hand over sooner, for as long as there is a pipeline in the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pipelines = 0
        self._before = 0.0

    def begin(self) -> None:
        with self._lock:
            if not self._pipelines:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(_HAND_OVER)
            self._pipelines += 1

    def end(self) -> None:
        with self._lock:
            self._pipelines -= 1
            if not self._pipelines:
                sys.setswitchinterval(self._before)


_hand_over = _HandOver()


class Pipeline:
    """Runs one job at a time on a thread of its own. After one that failed it takes no more."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="files")
        self._jobs: deque[Future[Any]] = deque()
        self._failed = self._stopped = False
        _hand_over.begin()

    def submit(self, job: Callable[..., Result], *arguments: object) -> Future[Result]:
        """Add a job once there is room for it.

        Raises:
            Exception: what an earlier job raised.
        """
        self._await(_MOST_WAITING - 1)
        future = self._pool.submit(self._run, job, *arguments)
        self._jobs.append(future)
        return future

    def finish(self) -> None:
        """Wait until every job is done, and end the thread.

        Raises:
            Exception: what a job raised.
        """
        try:
            self._await(0)
        finally:
            self.stop()

    def stop(self) -> None:
        """End the thread once its jobs are done. Never raises."""
        self._pool.shutdown(wait=True)
        if not self._stopped:
            self._stopped = True
            _hand_over.end()

    def _run(self, job: Callable[..., Result], *arguments: object) -> Result:
        if self._failed:
            raise RuntimeError("an earlier job failed")
        try:
            return job(*arguments)
        except BaseException:
            self._failed = True
            raise

    def _await(self, most: int) -> None:
        """Wait until no more than so many jobs are left."""
        while len(self._jobs) > most:
            self._jobs.popleft().result()
