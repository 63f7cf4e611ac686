"""What stands in the stores of an episode."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.tables import aws_client
from waybill.ship.position import Position

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.tables import Tables


class Store:
    """Looks into the tables and the bucket."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._dynamodb = aws_client(tables.url, "dynamodb")
        self._s3 = aws_client(tables.url, "s3")

    def values(self) -> dict[str, str]:
        """Return the items of the key-value table by key, each as JSON."""
        items = self._scan(self._tables.key_values)
        return {item["key"]["S"]: json.dumps(item, sort_keys=True) for item in items}

    def position(self) -> Position | None:
        """Return the stored position, or None before the first."""
        items = [json.loads(item) for key, item in self.values().items() if "#position#" in key]
        bodies = [item["body"]["S"] for item in items if "body" in item]
        return Position.from_json(bodies[0], "the stored position") if bodies else None

    def log_keys(self) -> set[str]:
        """Return the sort keys of all events in the log."""
        return {item["id"]["S"] for item in self._scan(self._tables.lineage) if "body" in item}

    def filed(self) -> list[str]:
        """Return the run ids of the lines of every file that a manifest names, in the order of the manifests."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._tables.bucket)
        names = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        manifests = [json.loads(self._object(name)) for name in names if "/_manifests/" in name]
        return [
            json.loads(line)["taskRunId"]
            for manifest in sorted(manifests, key=lambda said: str(said["created"]))
            for file in manifest["files"]
            for line in self._object(file["uri"].removeprefix(f"s3://{self._tables.bucket}/")).splitlines()
        ]

    def _object(self, name: str) -> bytes:
        body: bytes = self._s3.get_object(Bucket=self._tables.bucket, Key=name)["Body"].read()
        return body

    def _scan(self, table: str) -> Iterator[dict[str, Any]]:
        pages = self._dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        return (item for page in pages for item in page["Items"])


def fence_of(item: str | None) -> int:
    """Return the fence of an item of the key-value table, 0 where there is none."""
    return int(json.loads(item or "{}").get("fence", {"N": "0"})["N"])
