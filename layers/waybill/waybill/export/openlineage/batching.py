"""Posts several events at once where the backend takes that, and sorts the answer out for each (`openlineage.md` 1.8).

What is on its way at the same time goes together; nothing waits longer than a moment for company. A backend that turns
out to have no such endpoint, or refuses a batch as a whole, gets the events one by one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from waybill.export.openlineage.mapping import RunEvent
from waybill.export.openlineage.outcomes import SUCCESS, Answer, Verdict, judge

if TYPE_CHECKING:
    from waybill.export.openlineage.backends import Backend
    from waybill.export.openlineage.sender import Sender

_MOMENT = 0.005
_NO_SUCH_ENDPOINT = (404, 405, 501)


@dataclass(frozen=True, slots=True)
class _Waiting:
    event: RunEvent
    answer: asyncio.Future[Answer]

    def answered(self, answer: Answer) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def failed(self, error: BaseException) -> None:
        if self.answer.done():
            return
        if isinstance(error, asyncio.CancelledError):
            self.answer.cancel()
        else:
            self.answer.set_exception(error)


class BatchSender:
    """Posts events in batches.

    Args:
        single: posts one event.
        batch: posts to the endpoint for batches.
        backend: says how a batch is written and what its answers mean.
        most: events in a batch.
    """

    def __init__(self, single: Sender, batch: Sender, backend: Backend, most: int) -> None:
        self._single = single
        self._batch = batch
        self._backend = backend
        self._most = most
        self._waiting: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._falls_back = False

    async def open(self) -> None:
        """Get ready."""
        await self._single.open()
        await self._batch.open()

    async def close(self) -> None:
        """Give back connections."""
        await self._batch.close()
        await self._single.close()

    async def get(self, url: str) -> Answer:
        """Read something."""
        return await self._single.get(url)

    async def renew(self, credentials: int) -> bool:
        """Get new credentials for both endpoints."""
        return await self._batch.renew(credentials) and await self._single.renew(credentials)

    async def post(self, event: RunEvent) -> Answer:
        """Post an event together with what else is on its way."""
        if self._falls_back:
            return await self._single.post(event)
        loop = asyncio.get_running_loop()
        waiting = _Waiting(event, loop.create_future())
        self._waiting.append(waiting)
        if len(self._waiting) >= self._most:
            self._send()
        elif self._timer is None:
            self._timer = loop.call_later(_MOMENT, self._send)
        return await waiting.answer

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._waiting = self._waiting, []
        task = asyncio.create_task(self._exchange(batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _exchange(self, batch: list[_Waiting]) -> None:
        """Post a batch; whatever happens, everyone who waits hears of it."""
        try:
            answer = await self._batch.post(RunEvent("batch", "", "", self._written(batch)))
            shares = None if self._must_go_singly(answer, len(batch)) else self._shares(answer, len(batch))
            if shares is None:
                await asyncio.gather(*(self._alone(waiting) for waiting in batch), return_exceptions=True)
                return
            for waiting, share in zip(batch, shares, strict=True):
                waiting.answered(share)
        except BaseException as error:
            for waiting in batch:
                waiting.failed(error)
            if not isinstance(error, Exception):
                raise

    def _written(self, batch: list[_Waiting]) -> bytes:
        array = b"[" + b",".join(waiting.event.body for waiting in batch) + b"]"
        return b'{"%s":%s}' % (self._backend.batch_key.encode(), array) if self._backend.batch_key else array

    def _must_go_singly(self, answer: Answer, size: int) -> bool:
        """Whether the answer says nothing about single events."""
        if answer.status in _NO_SUCH_ENDPOINT:
            self._falls_back = True
            return True
        verdict = judge(answer).verdict
        whole = verdict in (Verdict.REFUSED, Verdict.TOO_BIG) or answer.status == 403  # noqa: PLR2004 - of one event
        return size > 1 and whole

    def _shares(self, answer: Answer, size: int) -> list[Answer] | None:
        """Return the answer for each event; None when it cannot be told which of them were taken."""
        if answer.verdict is not None or answer.status not in SUCCESS:
            return [answer] * size
        verdict = judge(answer, self._backend.outcomes).verdict
        if verdict is Verdict.MISROUTED:
            return [answer] * size
        failed = _failed_events(answer, size)
        if failed is None or (not failed and verdict is not Verdict.DONE):
            return None
        return [_share(answer, failed.get(position)) for position in range(size)]

    async def _alone(self, waiting: _Waiting) -> None:
        try:
            waiting.answered(await self._single.post(waiting.event))
        except BaseException as error:
            waiting.failed(error)
            raise


def _failed_events(answer: Answer, size: int) -> dict[int, Any] | None:
    """Return what the answer says of the events that it did not take, by their position; None when it is not clear."""
    document = answer.json()
    if not isinstance(document, dict):
        return {} if answer.whole else None
    said = document.get("failed_events") or document.get("failedEvents") or []
    if not isinstance(said, list) or not all(_names_an_event(item, size) for item in said):
        return None
    failed = {item["index"]: item for item in said}
    least = {"failure": size, "partial_success": 1}.get(str(document.get("status")), 0)
    return failed if len(failed) >= least else None


def _names_an_event(item: Any, size: int) -> bool:
    return isinstance(item, dict) and type(item.get("index")) is int and 0 <= item["index"] < size


def _share(answer: Answer, failure: Any) -> Answer:
    """Return the part of a batch's answer that concerns one event."""
    if failure is None:
        return Answer(answer.status, credentials=answer.credentials)
    retriable = failure.get("retriable") is True
    reason = f"refused within a batch: {failure.get('reason')}"
    return replace(answer, fault=reason, verdict=Verdict.RETRY if retriable else Verdict.REFUSED)
