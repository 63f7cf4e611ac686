"""What each function may do, and nothing wider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.template.conftest import Resources, of_type
from tests.template.intrinsics import Resolver

if TYPE_CHECKING:
    from collections.abc import Iterator

ROLES = ("RecorderFunctionRole", "ShipperFunctionRole", "FileExporterFunctionRole", "CatalogFunctionRole")
FOR_LOGS_AND_TRACES = {"AWSLambdaBasicExecutionRole", "AWSXrayWriteOnlyAccess"}
TO_READ_ITS_QUEUE = {"RecorderFunctionRole": {"AWSLambdaSQSQueueExecutionRole"}}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def statements(resources: Resources, role: str) -> Iterator[dict[str, Any]]:
    """Every statement that a role gets, written in its own policies or attached."""
    for policy in resources[role]["Properties"]["Policies"]:
        yield from policy["PolicyDocument"]["Statement"]
    for policy in of_type(resources, "AWS::IAM::Policy").values():
        if {"Ref": role} in policy["Properties"]["Roles"]:
            yield from policy["Properties"]["PolicyDocument"]["Statement"]


def actions(template: dict[str, Any], resources: Resources, role: str, **parameters: str) -> set[str]:
    """The actions that a role may take, with some parameters."""
    resolved = Resolver(template, parameters).resolve(list(statements(resources, role)))
    return {action for statement in resolved for action in listed(statement["Action"])}


@pytest.mark.parametrize("role", ROLES)
def test_no_statement_has_a_wildcard_where_a_name_exists(
    template: dict[str, Any], resources: Resources, role: str
) -> None:
    for statement in Resolver(template).resolve(list(statements(resources, role))):
        assert statement["Effect"] == "Allow"
        assert not [action for action in listed(statement["Action"]) if "*" in action]
        assert "*" not in listed(statement["Resource"])


@pytest.mark.parametrize("role", ROLES)
def test_beyond_its_statements_a_role_may_write_logs_and_traces_and_read_its_queue(
    resources: Resources, role: str
) -> None:
    arns = resources[role]["Properties"]["ManagedPolicyArns"]
    assert {arn.rsplit("/", 1)[1] for arn in arns} == FOR_LOGS_AND_TRACES | TO_READ_ITS_QUEUE.get(role, set())


@pytest.mark.parametrize("role", ["RecorderFunctionRole", "FileExporterFunctionRole", "CatalogFunctionRole"])
def test_only_the_shipper_reads_secrets(template: dict[str, Any], resources: Resources, role: str) -> None:
    assert "secretsmanager:GetSecretValue" not in actions(template, resources, role)
    assert not [
        resource
        for statement in Resolver(template).resolve(list(statements(resources, role)))
        for resource in listed(statement["Resource"])
        if "waybill/secrets/" in resource
    ]


def test_the_shipper_reads_secrets_under_a_prefix(template: dict[str, Any], resources: Resources) -> None:
    (secret,) = (
        statement["Resource"]
        for statement in Resolver(template, {"SecretPrefix": "team/x/"}).resolve(
            list(statements(resources, "ShipperFunctionRole"))
        )
        if "secretsmanager:GetSecretValue" in listed(statement["Action"])
    )
    assert secret.endswith(":secret:team/x/*")


@pytest.mark.parametrize(
    ("action", "parameters"),
    [("datazone:PostLineageEvent", {"DataZoneDomainId": "dzd_example"}), ("ssm:PutParameter", {"OffsetStore": "SSM"})],
)
def test_what_only_some_stacks_need_only_they_are_given(
    template: dict[str, Any], resources: Resources, action: str, parameters: dict[str, str]
) -> None:
    assert action not in actions(template, resources, "ShipperFunctionRole")
    assert action in actions(template, resources, "ShipperFunctionRole", **parameters)


def test_a_caller_may_hand_in_reports_and_nothing_else(template: dict[str, Any], resources: Resources) -> None:
    document = Resolver(template).resolve(resources["RecorderCallerPolicy"]["Properties"]["PolicyDocument"])
    assert [(statement["Action"], statement["Resource"]) for statement in document["Statement"]] == [
        ("lambda:InvokeFunction", "<RecorderFunction.Arn>"),
        ("sqs:SendMessage", "<ReportQueue.Arn>"),
        ("events:PutEvents", "<LineageBus.Arn>"),
        ("s3:PutObject", "<LineageBucket.Arn>/reports/*"),
    ]
