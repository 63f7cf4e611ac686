"""Recorders that write the log while it is shipped: several at once, with wrong clocks and a treacherous network."""

from __future__ import annotations

import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, ReadTimeoutError

from tests.support.shipping import NAMESPACE, RETENTION, lineage_event
from tests.support.tables import aws_client
from tests.torture.runs import FLOW_ID, SETTLE, SHIPPER_SKEW
from waybill.clock import from_millis
from waybill.ids import uuid7_millis
from waybill.model.event import LineageEvent, event_from_body
from waybill.store import log as log_module
from waybill.store.log import Log
from waybill.store.objects import Objects
from waybill.store.shards import Shards

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from tests.support.tables import Tables

RECORDERS = 3
SKEW = 2.0
"""Seconds by which a recorder's clock may be wrong, either way."""

LATEST = 570.0
"""Seconds after which a request that its client has given up is carried out at the latest."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event as it stands in the log.

    Attributes:
        late: whether it landed when a reader may have passed its place.
    """

    key: str
    shard: int
    job: str
    late: bool

    @property
    def shipped(self) -> bool:
        """Whether the flow's filter lets it pass."""
        return self.job.startswith(f"{NAMESPACE}/{FLOW_ID}.")


class RecorderDied(Exception):
    """The process of a recorder is gone, with its request on the way."""


class BetrayingWriter:
    """A DynamoDB client whose requests may be lost, answered by nobody, or carried out long after it gave up."""

    def __init__(self, client: Any, clock: Callable[[], datetime], rng: random.Random) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._lock = threading.Lock()
        self.recorded: dict[str, Recorded] = {}
        self._delayed: list[tuple[datetime, list[dict[str, Any]]]] = []

    def transact_write_items(self, TransactItems: list[dict[str, Any]]) -> None:  # noqa: N803 - boto3's name
        """Carry out a transaction, or not."""
        with self._lock:
            fate, delay, hurried = self._rng.random(), self._rng.random(), self._rng.random()
        if fate < 0.04:
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "TransactWriteItems")
        if fate < 0.08:
            raise _no_answer()
        if fate < 0.14:
            seconds = 1 + delay * (LATEST if hurried < 0.4 else 30)
            with self._lock:
                self._delayed.append((self._clock() + timedelta(seconds=seconds), TransactItems))
            raise RecorderDied if hurried < 0.7 else _no_answer()
        if fate < 0.20:
            time.sleep(delay / 4)
        self._carry_out(TransactItems)
        if fate < 0.28:
            raise _no_answer()

    def next_due(self) -> datetime | None:
        """Return when the next delayed request is to be carried out."""
        return min((due for due, _ in self._delayed), default=None)

    def carry_out_due(self) -> None:
        """Carry out the delayed requests whose time has come; those of reports recorded meanwhile are refused."""
        now = self._clock()
        due = [items for moment, items in self._delayed if moment <= now]
        self._delayed = [(moment, items) for moment, items in self._delayed if moment > now]
        for items in due:
            try:
                self._carry_out(items)
            except ClientError as error:
                if error.response["Error"]["Code"] != "TransactionCanceledException":
                    raise

    def _carry_out(self, items: list[dict[str, Any]]) -> None:
        self._client.transact_write_items(TransactItems=items)
        passed = self._clock() - SETTLE + SHIPPER_SKEW
        for item in (entry["Put"]["Item"] for entry in items if "Put" in entry):
            if "body" in item:
                key = item["id"]["S"]
                event = event_from_body(key, item["body"]["S"])
                shard = int(item["bucket"]["S"].partition("#")[2])
                late = from_millis(uuid7_millis(key)) <= passed
                self.recorded[event.task_run_id] = Recorded(key, shard, event.job, late)


class Recorders:
    """A handful of recorders of one log."""

    def __init__(self, tables: Tables, clock: Callable[[], datetime], first_shards: int, rng: random.Random) -> None:
        client = aws_client(tables.url, "dynamodb")
        self._rng = rng
        self.writer = BetrayingWriter(client, clock, rng)
        brief = SimpleNamespace(sleep=lambda seconds: time.sleep(seconds / 20))
        setattr(log_module, "time", brief)  # noqa: B010 - waiting between attempts proves nothing here
        self._logs = []
        for _ in range(RECORDERS):
            skewed = _skewed(clock, rng.uniform(-SKEW, SKEW), coarse=rng.random() < 0.3)
            shards = Shards(client, tables.lineage, first_shards, skewed)
            objects = Objects(aws_client(tables.url, "s3"), tables.bucket)
            self._logs.append(Log(client, self.writer, tables.lineage, shards, objects, RETENTION, skewed))

    def work(self, reports: int) -> None:
        """Record reports, all recorders at once, and return when all is done or given up."""
        plans = [self._plan() for _ in range(reports)]
        with ThreadPoolExecutor(RECORDERS) as pool:
            list(pool.map(self._record, plans, [self._logs[number % RECORDERS] for number in range(reports)]))

    def _plan(self) -> list[LineageEvent]:
        """Return the events of a report: few mostly, now and then many, all of one job."""
        flow = FLOW_ID if self._rng.random() < 0.8 else "other"
        job = f"{flow}.task_{self._rng.randrange(8)}"
        count = self._rng.choice((1, 1, 1, 2, 3, self._rng.randrange(4, 40)))
        return [lineage_event(job) for _ in range(count)]

    def _record(self, events: list[LineageEvent], log: Log) -> None:
        def again(_: dict[str, Any]) -> Sequence[LineageEvent]:
            return events

        try:
            log.record((str(uuid.uuid4()),), {}, again)
        except (ClientError, ReadTimeoutError, RecorderDied):
            return  # the recorder has given up; what it sent may still be carried out


def _skewed(clock: Callable[[], datetime], seconds: float, *, coarse: bool) -> Callable[[], datetime]:
    """Return a clock that is wrong; a coarse one shows the same instant for a quarter of a second."""
    limit = SKEW - 0.25 if coarse else SKEW
    skew = timedelta(seconds=max(-limit, min(limit, seconds)))

    def now() -> datetime:
        moment = clock() + skew
        return moment.replace(microsecond=moment.microsecond // 250_000 * 250_000) if coarse else moment

    return now


def _no_answer() -> ReadTimeoutError:
    return ReadTimeoutError(endpoint_url="dynamodb", error="no answer in time")
