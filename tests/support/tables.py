"""The tables of the real template on an emulator, without its functions: made in milliseconds, one set per test."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import cache
from typing import Any

import boto3
from botocore.config import Config
from samtranslator.yaml_helper import yaml_parse

from tools.emulator import REGION, ROOT, client_environment

_CREATED = ("BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")


@dataclass(frozen=True, slots=True)
class Tables:
    """The names of one set of tables."""

    url: str
    lineage: str
    catalog: str
    key_values: str
    bucket: str


def make_tables(url: str) -> Tables:
    """Make the template's three tables and a bucket under names that nobody else uses."""
    suffix = uuid.uuid4().hex[:12]
    tables = Tables(url, f"log-{suffix}", f"catalog-{suffix}", f"values-{suffix}", f"bucket-{suffix}")
    dynamodb = aws_client(url, "dynamodb")
    for logical_id, name in (
        ("LineageTable", tables.lineage),
        ("CatalogTable", tables.catalog),
        ("KeyValueTable", tables.key_values),
    ):
        dynamodb.create_table(TableName=name, **_definition(logical_id))
    aws_client(url, "s3").create_bucket(Bucket=tables.bucket)
    return tables


@cache
def aws_client(url: str, service: str, attempts: int = 3) -> Any:
    """Return the client of a service of an emulator."""
    environment = client_environment(url)
    return boto3.Session().client(
        service,  # type: ignore[call-overload]
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        config=Config(retries={"mode": "standard", "total_max_attempts": attempts}, max_pool_connections=32),
    )


@cache
def _template() -> dict[str, Any]:
    template: dict[str, Any] = yaml_parse((ROOT / "template.yaml").read_text())
    return template


def _definition(logical_id: str) -> dict[str, Any]:
    properties = _template()["Resources"][logical_id]["Properties"]
    return {name: properties[name] for name in _CREATED if name in properties}
