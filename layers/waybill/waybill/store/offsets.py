"""Offsets in Parameter Store, where the stack keeps them there (`OffsetStore: SSM`).

Parameter Store has no conditional write, so it holds only what people read and delete: the generation and
endFetchedDate. Positions and the lease stay in the key-value table.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from waybill.clock import iso
from waybill.errors import InvalidOffset


@dataclass(frozen=True, slots=True)
class Offset:
    """What the parameter of a task holds."""

    generation: str
    end_fetched_date: str | None


class ParameterOffsets:
    """The parameters `/<stack>/<namespace>/<key>`. Deleting one is the reset."""

    def __init__(self, client: Any, stack: str) -> None:
        self._client = client
        self._stack = stack

    def name(self, namespace: str, key: str) -> str:
        """Return the name of a task's parameter."""
        return f"/{self._stack}/offsets/{namespace}/{key}"

    def begin(self, namespace: str, key: str) -> Offset:
        """Begin a new generation."""
        offset = Offset(uuid.uuid4().hex, None)
        self.put(namespace, key, offset)
        return offset

    def replace(self, namespace: str, key: str, offset: Offset) -> bool:
        """Write a task's offset where one of the same generation stands, and tell whether it did.

        Raises:
            InvalidOffset: the parameter holds no offset.
        """
        stored = self.get(namespace, key)
        if stored is None or stored.generation != offset.generation:
            return False
        if stored != offset:
            self.put(namespace, key, offset)
        return True

    def put(self, namespace: str, key: str, offset: Offset) -> None:
        """Write a task's offset."""
        value = orjson.dumps({"generation": offset.generation, "endFetchedDate": offset.end_fetched_date}).decode()
        self._client.put_parameter(Name=self.name(namespace, key), Value=value, Type="String", Overwrite=True)

    def delete(self, namespace: str, key: str) -> None:
        """Delete a task's offset, where there is one."""
        self._client.delete_parameters(Names=[self.name(namespace, key)])

    def get(self, namespace: str, key: str) -> Offset | None:
        """Read a task's offset, or None where there is none.

        Raises:
            InvalidOffset: the parameter holds no offset.
        """
        name = self.name(namespace, key)
        try:
            value = self._client.get_parameter(Name=name)["Parameter"]["Value"]
        except self._client.exceptions.ParameterNotFound:
            return None
        try:
            return _offset(orjson.loads(value))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidOffset(
                f"{name}: holds no offset; delete the parameter to start again from lookbackPeriod"
            ) from error


def _offset(said: dict[str, Any]) -> Offset:
    generation, end = said["generation"], said.get("endFetchedDate")
    if not isinstance(generation, str) or not generation:
        raise TypeError(generation)
    return Offset(generation, None if end is None else iso(datetime.fromisoformat(end)))
