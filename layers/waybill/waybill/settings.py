"""What the template tells a function through its environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache

from waybill.errors import ConfigurationFault


@dataclass(frozen=True, slots=True)
class Settings:
    """Physical names and settings of the stack.

    Attributes:
        settle_seconds: how far behind now every reader of the log stays, in seconds.
        retention_days: how long the log keeps an event, in days.
        continue_runs: how often a shipper that ran out of time may invoke itself again.
        offset_store: `DYNAMODB` or `SSM`.
        log_shards: shards of the log's first generation.
    """

    lineage_table: str
    catalog_table: str
    key_value_table: str
    lineage_bucket: str
    lineage_bus: str
    stack_name: str = "waybill"
    settle_seconds: float = 30.0
    retention_days: int = 400
    continue_runs: int = 12
    offset_store: str = "DYNAMODB"
    log_shards: int = 4


def read_settings(environment: dict[str, str]) -> Settings:
    """Read the settings from an environment.

    Raises:
        ConfigurationFault: naming every variable that is missing or cannot be read.
    """
    required = ("LINEAGE_TABLE", "CATALOG_TABLE", "KEY_VALUE_TABLE", "LINEAGE_BUCKET", "LINEAGE_BUS")
    faults = [f"{name}: is not set" for name in required if not environment.get(name)]
    numbers = {"SETTLE_SECONDS": 30.0, "LINEAGE_RETENTION_DAYS": 400.0, "CONTINUE_RUNS": 12.0, "LOG_SHARDS": 4.0}
    for name, default in numbers.items():
        try:
            numbers[name] = float(environment.get(name) or default)
        except ValueError:
            faults.append(f"{name}: must be a number")
    if faults:
        raise ConfigurationFault("\n".join(faults))
    return Settings(
        lineage_table=environment["LINEAGE_TABLE"],
        catalog_table=environment["CATALOG_TABLE"],
        key_value_table=environment["KEY_VALUE_TABLE"],
        lineage_bucket=environment["LINEAGE_BUCKET"],
        lineage_bus=environment["LINEAGE_BUS"],
        stack_name=environment.get("STACK_NAME", "waybill"),
        settle_seconds=numbers["SETTLE_SECONDS"],
        retention_days=int(numbers["LINEAGE_RETENTION_DAYS"]),
        continue_runs=int(numbers["CONTINUE_RUNS"]),
        offset_store=environment.get("OFFSET_STORE") or "DYNAMODB",
        log_shards=int(numbers["LOG_SHARDS"]),
    )


@cache
def settings() -> Settings:
    """Return the settings of this process."""
    return read_settings(dict(os.environ))
