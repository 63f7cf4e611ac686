"""A DynamoDB client that adds up what its calls cost."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

_READS = {"get_item", "batch_get_item", "query", "scan"}
_WRITES = {"put_item", "update_item", "delete_item", "batch_write_item", "transact_write_items"}


@dataclass
class Metered:
    """A client around another one.

    Attributes:
        reads: consumed read units, by operation.
        writes: consumed write units, by operation; an index is counted as `<operation> <index>`.
        calls: how often each operation was called.
    """

    client: Any
    reads: dict[str, float] = field(default_factory=dict)
    writes: dict[str, float] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)

    def reset(self) -> None:
        """Begin again at nothing."""
        for counted in (self.reads, self.writes, self.calls):
            counted.clear()

    @property
    def read_units(self) -> float:
        """All read units together."""
        return sum(self.reads.values())

    @property
    def write_units(self) -> float:
        """All write units together."""
        return sum(self.writes.values())

    def __getattr__(self, name: str) -> Any:
        """Return an operation of the client that is counted, or whatever else the client has."""
        method = getattr(self.client, name)
        if name == "get_paginator":
            return lambda operation: _Pages(self, operation)
        if name not in _READS | _WRITES:
            return method

        def call(**arguments: Any) -> Any:
            answer = method(**arguments, ReturnConsumedCapacity="INDEXES")
            consumed = answer.get("ConsumedCapacity", [])
            self.calls[name] = self.calls.get(name, 0) + 1
            if name == "batch_get_item" and not consumed:
                consumed = [{"CapacityUnits": _units_of_batch(arguments["RequestItems"], answer["Responses"])}]
            for one in consumed if isinstance(consumed, list) else [consumed]:
                self._add(name, one)
            return answer

        return call

    def _add(self, name: str, consumed: dict[str, Any]) -> None:
        units = self.reads if name in _READS else self.writes
        indexes = {
            index: float(said["CapacityUnits"]) for index, said in consumed.get("GlobalSecondaryIndexes", {}).items()
        }
        for index, amount in indexes.items():
            units[f"{name} {index}"] = units.get(f"{name} {index}", 0.0) + amount
        units[name] = units.get(name, 0.0) + float(consumed["CapacityUnits"]) - sum(indexes.values())


def _units_of_batch(requests: dict[str, Any], responses: dict[str, Any]) -> float:
    """Count a consistent batch as DynamoDB does, for the emulator does not: 1 unit for 4 KB of an item, or for none."""
    keys = sum(len(request["Keys"]) for request in requests.values())
    items = [item for found in responses.values() for item in found]
    return keys - len(items) + sum(-(-len(json.dumps(item)) // 4096) for item in items)


class _Pages:
    """A paginator whose pages are counted."""

    def __init__(self, metered: Metered, operation: str) -> None:
        self._call = getattr(metered, operation)

    def paginate(self, *, PaginationConfig: dict[str, int] | None = None, **arguments: Any) -> Any:  # noqa: N803
        """Yield the pages of a query."""
        limit = {"Limit": PaginationConfig["PageSize"]} if PaginationConfig else {}
        start: dict[str, Any] = {}
        while True:
            page = self._call(**arguments, **limit, **start)
            yield page
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
