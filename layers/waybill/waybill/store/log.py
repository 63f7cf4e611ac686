"""The log of lineage events: append-only, in buckets of an hour and a shard, ordered by UUIDv7.

A report is claimed and its events are written in one transaction, so that it is recorded once however often it is
handed in. The sort key and the bucket come from one instant right before each attempt; an attempt ends within half the
settle window, and the next one takes a new key (`aws.md` 4.4).
"""

from __future__ import annotations

import hashlib
import time
import zlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
from botocore.exceptions import BotoCoreError, ClientError

from waybill.clock import utc_now
from waybill.errors import Conflict
from waybill.ids import uuid7
from waybill.store.objects import LARGEST_INLINE, Objects
from waybill.store.shards import Shards, hour_of, shard_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from waybill.model.event import LineageEvent

RECEIPT_DAYS = 35
"""How long the same report is known again: 30 days are promised."""

_MOST_EVENTS = 98
_MOST_BYTES = 3_000_000
_ATTEMPTS = 5
_RECEIPT = "receipt"
_TRANSIENT = {
    "TransactionConflict",
    "TransactionInProgressException",
    "ThrottlingException",
    "ThrottlingError",
    "ProvisionedThroughputExceededException",
    "ProvisionedThroughputExceeded",
    "RequestLimitExceeded",
    "InternalServerError",
    "ServiceUnavailable",
}


@dataclass(frozen=True, slots=True)
class Receipt:
    """What is known of a report that was claimed.

    Attributes:
        report: the content that was handed in first; empty once there is an answer.
        event_ids: the ids of the lineage events that stand in the log.
        keys: their `(bucket, id)` in the log.
        complete: whether all events of the report stand in the log.
        answer: what the recorder answered, or None while it has not finished.
        fresh: whether the report was claimed just now, so that nobody can have worked on it before.
    """

    report: dict[str, Any]
    event_ids: tuple[str, ...]
    keys: tuple[tuple[str, str], ...]
    complete: bool
    answer: dict[str, Any] | None
    fresh: bool = False


