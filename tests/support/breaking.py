"""Clients of AWS that stop working at a given call, before it is carried out or after."""

from __future__ import annotations

import threading
from typing import Any

from botocore.exceptions import EndpointConnectionError


class Failing:
    """What several clients share: the call at which the network goes away, and stays away.

    Args:
        at: the number of that call, from 1; None never.
        carried_out: whether the call itself still took place, so that only its answer is lost.
    """

    def __init__(self, at: int | None, *, carried_out: bool) -> None:
        self.at = at
        self.carried_out = carried_out
        self.calls = 0
        self._lock = threading.Lock()

    @property
    def happened(self) -> bool:
        """Whether the call was reached."""
        return self.at is not None and self.calls >= self.at

    def number(self) -> int:
        """Count a call."""
        with self._lock:
            self.calls += 1
            return self.calls


class BreakingClient:
    """A client whose calls fail as `Failing` says."""

    def __init__(self, client: Any, failing: Failing) -> None:
        self._client = client
        self._failing = failing

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if not callable(method) or name in ("get_paginator", "exceptions"):
            return method

        def call(*arguments: Any, **named: Any) -> Any:
            number, at = self._failing.number(), self._failing.at
            if at is None or number < at:
                return method(*arguments, **named)
            if number == at and self._failing.carried_out:
                method(*arguments, **named)
            raise EndpointConnectionError(endpoint_url="https://dynamodb.example")

        return call
