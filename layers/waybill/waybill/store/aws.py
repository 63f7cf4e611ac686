"""The clients of the AWS services, made once a process. Retries and time-outs are decided here."""

from __future__ import annotations

from functools import cache
from typing import Any

import boto3
from botocore.config import Config

_STANDARD = Config(
    retries={"mode": "standard", "total_max_attempts": 5}, connect_timeout=3, read_timeout=20, max_pool_connections=32
)


@cache
def client(service: str) -> Any:
    """Return the client of a service, with standard retries."""
    return boto3.client(service, config=_STANDARD)  # type: ignore[call-overload]


@cache
def single_try_client(service: str, seconds: float) -> Any:
    """Return a client that tries once and gives up after `seconds`: for writes that must not commit late unseen."""
    connect = min(3.0, seconds / 5)
    config = Config(
        retries={"mode": "standard", "total_max_attempts": 1},
        connect_timeout=connect,
        read_timeout=seconds - connect,
        max_pool_connections=32,
    )
    return boto3.client(service, config=config)  # type: ignore[call-overload]
