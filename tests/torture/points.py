"""The points at which a run is killed: each call of AWS, each post, each turn of the event loop."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

from waybill.export.openlineage.connections import Connections

if TYPE_CHECKING:
    import random

    import httpx

CALL, ANSWER, POST, POSTED, TURN = "call", "answer", "post", "posted", "turn"
KINDS = (CALL, ANSWER, POST, POSTED, TURN)
"""Before a request to AWS leaves and after its answer is read, the same for posts, and each turn of the loop."""

_THROTTLED = b'{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"slow down"}'


class Points:
    """Counts the points of a run, and sends its own process a signal at one of them.

    Args:
        kind: which of `KINDS` to count to `number`; "" for none.
        signal_number: SIGKILL, or SIGSTOP to freeze.
    """

    def __init__(self, kind: str, number: int, signal_number: int = signal.SIGKILL) -> None:
        self.counts: Counter[str] = Counter()
        self._kind = kind
        self._number = number
        self._signal = signal_number

    def pass_by(self, kind: str) -> None:
        """Pass a point."""
        self.counts[kind] += 1
        if kind == self._kind and self.counts[kind] == self._number:
            os.kill(os.getpid(), self._signal)


def watch_posts(points: Points) -> None:
    """Let every HTTP request of this process pass its points."""
    handle = Connections.handle_async_request

    async def watched(self: Connections, request: httpx.Request) -> httpx.Response:
        points.pass_by(POST)
        response = await handle(self, request)
        points.pass_by(POSTED)
        return response

    Connections.handle_async_request = watched  # type: ignore[method-assign]


def watch_calls(points: Points, client: Any, rng: random.Random, throttled: float) -> None:
    """Let every request of an AWS client pass its points, and throttle some."""
    from botocore.awsrequest import AWSResponse
    from botocore.compat import HTTPHeaders

    class _Raw:
        def stream(self, *_: Any, **__: Any) -> list[bytes]:
            return [_THROTTLED]

    def before(request: Any, **_: Any) -> AWSResponse | None:
        points.pass_by(CALL)
        if rng.random() < throttled:
            headers = HTTPHeaders.from_pairs([("content-type", "application/x-amz-json-1.0")])
            return AWSResponse(request.url, 400, headers, _Raw())
        return None

    def after(**_: Any) -> None:
        points.pass_by(ANSWER)

    client.meta.events.register("before-send", before)
    client.meta.events.register("after-call", after)


def watched_loop(points: Points) -> asyncio.AbstractEventLoop:
    """Return an event loop each turn of which is a point."""

    class _Loop(asyncio.SelectorEventLoop):
        def _run_once(self) -> None:
            points.pass_by(TURN)
            super()._run_once()  # type: ignore[misc]

    return _Loop()


class OddPages:
    """A DynamoDB client whose pages are short now and then, or empty with more behind them."""

    def __init__(self, client: Any, rng: random.Random, share: float) -> None:
        self._client = client
        self._rng = rng
        self._share = share

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def query(self, **arguments: Any) -> Any:
        """Answer a query, oddly where it has a limit."""
        if "Limit" not in arguments or self._rng.random() >= self._share:
            return self._client.query(**arguments)
        if self._rng.random() < 0.5:
            values = arguments["ExpressionAttributeValues"]
            after = {"S": values[":after"]["S"].rstrip("+")}
            return {"Items": [], "Count": 0, "LastEvaluatedKey": {"bucket": values[":bucket"], "id": after}}
        return self._client.query(**arguments | {"Limit": self._rng.randint(1, 5)})
