"""Puts the recorder together from what the stack provides."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from waybill.record.announce import StateChanges
from waybill.record.recorder import Recorder
from waybill.store.aws import client, single_try_client
from waybill.store.catalog import AssetStore
from waybill.store.log import Log
from waybill.store.namespaces import NamespaceStore
from waybill.store.objects import Objects
from waybill.store.shards import Shards
from waybill.store.usages import UsageStore

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

    from waybill.settings import Settings


def recorder_of(settings: Settings, logger: Logger) -> Recorder:
    """Return the recorder of a stack."""
    dynamodb = client("dynamodb")
    retention = timedelta(days=settings.retention_days)
    return Recorder(
        log=Log(
            dynamodb,
            single_try_client("dynamodb", settings.settle_seconds / 2),
            settings.lineage_table,
            Shards(dynamodb, settings.lineage_table, settings.log_shards),
            Objects(client("s3"), settings.lineage_bucket),
            retention,
        ),
        assets=AssetStore(dynamodb, settings.catalog_table),
        usages=UsageStore(dynamodb, settings.catalog_table, retention),
        namespaces=NamespaceStore(dynamodb, settings.key_value_table),
        state_changes=StateChanges(client("events"), settings.lineage_bus),
        logger=logger,
    )
