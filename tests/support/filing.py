"""A world whose exporter is the real one of files, on an emulator's S3."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.shipping import NAMESPACE, Died, World
from tests.support.tables import aws_client
from waybill.export.files.compression import decompressed
from waybill.export.files.exporter import FileExporter
from waybill.model.flow import parse_flow

if TYPE_CHECKING:
    from collections.abc import Callable

    from waybill.export.ports import Run
    from waybill.model.flow import AnyExporter


class Mortal:
    """A process that dies at one of the calls it makes.

    Args:
        at: the number of that call, from 1; None never.
        carried_out: whether the call itself still takes place.

    Attributes:
        calls: what was called so far, by name.
    """

    def __init__(self, at: int | None = None, *, carried_out: bool = False) -> None:
        self.at = at
        self.carried_out = carried_out
        self.calls: list[str] = []

    def client(self, client: Any, counted: Callable[[str], bool]) -> Any:
        """Return a client of this process; only calls that are counted are calls to die at."""
        return _MortalClient(self, client, counted)

    def is_dead(self) -> bool:
        """Tell whether it has died."""
        return self.at is not None and len(self.calls) >= self.at


class _MortalClient:
    def __init__(self, process: Mortal, client: Any, counted: Callable[[str], bool]) -> None:
        self._process = process
        self._client = client
        self._counted = counted

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if not callable(method) or name == "exceptions":
            return method

        def call(*arguments: Any, **named: Any) -> Any:
            process = self._process
            if process.is_dead():
                raise Died
            if self._counted(name):
                process.calls.append(name)
            if not process.is_dead():
                return method(*arguments, **named)
            if process.carried_out:
                method(*arguments, **named)
            raise Died

        return call


@dataclass
class FilingWorld(World):
    """A log, and the real exporter of files that it is filed by.

    Attributes:
        s3_of: makes the S3 client of the exporter out of the emulator's.
    """

    s3_of: Callable[[Any], Any] = field(default=lambda client: client)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.s3 = aws_client(self.tables.url, "s3")

    def _exporter(self, config: AnyExporter, run: Run) -> Any:
        return FileExporter(config, run, self.s3_of(self.s3), self.tables.bucket)  # type: ignore[arg-type]

    def filing(self, *, lookback: str = "PT6H", task: dict[str, Any] | None = None, **properties: Any) -> Any:
        """Return a flow with one file exporter, whose properties these are; `task` adds properties of its task."""
        exporter = {"id": "file", "type": "FileAssetExporter", "format": "JSON"} | properties
        shipper = {
            "id": "ship_lineage",
            "type": "AssetShipper",
            "assetExporters": [exporter],
            "lookbackPeriod": lookback,
        } | (task or {})
        return parse_flow({"id": "ship", "namespace": NAMESPACE, "tasks": [shipper]})

    def file(self, flow: Any = None, **properties: Any) -> dict[str, Any]:
        """Run a flow of one file exporter, and return the exporter's part of the answer."""
        outputs: dict[str, Any] = self.ship(flow or self.filing(**properties))["outputs"]["file"]
        return outputs

    def event_ids(self) -> list[str]:
        """Return the ids of the events in the log, in order."""
        items = self.dynamodb.scan(TableName=self.tables.lineage, ConsistentRead=True)["Items"]
        bodies = {item["id"]["S"]: json.loads(item["body"]["S"]) for item in items if "body" in item}
        return [bodies[key]["id"] for key in sorted(bodies)]

    def object_keys(self, bucket: str | None = None) -> list[str]:
        """Return the keys of all objects of a bucket."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket or self.tables.bucket)
        return [item["Key"] for page in pages for item in page.get("Contents", ())]

    def manifests(self) -> list[dict[str, Any]]:
        """Return all manifests."""
        return [json.loads(self.body(key)) for key in self.object_keys() if "/_manifests/" in f"/{key}"]

    def counted_uris(self) -> list[str]:
        """Return the addresses of the files that manifests name."""
        return [file["uri"] for manifest in self.manifests() for file in manifest["files"]]

    def body(self, key: str) -> bytes:
        """Return the content of an object of the stack's bucket."""
        body: bytes = self.s3.get_object(Bucket=self.tables.bucket, Key=key)["Body"].read()
        return body

    def uri(self, key: str) -> str:
        """Return the address of an object of the stack's bucket."""
        return f"s3://{self.tables.bucket}/{key}"

    def key(self, uri: str) -> str:
        """Return the key of an object of the stack's bucket."""
        return uri.removeprefix(f"s3://{self.tables.bucket}/")

    def lines(self, uri: str) -> list[bytes]:
        """Return the lines of a file, whatever its compression."""
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        body = self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        compression = {"gz": "gzip", "zst": "zstd"}.get(key.rpartition(".")[2], "none")
        return io.BytesIO(b"".join(decompressed([body], compression))).readlines()

    def documents(self, uris: list[str]) -> list[Any]:
        """Return the documents in files of JSON, in order."""
        return [json.loads(line) for uri in uris for line in self.lines(uri)]

    def tags(self, uri: str) -> list[dict[str, str]]:
        """Return the tags of a file."""
        answer = self.s3.get_object_tagging(Bucket=self.tables.bucket, Key=self.key(uri))
        tags: list[dict[str, str]] = answer["TagSet"]
        return tags
