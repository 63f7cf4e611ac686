"""What each function may do, and nothing wider."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from tests.support.statements import FUNCTION_ROLES, ROLES, WITH_ALL, statements
from tests.template.conftest import Resources, of_type
from tests.template.intrinsics import Resolver
from tools.emulator import ROOT

CONDITION = re.compile(r"- [A-Z]\w+")
BOUNDARY = "arn:aws:iam::000000000000:policy/boundary"
WITHOUT_NAMES = {"WriteTraces", "JoinVpc", "SeeAlarms"}
"""Statements about what has no name: traces, network interfaces that are to come, alarms that are looked for."""


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def actions(template: dict[str, Any], resources: Resources, role: str, **parameters: str) -> set[str]:
    """The actions that a role may take, with some parameters."""
    found = statements(template, resources, role, **parameters)
    return {action for statement in found for action in listed(statement["Action"])}


@pytest.mark.parametrize("role", ROLES)
def test_no_statement_has_a_wildcard_where_a_name_exists(
    template: dict[str, Any], resources: Resources, role: str
) -> None:
    for statement in statements(template, resources, role, **WITH_ALL):
        assert statement["Effect"] == "Allow"
        assert not [action for action in listed(statement["Action"]) if "*" in action]
        assert ("*" in listed(statement["Resource"])) is (statement["Sid"] in WITHOUT_NAMES), statement["Sid"]


def test_all_parameters_together_give_every_statement_there_is(template: dict[str, Any], resources: Resources) -> None:
    written = [line.split()[-1] for line in (ROOT / "template.yaml").read_text().splitlines() if "- Sid: " in line]
    given = [one["Sid"] for role in ROLES for one in statements(template, resources, role, **WITH_ALL)]
    assert Counter(given) == Counter(written)


def test_there_are_no_roles_but_the_functions_and_none_has_a_policy_of_somebody_elses(resources: Resources) -> None:
    roles = of_type(resources, "AWS::IAM::Role")
    assert set(roles) == set(ROLES)
    for role in roles.values():
        assert "ManagedPolicyArns" not in role["Properties"]


@pytest.mark.parametrize("role", ROLES)
def test_each_statement_has_a_name_of_its_own(template: dict[str, Any], resources: Resources, role: str) -> None:
    names = [statement["Sid"] for statement in statements(template, resources, role, **WITH_ALL)]
    assert len(set(names)) == len(names)


def test_each_statement_has_its_reason_above_it() -> None:
    """Only the words of a condition stand between a statement and its comment."""
    lines = [line.strip() for line in (ROOT / "template.yaml").read_text().splitlines()]
    for number, line in enumerate(lines):
        if line.startswith("- Sid: "):
            above = next(one for one in lines[number - 1 :: -1] if one != "- !If" and not CONDITION.fullmatch(one))
            assert above.startswith("# "), line


@pytest.mark.parametrize("role", ROLES)
def test_a_permissions_boundary_bounds_every_role(template: dict[str, Any], resources: Resources, role: str) -> None:
    properties = resources[role]["Properties"]
    assert "PermissionsBoundary" not in Resolver(template).resolve(properties)
    bounded = Resolver(template, {"PermissionsBoundaryArn": BOUNDARY}).resolve(properties)
    assert bounded["PermissionsBoundary"] == BOUNDARY


@pytest.mark.parametrize("role", ["RecorderFunctionRole", "FileExporterFunctionRole", "CatalogFunctionRole"])
def test_only_the_shipper_reads_secrets(template: dict[str, Any], resources: Resources, role: str) -> None:
    assert "secretsmanager:GetSecretValue" not in actions(template, resources, role, **WITH_ALL)
    assert not [
        resource
        for statement in statements(template, resources, role, **WITH_ALL)
        for resource in listed(statement["Resource"])
        if "waybill/secrets/" in resource
    ]


def test_the_shipper_reads_secrets_under_a_prefix(template: dict[str, Any], resources: Resources) -> None:
    (secret,) = (
        statement["Resource"]
        for statement in statements(template, resources, "ShipperFunctionRole", SecretPrefix="team/x/")
        if "secretsmanager:GetSecretValue" in listed(statement["Action"])
    )
    assert secret.endswith(":secret:team/x/*")


@pytest.mark.parametrize(
    ("action", "parameters"),
    [
        ("datazone:PostLineageEvent", {"DataZoneDomainId": "dzd_example"}),
        ("ssm:PutParameter", {"OffsetStore": "SSM"}),
        ("ec2:CreateNetworkInterface", {"SubnetIds": "subnet-0a1", "SecurityGroupIds": "sg-0c3"}),
        ("kms:Decrypt", {"KmsKeyArn": WITH_ALL["KmsKeyArn"]}),
        ("kms:Decrypt", {"ExportKmsKeyArn": WITH_ALL["ExportKmsKeyArn"]}),
        ("kms:Decrypt", {"SecretKmsKeyArn": WITH_ALL["SecretKmsKeyArn"]}),
    ],
)
def test_what_only_some_stacks_need_only_they_are_given(
    template: dict[str, Any], resources: Resources, action: str, parameters: dict[str, str]
) -> None:
    assert action not in actions(template, resources, "ShipperFunctionRole")
    assert action in actions(template, resources, "ShipperFunctionRole", **parameters)


def test_what_moves_aliases_moves_those_of_the_four_functions(template: dict[str, Any], resources: Resources) -> None:
    (moved,) = (
        one["Resource"]
        for one in statements(template, resources, "DeploymentRole", **WITH_ALL)
        if "lambda:UpdateAlias" in one["Action"]
    )
    functions = [f"<{role.removesuffix('Role')}.Arn>" for role in FUNCTION_ROLES]
    assert moved == [arn for function in functions for arn in (function, f"{function}:*")]


def test_a_function_writes_to_its_own_log_and_makes_no_other(template: dict[str, Any], resources: Resources) -> None:
    for role in FUNCTION_ROLES:
        (log,) = (one for one in statements(template, resources, role) if one["Sid"] == "WriteLog")
        assert log["Action"] == ["logs:CreateLogStream", "logs:PutLogEvents"]
        assert log["Resource"] == f"<{role.removesuffix('FunctionRole')}Log.Arn>"


def test_a_caller_may_hand_in_reports_and_nothing_else(template: dict[str, Any], resources: Resources) -> None:
    document = Resolver(template).resolve(resources["RecorderCallerPolicy"]["Properties"]["PolicyDocument"])
    assert [(statement["Action"], statement["Resource"]) for statement in document["Statement"]] == [
        ("lambda:InvokeFunction", ["<RecorderFunction.Arn>", "<RecorderFunctionAliaslive>"]),
        ("sqs:SendMessage", "<ReportQueue.Arn>"),
        ("events:PutEvents", "<LineageBus.Arn>"),
        ("s3:PutObject", "<LineageBucket.Arn>/reports/*"),
    ]
