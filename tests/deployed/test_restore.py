"""What was lost is restored, as docs/operate.md says, and shipping goes on."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from typing import TYPE_CHECKING, Any

from tests.support.scenarios import report
from tools.emulator import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.emulator import Emulator
    from tools.stack import Stack

TABLES = ("LineageTable", "CatalogTable", "KeyValueTable")
FILES = {"id": "file", "type": "FileAssetExporter", "format": "JSON"}
SETTLED_SECONDS = 2.2


def keys_of(stack: Stack, table: str) -> list[str]:
    schema = stack.client("dynamodb").describe_table(TableName=stack.names[table])["Table"]["KeySchema"]
    return [key["AttributeName"] for key in schema]


def items(stack: Stack, table: str, holding: str) -> Iterator[dict[str, Any]]:
    """The items of a table that hold a text."""
    pages = stack.client("dynamodb").get_paginator("scan").paginate(TableName=stack.names[table])
    yield from (item for page in pages for item in page["Items"] if holding in str(item))


def lose(stack: Stack, table: str, holding: str) -> int:
    lost = list(items(stack, table, holding))
    for item in lost:
        key = {name: item[name] for name in keys_of(stack, table)}
        stack.client("dynamodb").delete_item(TableName=stack.names[table], Key=key)
    return len(lost)


def copy_back(emulator: Emulator, restored: str, table: str) -> str:
    return subprocess.run(
        [sys.executable, "docs/examples/copy_back.py", restored, table],
        cwd=ROOT,
        env=emulator.environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_what_a_table_lost_comes_back_from_a_backup_and_the_rest_stays(emulator: Emulator, stack: Stack) -> None:
    dynamodb, flow_id = stack.client("dynamodb"), f"restored_{uuid.uuid4().hex}"
    sent = report(flowId=flow_id)
    (asset,) = (output["id"] for output in sent["assets"]["outputs"])
    answer = stack.invoke("RecorderFunction", sent)
    time.sleep(SETTLED_SECONDS)
    task = {
        "id": "ship",
        "type": "AssetShipper",
        "lookbackPeriod": "PT1H",
        "flowId": flow_id,
        "assetExporters": [FILES],
    }
    flow = {"id": flow_id, "namespace": "company.platform", "tasks": [task]}
    assert stack.invoke("FileExporterFunction", flow)["outputs"]["ship"]["size"] == 1
    backups = {
        table: dynamodb.create_backup(TableName=stack.names[table], BackupName=f"{table}-backup")["BackupDetails"]
        for table in TABLES
    }

    later = report()
    stack.invoke("RecorderFunction", later)
    lost = [lose(stack, table, holding) for table, holding in zip(TABLES, (flow_id, asset, flow_id), strict=True)]
    assert all(lost)
    for table, backup in backups.items():
        restored = f"{table}-{flow_id[-6:]}"
        dynamodb.restore_table_from_backup(TargetTableName=restored, BackupArn=backup["BackupArn"])
        copied, _, _ = copy_back(emulator, restored, stack.names[table]).partition(" ")
        assert int(copied) > 0
        assert copy_back(emulator, restored, stack.names[table]).startswith("0 items copied, ")

    assert list(items(stack, "LineageTable", later["flowId"])), "what came after the backup is still there"
    assert stack.invoke("RecorderFunction", sent) == answer, "the receipt is back"
    assert stack.invoke("FileExporterFunction", flow)["outputs"]["ship"]["size"] == 0, "the position is back"
