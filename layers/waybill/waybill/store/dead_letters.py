"""Dead letters: events that an exporter put aside, each with its reason, in the key-value table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson

from waybill.clock import utc_now
from waybill.store.objects import LARGEST_INLINE, Objects

if TYPE_CHECKING:
    from waybill.settings import Settings

MARK = "#dead#"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that was put aside.

    Attributes:
        event_key: the sort key of the event in the log.
        body: what was, or would have been, sent.
        answer: the first KB of what the destination answered.
    """

    namespace: str
    state_key: str
    exporter_id: str
    event_key: str
    event_id: str
    job: str
    body: str
    reason: str
    status: int | None
    answer: str
    attempts: int
    first_tried: str
    last_tried: str

    @property
    def key(self) -> str:
        """The key of the item."""
        return f"{self.state_key}{MARK}{self.exporter_id}#{self.event_key}"


class DeadLetters:
    """The dead letters of a stack."""

    def __init__(self, client: Any, table: str, objects: Objects, retention: timedelta) -> None:
        self._client = client
        self._table = table
        self._objects = objects
        self._retention = retention

    @classmethod
    def of(cls, settings: Settings) -> DeadLetters:
        """Return the dead letters of a stack."""
        from waybill.store.aws import client

        objects = Objects(client("s3"), settings.lineage_bucket)
        retention = timedelta(days=settings.retention_days)
        return cls(client("dynamodb"), settings.key_value_table, objects, retention)

    def put(self, letter: DeadLetter) -> None:
        """Put an event aside; once, however often it is put."""
        said = orjson.dumps(asdict(letter))
        item = {"namespace": {"S": letter.namespace}, "key": {"S": letter.key}}
        if len(said) > LARGEST_INLINE:
            object_key = f"dead-letters/{letter.exporter_id}/{letter.event_key}.json"
            self._objects.put(object_key, said)
            item["object"] = {"S": object_key}
        else:
            item["body"] = {"S": said.decode()}
        item["expires"] = {"N": str(int((utc_now() + self._retention).timestamp()))}
        self._client.put_item(TableName=self._table, Item=item)
