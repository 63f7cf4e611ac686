"""The statements of the template's roles, with whatever parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.template.conftest import Resources, of_type
from tests.template.intrinsics import Resolver

if TYPE_CHECKING:
    from collections.abc import Iterator

FUNCTION_ROLES = ("RecorderFunctionRole", "ShipperFunctionRole", "FileExporterFunctionRole", "CatalogFunctionRole")
DEPLOYMENT_ROLE = "DeploymentRole"
ROLES = (*FUNCTION_ROLES, DEPLOYMENT_ROLE)
WITH_ALL = {
    "KmsKeyArn": "arn:aws:kms:us-east-1:000000000000:key/1234",
    "ExportKmsKeyArn": "arn:aws:kms:us-east-1:000000000000:key/5678",
    "SecretKmsKeyArn": "arn:aws:kms:us-east-1:000000000000:key/9abc",
    "SubnetIds": "subnet-0a1,subnet-0b2",
    "SecurityGroupIds": "sg-0c3",
    "GradualDeployment": "true",
    "OffsetStore": "SSM",
    "DataZoneDomainId": "dzd_example",
    "ExportBucket": "company-lineage",
}
"""Parameters with which every statement is there."""


def statements(template: dict[str, Any], resources: Resources, role: str, **parameters: str) -> list[dict[str, Any]]:
    """Every statement that a role gets, in its own policies or in those attached, with some parameters."""
    resolved: list[dict[str, Any]] = Resolver(template, parameters).resolve(list(_statements(resources, role)))
    return resolved


def _statements(resources: Resources, role: str) -> Iterator[dict[str, Any]]:
    """The statements as they are written, those under a condition, too."""
    for policy in resources[role]["Properties"]["Policies"]:
        yield from policy["PolicyDocument"]["Statement"]
    for policy in of_type(resources, "AWS::IAM::Policy").values():
        if {"Ref": role} in policy["Properties"]["Roles"]:
            yield from policy["Properties"]["PolicyDocument"]["Statement"]
