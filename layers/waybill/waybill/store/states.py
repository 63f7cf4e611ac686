"""The states of all shipping tasks, for those who look after them: seen whole, deleted, or begun anew at a position."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from waybill.store.keyvalue import POSITION_MARK
from waybill.store.state_items import is_state, moment, no_state, text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class State:
    """What stands under the key of a task.

    Attributes:
        owner: who holds the lease, or None.
        until: the end of the lease.
        fault: why this is no state, or None; what can be read of it stands here all the same.
        positions: the JSON of each exporter's position, by exporter id.
    """

    namespace: str
    key: str
    generation: str
    end_fetched_date: str | None
    owner: str | None
    until: datetime | None
    fault: str | None = None
    positions: dict[str, str] = field(default_factory=dict)


class States:
    """The states in the key-value table. Listing them reads the whole of it: for people, and for `delete: true`."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def all(self) -> list[State]:
        """Return every state with its positions."""
        pages = self._client.get_paginator("scan").paginate(TableName=self._table, ConsistentRead=True)
        items = [item for page in pages for item in page["Items"]]
        states = {(state.namespace, state.key): state for state in map(_state, items) if state is not None}
        for item in items:
            key, mark, rest = item["key"]["S"].partition(POSITION_MARK)
            state = states.get((item["namespace"]["S"], key))
            generation, _, exporter_id = rest.partition("#")
            if mark and state is not None and generation == state.generation and "body" in item:
                state.positions[exporter_id] = text(item, "body") or ""
        return sorted(states.values(), key=lambda state: (state.namespace, state.key))

    def delete(self, namespace: str, key: str) -> None:
        """Delete a state: its task starts again from lookbackPeriod."""
        self._client.delete_item(TableName=self._table, Key={"namespace": {"S": namespace}, "key": {"S": key}})

    def begin(self, namespace: str, key: str, generation: str, positions: Mapping[str, str]) -> None:
        """Begin a generation whose exporters stand at given positions; a run that is under way loses its lease."""
        for exporter_id, body in positions.items():
            position = f"{key}{POSITION_MARK}{generation}#{exporter_id}"
            item = {"namespace": {"S": namespace}, "key": {"S": position}, "body": {"S": body}}
            self._client.put_item(TableName=self._table, Item=item)
        self._client.update_item(
            TableName=self._table,
            Key={"namespace": {"S": namespace}, "key": {"S": key}},
            UpdateExpression="SET generation = :generation, fence = if_not_exists(fence, :zero) + :one "
            "REMOVE #until, #owner, endFetchedDate",
            ConditionExpression="attribute_exists(generation)",
            ExpressionAttributeNames={"#until": "until", "#owner": "owner"},
            ExpressionAttributeValues={":generation": {"S": generation}, ":zero": {"N": "0"}, ":one": {"N": "1"}},
        )


def _state(item: Mapping[str, Any]) -> State | None:
    if "generation" not in item:
        return None
    namespace, key = item["namespace"]["S"], item["key"]["S"]
    return State(
        namespace,
        key,
        text(item, "generation") or "",
        text(item, "endFetchedDate"),
        text(item, "owner"),
        moment(item, "until"),
        None if is_state(item) else str(no_state(namespace, key)),
    )
