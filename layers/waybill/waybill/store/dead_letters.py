"""The dead letters: events that an exporter put aside, each with its reason and what would have been sent.

One item of the key-value table each, under the namespace of the flow, key `<state key>#dead#<exporter id>#<event key>`.
What does not fit an item stands in S3.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from waybill.store.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from waybill.settings import Settings

MARK = "#dead#"
FAILED_LATER = "failed later"
"""The kind of a letter about an event that a backend took and could not process afterwards."""

_REPORTED_AGAIN = timedelta(days=2)
_LARGEST_INLINE = 250_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """An event that was put aside.

    Attributes:
        namespace: of the flow.
        state_key: of the task.
        event_key: sort key of the event in the log.
        kind: `refused`, `too big`, or how its last try ended (`retry`, `unknown`).
        status: the last HTTP status, or None.
        answer: the first KB of what the backend said.
        attempts: how often it was posted.
        first: time of the first post; times are ISO 8601.
        event: the lineage event as the log has it.
        run_events: what was to be sent and was not taken, in order.
    """

    namespace: str
    state_key: str
    exporter_id: str
    event_key: str
    job: str
    reason: str
    kind: str
    status: int | None
    answer: str
    attempts: int
    first: str
    last: str
    event: dict[str, Any] = field(default_factory=dict)
    run_events: list[Any] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The key of its item."""
        return f"{self.state_key}{MARK}{self.exporter_id}#{self.event_key}"

    def as_json(self) -> dict[str, Any]:
        """Return the letter as users see it."""
        return {
            "eventKey": self.event_key,
            "exporter": self.exporter_id,
            "namespace": self.namespace,
            "stateKey": self.state_key,
            "job": self.job,
            "reason": self.reason,
            "kind": self.kind,
            "status": self.status,
            "answer": self.answer,
            "attempts": self.attempts,
            "first": self.first,
            "last": self.last,
            "event": self.event,
            "runEvents": self.run_events,
        }


_SUMMARY = tuple(f.name for f in fields(DeadLetter) if f.name not in ("event", "run_events"))


class DeadLetters:
    """The dead letters of a stack.

    Args:
        client: of DynamoDB.
        table: the key-value table.
        objects: where large letters are kept.
        retention: how long letters are kept.
    """

    def __init__(self, client: Any, table: str, objects: Objects, retention: timedelta) -> None:
        self._client = client
        self._table = table
        self._objects = objects
        self._retention = retention

    @classmethod
    def of(cls, settings: Settings) -> DeadLetters:
        """Return the dead letters of the stack that the settings name."""
        from waybill.store.aws import client

        objects = Objects(client("s3"), settings.lineage_bucket)
        return cls(client("dynamodb"), settings.key_value_table, objects, timedelta(days=settings.retention_days))

    def put(self, letter: DeadLetter) -> None:
        """Keep a letter; one about the same event at the same exporter is replaced."""
        content = json.dumps({"event": letter.event, "runEvents": letter.run_events})
        summary = {name: value for name, value in asdict(letter).items() if name in _SUMMARY}
        item = _key(letter.namespace, letter.key) | {
            "letter": {"S": json.dumps(summary)},
            "expires": {"N": str(int((datetime.now(UTC) + self._retention).timestamp()))},
        }
        if len(content) > _LARGEST_INLINE:
            self._objects.put(_object_key(letter), content.encode())
            item["contentObject"] = {"S": _object_key(letter)}
        else:
            item["content"] = {"S": content}
        self._client.put_item(TableName=self._table, Item=item)

    def put_once(self, letter: DeadLetter) -> bool:
        """Keep a letter unless it is there, or was there and dropped; return whether it was new."""
        item = self._client.get_item(TableName=self._table, Key=_key(letter.namespace, letter.key), ConsistentRead=True)
        if "Item" in item:
            return False
        self.put(letter)
        return True

    def all(self) -> Iterator[DeadLetter]:
        """Return every letter without its events, by key. Reads the whole key-value table: for people."""
        pages = self._client.get_paginator("scan").paginate(
            TableName=self._table,
            FilterExpression="contains(#key, :mark) AND attribute_exists(letter)",
            ProjectionExpression="letter, #key",
            ExpressionAttributeNames={"#key": "key"},
            ExpressionAttributeValues={":mark": {"S": MARK}},
            ConsistentRead=True,
        )
        found = [DeadLetter(**json.loads(item["letter"]["S"])) for page in pages for item in page["Items"]]
        yield from sorted(found, key=lambda letter: (letter.namespace, letter.key))

    def whole(self, letter: DeadLetter) -> DeadLetter | None:
        """Return a letter with its events, or None when it, or the object in S3 that holds them, is gone."""
        item = self._client.get_item(
            TableName=self._table, Key=_key(letter.namespace, letter.key), ConsistentRead=True
        ).get("Item")
        if item is None or "letter" not in item:
            return None
        pointer = item.get("contentObject", {}).get("S")
        text = self._objects.find(pointer) if pointer else item["content"]["S"]
        if text is None:
            return None
        content = json.loads(text)
        summary = json.loads(item["letter"]["S"])
        return DeadLetter(**summary, event=content["event"], run_events=content["runEvents"])

    def drop(self, letter: DeadLetter) -> None:
        """Forget a letter. Its object in S3, if any, goes with the bucket's lifecycle.

        What a backend goes on reporting for a day leaves a mark for that long, so that it does not come back.
        """
        key = _key(letter.namespace, letter.key)
        if letter.kind == FAILED_LATER:
            expires = {"N": str(int((datetime.now(UTC) + _REPORTED_AGAIN).timestamp()))}
            self._client.put_item(TableName=self._table, Item=key | {"expires": expires})
        else:
            self._client.delete_item(TableName=self._table, Key=key)


def _object_key(letter: DeadLetter) -> str:
    return f"dead-letters/{letter.namespace}/{letter.state_key}/{letter.exporter_id}/{letter.event_key}.json"


def _key(namespace: str, key: str) -> dict[str, Any]:
    return {"namespace": {"S": namespace}, "key": {"S": key}}
