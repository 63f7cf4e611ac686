"""The template as it is written, and as CloudFormation gets it: SAM's part expanded, offline."""

from __future__ import annotations

from typing import Any

import pytest
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

from tools.emulator import ROOT

SOMEWHERE = "s3://artifacts/code"
Resources = dict[str, dict[str, Any]]


class _NoManagedPolicies:
    """Managed policies by name; the template uses none."""

    def load(self) -> dict[str, str]:
        return {}


@pytest.fixture(scope="session")
def template() -> dict[str, Any]:
    """The template as it is written, with intrinsic functions in their long form."""
    parsed: dict[str, Any] = yaml_parse((ROOT / "template.yaml").read_text())
    return parsed


def expanded(text: str = "", **parameters: str) -> Resources:
    """The resources by logical id that SAM makes of the template, or of another's text, with some parameters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        document = yaml_parse(text or (ROOT / "template.yaml").read_text())
        for resource in document["Resources"].values():
            for name in ("CodeUri", "ContentUri"):
                if name in resource.get("Properties", {}):
                    resource["Properties"][name] = SOMEWHERE
        defaults = {name: one["Default"] for name, one in document["Parameters"].items() if "Default" in one}
        found: Resources = transform(document, defaults | parameters, _NoManagedPolicies())["Resources"]
    return found


@pytest.fixture(scope="session")
def resources() -> Resources:
    """The resources of the expanded template by logical id."""
    return expanded()


@pytest.fixture(scope="session")
def functions(resources: Resources) -> Resources:
    """The functions of the expanded template by logical id."""
    return of_type(resources, "AWS::Lambda::Function")


def of_type(resources: Resources, kind: str) -> Resources:
    """Return the resources of a type by logical id."""
    return {name: resource for name, resource in resources.items() if resource["Type"] == kind}
