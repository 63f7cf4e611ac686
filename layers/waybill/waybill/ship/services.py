"""What the engine works with: the one place where stores, exporters and settings come together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

from waybill.clock import utc_now
from waybill.store.aws import client
from waybill.store.keyvalue import KeyValueStore
from waybill.store.log_reader import LogReader
from waybill.store.objects import Objects
from waybill.store.offsets import ParameterOffsets
from waybill.store.shards import Shards
from waybill.store.states import States

if TYPE_CHECKING:
    from collections.abc import Callable

    from waybill.export.ports import BatchExporter, Run, StreamExporter
    from waybill.model.flow import AnyExporter
    from waybill.settings import Settings
    from waybill.ship.resolve import Assets


@dataclass(frozen=True, slots=True)
class Services:
    """The stores, the exporters and the clock of a run.

    Attributes:
        barred: returns the namespaces that do not admit flows of a namespace.
        settle: how far behind now the log is read.
        offsets: where offsets are kept in Parameter Store; None where the key-value table has them.
    """

    key_values: KeyValueStore
    states: States
    log: LogReader
    shards: Shards
    assets: Assets
    barred: Callable[[str], list[str]]
    exporter: Callable[[AnyExporter, Run], StreamExporter | BatchExporter]
    settle: timedelta
    offsets: ParameterOffsets | None = None
    clock: Callable[[], datetime] = utc_now


@cache
def services_of(settings: Settings) -> Services:
    """Put together what a function of the stack ships with."""
    from waybill.export.factory import exporter_of
    from waybill.store.catalog import AssetStore
    from waybill.store.namespaces import NamespaceStore

    dynamodb = client("dynamodb")
    return Services(
        key_values=KeyValueStore(dynamodb, settings.key_value_table, timedelta(days=settings.retention_days)),
        states=States(dynamodb, settings.key_value_table),
        log=LogReader(dynamodb, settings.lineage_table, Objects(client("s3"), settings.lineage_bucket)),
        shards=Shards(dynamodb, settings.lineage_table, settings.log_shards),
        assets=AssetStore(dynamodb, settings.catalog_table),
        barred=NamespaceStore(dynamodb, settings.key_value_table).barring,
        exporter=lambda config, run: exporter_of(config, run, settings),
        settle=timedelta(seconds=settings.settle_seconds),
        offsets=ParameterOffsets(client("ssm"), settings.stack_name) if settings.offset_store == "SSM" else None,
    )
