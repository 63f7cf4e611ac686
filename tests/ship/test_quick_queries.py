"""Queries parsed quickly give what botocore gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest

from tests.support.tables import aws_client
from tools.emulator import REGION
from waybill.store.quick_queries import quicken

if TYPE_CHECKING:
    from tests.support.shipping import World


@pytest.mark.parametrize(
    "attributes",
    [
        {"body": {"S": 'text with "B" and {"B": "x"} and \\ and é'}},
        {"number": {"N": "17"}, "flag": {"BOOL": True}, "nothing": {"NULL": True}},
        {"list": {"L": [{"S": "a"}, {"M": {"b": {"N": "1"}}}]}, "set": {"SS": ["a", "b"]}},
        {"packed": {"B": b"\x00\xffB"}, "body": {"S": "x"}},
        {"packed": {"BS": [b"\x00", b"\x01"]}},
        {"deep": {"M": {"packed": {"L": [{"B": b"deep"}]}}}},
    ],
)
def test_an_answer_is_the_same_however_it_is_parsed(world: World, attributes: dict[str, Any]) -> None:
    quick = _client(world)
    quicken(quick)
    quicken(quick)
    for number in range(3):
        item = {"bucket": {"S": "b"}, "id": {"S": str(number)}} | attributes
        world.dynamodb.put_item(TableName=world.tables.lineage, Item=item)
    question: dict[str, Any] = {
        "TableName": world.tables.lineage,
        "KeyConditionExpression": "#bucket = :bucket",
        "ExpressionAttributeNames": {"#bucket": "bucket"},
        "ExpressionAttributeValues": {":bucket": {"S": "b"}},
        "ReturnConsumedCapacity": "TOTAL",
        "Limit": 2,
    }

    plain, quickly = _client(world).query(**question), quick.query(**question)

    assert plain.pop("ResponseMetadata")["HTTPStatusCode"] == quickly.pop("ResponseMetadata")["HTTPStatusCode"] == 200
    assert quickly == plain


def test_an_error_is_an_error_however_it_is_parsed(world: World) -> None:
    client = _client(world)
    quicken(client)

    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.query(
            TableName="no-such-table",
            KeyConditionExpression="id = :id",
            ExpressionAttributeValues={":id": {"S": "1"}},
        )


def _client(world: World) -> Any:
    """Return a client that nobody else uses."""
    known = aws_client(world.tables.url, "dynamodb")
    return boto3.Session().client(
        "dynamodb",
        endpoint_url=known.meta.endpoint_url,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 - the emulator's
    )
