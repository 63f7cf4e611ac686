"""The key-value store: what a shipping task remembers between its runs (DESIGN 7).

The state of a task is one item of the flow's namespace; deleting it is the reset. It holds the lease, and a generation
on which the positions hang, one item per exporter. Every write of a run carries the fence of its lease, so that an
invocation which was frozen and thawed moves nothing.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from waybill.clock import iso, utc_now
from waybill.errors import InvalidFlow, LeaseLost
from waybill.store.state_items import is_state, moment, no_position, no_state, text

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

LEASE = timedelta(seconds=60)
"""How long a lease holds without a renewal."""

POSITION_MARK = "#position#"


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to ship under a key, until somebody takes it over after its end.

    Attributes:
        fence: grows with every owner; writes with an older fence are refused.
        end_fetched_date: what the run before stored, or None.
        follows_offset: whether the generation was ever given from outside, by a parameter.
    """

    namespace: str
    key: str
    generation: str
    owner: str
    fence: int
    until: datetime
    end_fetched_date: str | None
    follows_offset: bool = False


@dataclass(frozen=True, slots=True)
class Busy:
    """Another invocation holds the lease."""

    owner: str
    until: datetime


class KeyValueStore:
    """The states, leases and positions of shipping tasks."""

    def __init__(self, client: Any, table: str, retention: timedelta, clock: Callable[[], datetime] = utc_now) -> None:
        self._client = client
        self._table = table
        self._retention = retention
        self._clock = clock

    def acquire(self, namespace: str, key: str, flow_id: str, task_id: str, owner: str) -> Lease | Busy:
        """Take the lease of a key that nobody holds.

        Raises:
            InvalidFlow: the key belongs to another flow or task.
            InvalidOffset: what stands under the key is no state.
        """
        now = self._clock()
        until = now + LEASE
        try:
            item = self._update(
                namespace,
                key,
                "SET #owner = :owner, #until = :until, fence = if_not_exists(fence, :zero) + :one, "
                "generation = if_not_exists(generation, :generation), flow = :flow, task = :task",
                "(attribute_not_exists(#until) OR #until < :now) AND "
                "(attribute_not_exists(generation) OR attribute_type(generation, :text)) AND "
                "(attribute_not_exists(fence) OR attribute_type(fence, :number)) AND "
                "(attribute_not_exists(flow) OR (flow = :flow AND task = :task))",
                {
                    ":owner": {"S": owner},
                    ":until": {"S": iso(until)},
                    ":now": {"S": iso(now)},
                    ":zero": {"N": "0"},
                    ":one": {"N": "1"},
                    ":generation": {"S": uuid.uuid4().hex},
                    ":text": {"S": "S"},
                    ":number": {"S": "N"},
                    ":flow": {"S": flow_id},
                    ":task": {"S": task_id},
                },
            )
        except _Refused:
            return self._who_holds(namespace, key, flow_id, task_id, owner)
        generation, fence = item["generation"]["S"], int(item["fence"]["N"])
        end = moment(item, "endFetchedDate")
        stored = iso(end) if end else None
        return Lease(namespace, key, generation, owner, fence, until, stored, "followsOffset" in item)

    def renew(self, lease: Lease) -> Lease:
        """Hold a lease longer.

        Raises:
            LeaseLost: somebody else took it over, or the state was deleted.
        """
        until = self._clock() + LEASE
        self._fenced(lease, "SET #until = :until", {":until": {"S": iso(until)}})
        return replace(lease, until=until)

    def release(self, lease: Lease, end_fetched_date: str | None) -> None:
        """Give a lease back and store `endFetchedDate`, or that there is none.

        Raises:
            LeaseLost: somebody else took it over, or the state was deleted.
        """
        values = {} if end_fetched_date is None else {":end": {"S": end_fetched_date}}
        setting = "REMOVE endFetchedDate, " if end_fetched_date is None else "SET endFetchedDate = :end REMOVE "
        self._fenced(lease, f"{setting}#until, #owner", values)

    def regenerate(self, lease: Lease, generation: str) -> Lease:
        """Hang the state on the generation that a parameter names: its positions start anew.

        Raises:
            LeaseLost: somebody else took the lease over, or the state was deleted.
        """
        update = "SET generation = :generation, followsOffset = :true REMOVE endFetchedDate"
        self._fenced(lease, update, {":generation": {"S": generation}, ":true": {"BOOL": True}})
        return replace(lease, generation=generation, end_fetched_date=None, follows_offset=True)

    def claim_position(self, lease: Lease, exporter_id: str) -> str | None:
        """Put the lease's fence on an exporter's position and return its body, or None when there is none yet.

        Raises:
            InvalidOffset: what stands there is no text.
            LeaseLost: a newer owner has claimed it.
        """
        name = position_key(lease, exporter_id)
        try:
            item = self._update(
                lease.namespace,
                name,
                "SET fence = :fence, expires = :expires",
                "attribute_not_exists(fence) OR fence < :fence",
                {":fence": {"N": str(lease.fence)}, ":expires": self._expires()},
            )
        except _Refused:
            raise LeaseLost(f"{lease.key}: a newer run has taken over") from None
        if "body" in item and text(item, "body") is None:
            raise no_position(name)
        return text(item, "body")

    def put_position(self, lease: Lease, exporter_id: str, body: str) -> None:
        """Store an exporter's position.

        Raises:
            LeaseLost: a newer owner has claimed it.
        """
        try:
            self._update(
                lease.namespace,
                position_key(lease, exporter_id),
                "SET body = :body, expires = :expires",
                "fence = :fence",
                {":body": {"S": body}, ":fence": {"N": str(lease.fence)}, ":expires": self._expires()},
                returned="NONE",
            )
        except _Refused:
            raise LeaseLost(f"{lease.key}: a newer run has taken over") from None

    def park(self, lease: Lease, exporter_id: str, event_key: str, reason: str) -> None:
        """Put aside a log item that cannot be read, with its reason; once, however often it is met."""
        self._client.put_item(
            TableName=self._table,
            Item=_key(lease.namespace, f"{lease.key}#parked#{exporter_id}#{event_key}")
            | {"reason": {"S": reason}, "parked": {"S": iso(self._clock())}, "expires": self._expires()},
        )

    def _who_holds(self, namespace: str, key: str, flow_id: str, task_id: str, owner: str) -> Lease | Busy:
        item = self._client.get_item(TableName=self._table, Key=_key(namespace, key), ConsistentRead=True).get(
            "Item", {}
        )
        if not is_state(item):
            raise no_state(namespace, key)
        flow, task = text(item, "flow"), text(item, "task")
        if flow is not None and (flow, task) != (flow_id, task_id):
            raise InvalidFlow(
                [f"tasks.{task_id}.offsetKey: {key} is the state of task {task} of flow {flow}; use another offsetKey"]
            )
        until = moment(item, "until")
        if until is None:
            return self.acquire(namespace, key, flow_id, task_id, owner)
        return Busy(text(item, "owner") or "", until)

    def _fenced(self, lease: Lease, update: str, values: dict[str, Any]) -> None:
        try:
            self._update(
                lease.namespace,
                lease.key,
                update,
                "fence = :fence AND generation = :held",
                values | {":fence": {"N": str(lease.fence)}, ":held": {"S": lease.generation}},
                returned="NONE",
            )
        except _Refused:
            raise LeaseLost(f"{lease.key}: a newer run has taken over, or the state was deleted") from None

    def _update(
        self,
        namespace: str,
        key: str,
        update: str,
        condition: str,
        values: dict[str, Any],
        returned: str = "ALL_NEW",
    ) -> dict[str, Any]:
        used = {name: name[1:] for name in ("#owner", "#until") if name in update + condition}
        arguments = {"ExpressionAttributeNames": used} if used else {}
        try:
            answer = self._client.update_item(
                TableName=self._table,
                Key=_key(namespace, key),
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeValues=values,
                ReturnValues=returned,
                **arguments,
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            raise _Refused from error
        item: dict[str, Any] = answer.get("Attributes", {})
        return item

    def _expires(self) -> dict[str, str]:
        """Return when an item of now expires: after every event that the log may have taken until it would have."""
        return {"N": str(int((self._clock() + 2 * self._retention).timestamp()))}


class _Refused(Exception):
    """A condition did not hold."""


def position_key(lease: Lease, exporter_id: str) -> str:
    """Return the key of an exporter's position."""
    return f"{lease.key}{POSITION_MARK}{lease.generation}#{exporter_id}"


def _key(namespace: str, key: str) -> dict[str, Any]:
    return {"namespace": {"S": namespace}, "key": {"S": key}}
