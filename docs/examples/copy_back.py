"""Copies what a table has lost back from a table that was restored beside it.

    python docs/examples/copy_back.py waybill-LineageTable-restored waybill-LineageTable-1ABC

An item that is there already stays as it is, so that it can run while the stack works, and run again. Credentials and
region are found as by every AWS tool; the role needs dynamodb:Scan on the one table and dynamodb:PutItem on the other.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3

WRITERS = 16


def copy_back(restored: str, table: str) -> tuple[int, int]:
    """Copy the items of one table that another lacks.

    Returns:
        How many were copied, and how many were there already.
    """
    dynamodb = boto3.client("dynamodb")
    schema = dynamodb.describe_table(TableName=table)["Table"]["KeySchema"]
    (hash_key,) = (key["AttributeName"] for key in schema if key["KeyType"] == "HASH")

    def put(item: dict[str, Any]) -> bool:
        try:
            dynamodb.put_item(
                TableName=table,
                Item=item,
                ConditionExpression="attribute_not_exists(#key)",
                ExpressionAttributeNames={"#key": hash_key},
            )
        except dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True

    pages = dynamodb.get_paginator("scan").paginate(TableName=restored, ConsistentRead=True)
    with ThreadPoolExecutor(WRITERS) as writers:
        outcomes = [outcome for page in pages for outcome in writers.map(put, page["Items"])]
    return sum(outcomes), len(outcomes) - sum(outcomes)


if __name__ == "__main__":
    if len(sys.argv) != len(("copy_back.py", "RESTORED", "TABLE")):
        sys.exit("usage: copy_back.py RESTORED TABLE")
    copied, kept = copy_back(*sys.argv[1:3])
    print(f"{copied} items copied, {kept} were there")
