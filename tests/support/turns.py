"""Several callers of one client whose calls take turns as a test decides, so that every order can be tried."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PATIENCE = 20.0


class Turns:
    """Runs functions in threads of which one goes on at a time, from one call of its client to the next."""

    def __init__(self) -> None:
        self._arrived = threading.Semaphore(0)
        self._go: list[threading.Semaphore] = []
        self._ended: list[bool] = []
        self._errors: list[BaseException] = []

    def run(self, client: Any, functions: Sequence[Callable[[Any], None]], order: Sequence[int]) -> None:
        """Run functions, each with a client of its own, to their ends.

        Args:
            client: the real client.
            functions: what to run.
            order: who goes on at each step, as a number that is taken modulo those that still run; then the first.

        Raises:
            BaseException: what the first function that failed raised.
        """
        self._go = [threading.Semaphore(0) for _ in functions]
        self._ended = [False] * len(functions)
        threads = [
            threading.Thread(target=self._run, args=(number, function, client), daemon=True)
            for number, function in enumerate(functions)
        ]
        for thread in threads:
            thread.start()
        for _ in threads:
            self._wait()
        choices = iter(order)
        while running := [number for number, ended in enumerate(self._ended) if not ended]:
            self._go[running[next(choices, 0) % len(running)]].release()
            self._wait()
        if self._errors:
            raise self._errors[0]

    def pause(self, number: int) -> None:
        """Wait for the turn of a function."""
        self._arrived.release()
        if not self._go[number].acquire(timeout=_PATIENCE):
            raise TimeoutError("the turn never came")

    def _run(self, number: int, function: Callable[[Any], None], client: Any) -> None:
        try:
            function(_Turned(client, self, number))
        except BaseException as error:  # noqa: BLE001 - handed to the test
            self._errors.append(error)
        self._ended[number] = True
        self._arrived.release()

    def _wait(self) -> None:
        if not self._arrived.acquire(timeout=_PATIENCE):
            raise TimeoutError("a function neither called nor ended")


class _Turned:
    def __init__(self, client: Any, turns: Turns, number: int) -> None:
        self._client = client
        self._turns = turns
        self._number = number

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def call(**arguments: Any) -> Any:
            self._turns.pause(self._number)
            return method(**arguments)

        return call
