"""Offsets in Parameter Store, where the stack keeps them there (`OffsetStore: SSM`).

Parameter Store has no conditional write, so it holds only what people read and delete: the generation and
endFetchedDate. Positions and the lease stay in the key-value table.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import orjson

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

    def get(self, namespace: str, key: str) -> Offset:
        """Read a task's offset; where there is none, a new generation begins.

        Raises:
            InvalidOffset: the parameter holds no offset.
        """
        offset = self._read(namespace, key)
        if offset is None:
            offset = Offset(uuid.uuid4().hex, None)
            self.put(namespace, key, offset)
        return offset

    def replace(self, namespace: str, key: str, offset: Offset) -> bool:
        """Write a task's offset where one of the same generation stands, and tell whether it did.

        Raises:
            InvalidOffset: the parameter holds no offset.
        """
        stored = self._read(namespace, key)
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

    def _read(self, namespace: str, key: str) -> Offset | None:
        name = self.name(namespace, key)
        try:
            value = self._client.get_parameter(Name=name)["Parameter"]["Value"]
        except self._client.exceptions.ParameterNotFound:
            return None
        try:
            said = orjson.loads(value)
            return Offset(str(said["generation"]), said.get("endFetchedDate"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidOffset(
                f"{name}: holds no offset; delete the parameter to start again from lookbackPeriod"
            ) from error
