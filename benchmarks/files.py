"""How fast files of lineage are written, and in how much memory (`files.rate`, `files.memory_growth` of DESIGN 9)."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3

from benchmarks.sink import sink
from waybill.clock import iso
from waybill.export.files.compression import compressor
from waybill.export.files.config import FileAssetExporter
from waybill.export.files.exporter import FileExporter
from waybill.export.files.lines import renderer
from waybill.export.files.upload import PART_BYTES
from waybill.export.ports import Deadline, Delivery, Run
from waybill.ids import derived_uuid
from waybill.model.asset import TABLE, Asset, AssetRef
from waybill.model.event import LineageEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mypy_boto3_s3 import S3Client

START = datetime(2026, 12, 1, 9, tzinfo=UTC)
ASSETS = 500
POOL, ROUNDS_OF_POOL = 5_000, 40
"""The events that a rate is measured with, again and again: as many as stay in the processor's cache, as in a real run,
and more than a compressor looks back at."""
RATE_LINES = POOL * ROUNDS_OF_POOL
ROUNDS = 5
FEW, MANY = 10_000, 1_000_000
MAX_LINES = 100_000


def measure() -> list[dict[str, Any]]:
    """Return the entries of `build/benchmarks.json` that concern files."""
    with sink() as url:
        rates = [
            _rate(url, name, file_format, compression)
            for name, file_format, compression in (
                ("files.rate", "JSON", "gzip"),
                ("files.rate.ion", "ION", "gzip"),
                ("files.rate.zstd", "JSON", "zstd"),
                ("files.rate.none", "JSON", "none"),
            )
        ]
        return [*rates, _memory_growth(url)]


def _rate(url: str, name: str, file_format: str, compression: str) -> dict[str, Any]:
    config = _config(file_format, compression)
    deliveries = list(islice(_deliveries(), POOL))
    render = renderer(config)
    lines = [render(delivery) for delivery in deliveries]
    ours, bare = [], []
    for _ in range(ROUNDS):
        bare.append(_seconds(lambda: _write_bare(_s3(url), lines * ROUNDS_OF_POOL, compression)))
        ours.append(_seconds(lambda: _write(_s3(url), config, deliveries * ROUNDS_OF_POOL)))
    return {
        "name": name,
        "value": round(RATE_LINES / min(ours)),
        "unit": "lines/s",
        "against": f"a bare loop that writes the same ready-made lines, {compression}",
        "ratio": round(min(bare) / min(ours), 2),
        "note": f"{file_format}, {len(lines[0])} bytes a line, files of {MAX_LINES}; best of {ROUNDS} rounds",
    }


def _memory_growth(url: str) -> dict[str, Any]:
    few, many = _peak(url, FEW), _peak(url, MANY)
    return {
        "name": "files.memory_growth",
        "value": many,
        "unit": "bytes",
        "against": f"the peak at {FEW} events, {few} bytes",
        "ratio": round(many / few, 2),
        "note": f"peak resident memory of a process that writes {MANY} events, not compressed, files of {MAX_LINES}",
    }


def _peak(url: str, events: int) -> int:
    command = [sys.executable, "-m", "benchmarks.files", url, str(events)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])  # noqa: S603
    return int(done.stdout)


def _write(s3: S3Client, config: FileAssetExporter, deliveries: Iterator[Delivery] | Sequence[Delivery]) -> None:
    run = Run("company.platform", "ship_lineage_to_s3", "export_lineage", "state", START, Deadline(900))
    exporter = FileExporter(config, run, s3, "bench")
    exporter.begin("start")
    for delivery in deliveries:
        exporter.write(delivery)
    exporter.commit("end")


def _write_bare(s3: S3Client, lines: Sequence[bytes], compression: str) -> None:
    """Write lines with no care but for speed: chunks are compressed, parts are sent."""
    for first in range(0, len(lines), MAX_LINES):
        upload = s3.create_multipart_upload(Bucket="bench", Key=f"bare-{first}")["UploadId"]
        parts: list[Any] = []
        part, chunk, waiting, compress = io.BytesIO(), [], 0, compressor(compression)

        def send(body: io.BytesIO, key: str, upload_id: str, sent: list[Any]) -> None:
            body.seek(0)
            answer = s3.upload_part(Bucket="bench", Key=key, UploadId=upload_id, PartNumber=len(sent) + 1, Body=body)
            sent.append({"PartNumber": len(sent) + 1, "ETag": answer["ETag"]})

        for line in lines[first : first + MAX_LINES]:
            chunk.append(line)
            waiting += len(line)
            if waiting >= PART_BYTES:
                part.write(compress.compress(b"".join(chunk)))
                chunk, waiting = [], 0
                if part.tell() >= PART_BYTES:
                    send(part, f"bare-{first}", upload, parts)
                    part = io.BytesIO()
        part.write(compress.compress(b"".join(chunk)) + compress.flush())
        send(part, f"bare-{first}", upload, parts)
        s3.complete_multipart_upload(
            Bucket="bench", Key=f"bare-{first}", UploadId=upload, MultipartUpload={"Parts": parts}
        )


def _deliveries() -> Iterator[Delivery]:
    """Make events of two assets each, out of assets that are known, as the engine hands them over."""
    assets = [_asset(number) for number in range(ASSETS)]
    for number in count():
        read, written = assets[number * 7 % ASSETS], assets[number * 13 % ASSETS]
        event = LineageEvent(
            id=derived_uuid(str(number)), namespace="company.data", flow_id=f"flow_{number % 50}", flow_revision=3,
            execution_id=derived_uuid("execution", str(number)), task_id="load",
            task_run_id=derived_uuid("run", str(number)), state="SUCCESS", start_date=iso(START), end_date=iso(START),
            inputs=(AssetRef(read.id, read.type, read.namespace),),
            outputs=(AssetRef(written.id, written.type, written.namespace),), created=iso(START),
        )  # fmt: skip
        yield Delivery(f"{number:032d}", event, (read,), (written,))


def _asset(number: int) -> Asset:
    return Asset(
        id=f"analytics.public.table_{number}",
        type=TABLE,
        namespace="company.data",
        display_name=f"Table {number}",
        description="A table of the warehouse",
        metadata={"system": "postgres", "owner": "data", "lineage_namespace": "postgres://warehouse:5432"},
        created=START,
        updated=START,
    )


def _config(file_format: str, compression: str) -> FileAssetExporter:
    return FileAssetExporter.model_validate(
        {"id": "file", "type": "FileAssetExporter", "format": file_format, "compression": compression}
    )


def _s3(url: str) -> S3Client:
    return boto3.client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="bench",
        aws_secret_access_key="bench",  # noqa: S106
    )


def _seconds(action: Callable[[], None]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _print_peak(url: str, events: int) -> None:
    _write(_s3(url), _config("JSON", "none"), islice(_deliveries(), events))
    status = Path("/proc/self/status").read_text()
    print(int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _print_peak(sys.argv[1], int(sys.argv[2]))
    else:
        print(json.dumps(measure(), indent=2))
