"""Where data lives, asserted on the expanded template: the emulator drops most of this without a word."""

from __future__ import annotations

from typing import Any

import pytest

from tests.template.conftest import Resources, of_type
from tests.template.intrinsics import Resolver

TABLES = ("LineageTable", "CatalogTable", "KeyValueTable")


KEY = "arn:aws:kms:us-east-1:000000000000:key/1234"


@pytest.mark.parametrize("table", TABLES)
def test_a_table_expires_items_can_be_restored_and_is_encrypted(
    template: dict[str, Any], resources: Resources, table: str
) -> None:
    properties = Resolver(template).resolve(resources[table]["Properties"])
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["SSESpecification"] == {"SSEEnabled": True}


@pytest.mark.parametrize("resource", [*TABLES, "LineageBucket"])
def test_data_outlives_the_stack_and_its_replacement(resources: Resources, resource: str) -> None:
    assert resources[resource]["DeletionPolicy"] == "RetainExceptOnCreate"
    assert resources[resource]["UpdateReplacePolicy"] == "Retain"


@pytest.mark.parametrize(("stage", "protected"), [("prod", True), ("dev", False), ("local", False)])
def test_tables_are_protected_from_deletion_in_production(
    template: dict[str, Any], resources: Resources, stage: str, protected: bool
) -> None:
    resolver = Resolver(template, {"Stage": stage})
    found = {table: resolver.resolve(resources[table]["Properties"]["DeletionProtectionEnabled"]) for table in TABLES}
    assert found == dict.fromkeys(TABLES, protected)


def keys(table: dict[str, Any]) -> list[tuple[str, str]]:
    return [(key["AttributeName"], key["KeyType"]) for key in table["KeySchema"]]


def test_the_keys_of_the_tables_are_those_the_stores_use(resources: Resources) -> None:
    assert {table: keys(resources[table]["Properties"]) for table in TABLES} == {
        "LineageTable": [("bucket", "HASH"), ("id", "RANGE")],
        "CatalogTable": [("pk", "HASH"), ("sk", "RANGE")],
        "KeyValueTable": [("namespace", "HASH"), ("key", "RANGE")],
    }
    indexes = resources["CatalogTable"]["Properties"]["GlobalSecondaryIndexes"]
    assert {index["IndexName"]: (keys(index), index["Projection"]) for index in indexes} == {
        "byNamespace": ([("namespace", "HASH"), ("id", "RANGE")], {"ProjectionType": "KEYS_ONLY"}),
        "byJob": ([("job", "HASH"), ("use", "RANGE")], {"ProjectionType": "KEYS_ONLY"}),
    }


def test_the_bucket_is_encrypted_versioned_private_and_cleans_up(
    template: dict[str, Any], resources: Resources
) -> None:
    properties = Resolver(template, {"LineageRetentionDays": "90"}).resolve(resources["LineageBucket"]["Properties"])
    assert properties["BucketEncryption"]["ServerSideEncryptionConfiguration"] == [
        {"BucketKeyEnabled": True, "ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    ]
    assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
    assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(properties["PublicAccessBlockConfiguration"]) == 4
    assert properties["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    rules = {rule["Id"]: rule for rule in properties["LifecycleConfiguration"]["Rules"]}
    assert rules["EndUnfinishedUploads"]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
    assert rules["ExpireOldVersions"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 30}
    assert rules["ExpireEvents"]["ExpirationInDays"] == "90"


def test_the_bucket_and_the_queues_refuse_clear_text(template: dict[str, Any], resources: Resources) -> None:
    for policy, covered in (("LineageBucketPolicy", 2), ("QueuePolicy", 3)):
        document = Resolver(template).resolve(resources[policy]["Properties"]["PolicyDocument"])
        (deny,) = (statement for statement in document["Statement"] if statement["Effect"] == "Deny")
        assert deny["Principal"] == "*"
        assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        assert len(deny["Resource"]) == covered


def test_every_queue_is_encrypted_and_keeps_its_messages_for_two_weeks(
    template: dict[str, Any], resources: Resources
) -> None:
    for queue in of_type(resources, "AWS::SQS::Queue").values():
        properties = Resolver(template).resolve(queue["Properties"])
        assert properties["SqsManagedSseEnabled"] is True
        assert properties["MessageRetentionPeriod"] == 14 * 24 * 3600


def test_a_key_of_the_company_encrypts_all_that_is_kept(template: dict[str, Any], resources: Resources) -> None:
    resolver = Resolver(template, {"KmsKeyArn": KEY})

    def of(kind: str) -> list[dict[str, Any]]:
        return [resolver.resolve(one["Properties"]) for one in of_type(resources, kind).values()]

    for table in of("AWS::DynamoDB::Table"):
        assert table["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": KEY}
    for queue in of("AWS::SQS::Queue"):
        assert queue["KmsMasterKeyId"] == KEY
        assert "SqsManagedSseEnabled" not in queue
    (bucket,) = of("AWS::S3::Bucket")
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}
    assert {group["KmsKeyId"] for group in of("AWS::Logs::LogGroup")} == {KEY}
    assert {bus["KmsKeyIdentifier"] for bus in of("AWS::Events::EventBus")} == {KEY}
    assert {function["KmsKeyArn"] for function in of("AWS::Lambda::Function")} == {KEY}


def test_logs_are_kept_as_long_as_the_parameter_says(resources: Resources) -> None:
    for group in of_type(resources, "AWS::Logs::LogGroup").values():
        assert group["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}
        assert group["UpdateReplacePolicy"] == "Retain"