class Log:
    """The log, for writers.

    Args:
        client: a DynamoDB client with retries, for all but the writing of events.
        writer: a DynamoDB client that tries once and gives up within half the settle window.
        retention: how long an event is kept.
    """

    def __init__(
        self,
        client: Any,
        writer: Any,
        table: str,
        shards: Shards,
        objects: Objects,
        retention: timedelta,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._client = client
        self._writer = writer
        self._table = table
        self._shards = shards
        self._objects = objects
        self._retention = retention
        self._clock = clock

    def record(
        self,
        identity: Sequence[str],
        report: dict[str, Any],
        events_of: Callable[[dict[str, Any]], Sequence[LineageEvent]],
    ) -> Receipt:
        """Claim a report and write its events, or return what was claimed before.

        Args:
            identity: what makes two reports the same one.
            report: the report as it was handed in.
            events_of: makes the lineage events of a report; asked again with the first content when the claim was
                cut short before all events were written.

        Raises:
            ClientError, BotoCoreError: the store does not answer, or not well; the report may or may not be claimed.
            Conflict: others were faster again and again.
        """
        receipt = self._claim(identity, report, events_of(report))
        while not receipt.complete:
            events = events_of(receipt.report)
            receipt = self._append(identity, receipt, events)
        return receipt

    def complete(self, identity: Sequence[str], answer: dict[str, Any]) -> dict[str, Any]:
        """Remember the answer to a report whose processing has finished, in place of the report.

        Returns:
            The answer that counts: the one given, or that of another delivery which finished first.
        """
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_receipt_key(identity),
                UpdateExpression="SET answer = :answer REMOVE report",
                ConditionExpression="attribute_exists(id) AND attribute_not_exists(answer)",
                ExpressionAttributeValues={":answer": {"B": self._packed("answer", identity, answer)}},
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            return self._read(identity).answer or answer
        return answer

    def _claim(self, identity: Sequence[str], report: dict[str, Any], events: Sequence[LineageEvent]) -> Receipt:
        bodies = self._bodies(events[: _batch(events)])
        packed = self._packed("report", identity, report)

        def claim(now: datetime) -> tuple[dict[str, Any], list[dict[str, Any]]]:
            items = self._items(now, events, bodies)
            receipt = _receipt_key(identity) | {
                "report": {"B": packed},
                "total": {"N": str(len(events))},
                "keys": {"L": [{"S": f"{item['bucket']['S']}/{item['id']['S']}"} for item in items]},
                "events": {"L": [{"S": event.id} for event in events[: len(items)]]},
                "expires": {"N": str(int((now + timedelta(days=RECEIPT_DAYS)).timestamp()))},
            }
            put = {"TableName": self._table, "Item": receipt, "ConditionExpression": "attribute_not_exists(id)"}
            return {"Put": put}, items

        return self._transact(identity, claim)

    def _append(self, identity: Sequence[str], receipt: Receipt, events: Sequence[LineageEvent]) -> Receipt:
        """Write the next events of a report that has more of them than one transaction takes."""
        written = len(receipt.keys)
        left = events[written:]
        bodies = self._bodies(left[: _batch(left)])

        def append(now: datetime) -> tuple[dict[str, Any], list[dict[str, Any]]]:
            items = self._items(now, left, bodies)
            update = {
                "TableName": self._table,
                "Key": _receipt_key(identity),
                "UpdateExpression": "SET #keys = list_append(#keys, :keys), events = list_append(events, :events)",
                "ConditionExpression": "size(#keys) = :written",
                "ExpressionAttributeNames": {"#keys": "keys"},
                "ExpressionAttributeValues": {
                    ":keys": {"L": [{"S": f"{item['bucket']['S']}/{item['id']['S']}"} for item in items]},
                    ":events": {"L": [{"S": event.id} for event in left[: len(items)]]},
                    ":written": {"N": str(written)},
                },
            }
            return {"Update": update}, items

        return self._transact(identity, append)

    def _transact(
        self,
        identity: Sequence[str],
        attempt: Callable[[datetime], tuple[dict[str, Any], list[dict[str, Any]]]],
    ) -> Receipt:
        """Try a transaction, with new keys each time, until the receipt says that the events stand in the log."""
        for tries in range(1, _ATTEMPTS + 1):
            claim, items = attempt(self._clock())
            puts = [{"Put": {"TableName": self._table, "Item": item}} for item in items]
            try:
                self._writer.transact_write_items(TransactItems=[claim, *puts])
            except ClientError as error:
                if _refused(error):
                    return self._read(identity)
                if tries == _ATTEMPTS or not _transient(error):
                    raise
            except BotoCoreError:
                # The outcome is not known: the receipt, under its condition, tells at the next attempt.
                if tries == _ATTEMPTS:
                    raise
            else:
                if "Update" in claim:
                    return self._read(identity)
                return replace(self._receipt(claim["Put"]["Item"]), fresh=True)
            time.sleep(0.05 * 2**tries)
        raise Conflict("the report could not be claimed")

    def _items(
        self, now: datetime, events: Sequence[LineageEvent], bodies: Sequence[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        hour = hour_of(now)
        shards = self._shards.at(hour).shards
        expires = {"N": str(int((now + self._retention).timestamp()))}
        return [
            {"bucket": {"S": f"{hour}#{shard_of(event.job, shards)}"}, "id": {"S": uuid7(now)}, "expires": expires}
            | body
            for event, body in zip(events, bodies, strict=False)
        ]

    def _bodies(self, events: Sequence[LineageEvent]) -> list[dict[str, Any]]:
        return [self._body(event) for event in events]

    def _body(self, event: LineageEvent) -> dict[str, Any]:
        body = event.to_body()
        encoded = body.encode()
        if len(encoded) <= LARGEST_INLINE:
            return {"body": {"S": body}}
        key = f"events/{event.id}-{hashlib.sha256(encoded).hexdigest()[:16]}.json"
        self._objects.put(key, encoded)
        return {"object": {"S": key}}

    def _packed(self, kind: str, identity: Sequence[str], document: dict[str, Any]) -> bytes:
        packed = zlib.compress(orjson.dumps(document))
        if len(packed) <= LARGEST_INLINE // 2:
            return packed
        key = f"receipts/{_digest(identity)}-{kind}-{hashlib.sha256(packed).hexdigest()[:16]}"
        self._objects.put(key, packed)
        return b"@" + key.encode()

    def _unpacked(self, packed: bytes) -> dict[str, Any]:
        if packed[:1] == b"@":
            packed = self._objects.get(packed[1:].decode())
        document: dict[str, Any] = orjson.loads(zlib.decompress(packed))
        return document

    def _read(self, identity: Sequence[str]) -> Receipt:
        key = _receipt_key(identity)
        return self._receipt(self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)["Item"])

    def _receipt(self, item: dict[str, Any]) -> Receipt:
        keys = tuple((bucket, key) for bucket, key in (said["S"].split("/") for said in item["keys"]["L"]))
        return Receipt(
            report=self._unpacked(item["report"]["B"]) if "report" in item else {},
            event_ids=tuple(event["S"] for event in item["events"]["L"]),
            keys=keys,
            complete=len(keys) == int(item["total"]["N"]),
            answer=self._unpacked(item["answer"]["B"]) if "answer" in item else None,
        )


def _batch(events: Sequence[LineageEvent]) -> int:
    """Return how many events fit one transaction of 100 items and 4 MB."""
    room = _MOST_BYTES
    for number, event in enumerate(events[:_MOST_EVENTS]):
        room -= 600 + 260 * (len(event.inputs) + len(event.outputs))
        if room < 0 and number:
            return number
    return min(len(events), _MOST_EVENTS)


def _digest(identity: Sequence[str]) -> str:
    return hashlib.sha256("\x1f".join(identity).encode()).hexdigest()


def _receipt_key(identity: Sequence[str]) -> dict[str, Any]:
    return {"bucket": {"S": f"report#{_digest(identity)}"}, "id": {"S": _RECEIPT}}


def _reasons(error: ClientError) -> Sequence[Any]:
    return error.response.get("CancellationReasons", ())


def _refused(error: ClientError) -> bool:
    """Tell whether the receipt stood in the way of a transaction."""
    return any(reason.get("Code") == "ConditionalCheckFailed" for reason in _reasons(error))


def _transient(error: ClientError) -> bool:
    codes = {error.response["Error"]["Code"]} | {str(reason.get("Code")) for reason in _reasons(error)}
    return bool(codes & _TRANSIENT)
