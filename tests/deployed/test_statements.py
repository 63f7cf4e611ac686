"""No statement of a role is there for nothing: without it, what it is for fails.

The emulator checks each call that a function makes against its role (`AUTH=true`). A statement is taken out of the
deployed role, and what the statement is for is tried. Every statement of the template is either proven so, or named
here with the reason why the emulator cannot.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from samtranslator.yaml_helper import yaml_parse

from tests.support.scenarios import COMPANY_BUCKET, SETTLED_SECONDS, Scenarios, receiver, report
from tests.support.statements import DEPLOYMENT_ROLE, FUNCTION_ROLES, ROLES, WITH_ALL, statements
from tests.template.conftest import expanded
from tools.emulator import ROOT, Emulator
from tools.stack import FunctionFailed, deploy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FUNCTIONS = {role.removesuffix("Role"): role for role in FUNCTION_ROLES}
"""The role of each function."""
BY_AWS = {
    "TakeQueuedReports": "Lambda takes messages in the function's name; the emulator does so in its own",
    "PutAsideFailures": "Lambda sends in the function's name; the emulator does so in its own",
    "WriteLog": "Lambda writes in the function's name; the emulator does so in its own",
    "WriteTraces": "the X-Ray daemon sends; there is none on the emulator",
    "JoinVpc": "Lambda makes interfaces in the function's name; the emulator makes none",
    "UseKey": "DynamoDB, S3, SQS and Lambda ask KMS in the function's name; the emulator does not",
    "EncryptFiles": "S3 asks KMS in the function's name; the emulator does not",
    "DecryptSecrets": "Secrets Manager and Parameter Store ask KMS in the function's name; the emulator does not",
    "SendToDataZone": "the emulator has no DataZone",
}
"""Statements of functions that the emulator cannot prove, each with its reason."""
BY_DEPLOYMENTS = {
    "MoveAliases": "CodeDeploy moves aliases; the emulator has no CodeDeploy",
    "SeeAlarms": "CodeDeploy looks at alarms; the emulator has no CodeDeploy",
}
"""The same of the role of deployments, all of it."""

PARAMETERS = {"OffsetStore": "SSM", "ExportBucket": COMPANY_BUCKET, "ContinueRuns": "1", "SettleSeconds": "1"}
RUNS = 120
REMEMBERED = ("ReadSecrets", "ReadSecretParameters")
"""What a function remembers for its next run, until it is started anew."""
NO_PERMISSION = r"AccessDenied|no permission|'statusCode': 503"
"""How a function says that it may not: as AWS does, in words of ours, or as an API that lacks its store."""


@pytest.fixture(scope="module")
def scenarios() -> Iterator[Scenarios]:
    """A stack with every optional statement that the emulator can prove, and lineage events in its log."""
    with Emulator(enforce_iam=True) as emulator:
        stack = deploy(emulator, parameters=PARAMETERS)
        stack.client("s3").create_bucket(Bucket=COMPANY_BUCKET)
        fast, slow = receiver(0), receiver(0.3)
        found = Scenarios(stack, next(fast), next(slow))
        for _ in range(RUNS):
            stack.invoke("RecorderFunction", report())
        time.sleep(SETTLED_SECONDS)
        yield found
        for each in (fast, slow):
            next(each, None)


def shipping(function: str) -> dict[str, Callable[[Scenarios], Any]]:
    """What proves the statements that ShipperFunction and FileExporterFunction share."""

    def filed(scenarios: Scenarios, **more: Any) -> None:
        scenarios.run(function, scenarios.flow(scenarios.files(**more)))

    def two_runs(scenarios: Scenarios) -> None:
        flow = scenarios.flow(scenarios.files())
        scenarios.run(function, flow)
        scenarios.stack.invoke("RecorderFunction", report())
        time.sleep(SETTLED_SECONDS)
        scenarios.run(function, flow)

    return {
        "ReadLog": lambda scenarios: scenarios.delete(function),
        "ReadAssets": filed,
        "KeepPositions": filed,
        "ReadFlowParameters": lambda scenarios: scenarios.pointed(function, "ssm"),
        "ReadObjects": lambda scenarios: scenarios.pointed(function, "s3"),
        "WriteFiles": filed,
        "FindManifests": two_runs,
        "WriteFilesElsewhere": partial(filed, bucket=COMPANY_BUCKET, key="kestra/{date}"),
        "FindManifestsElsewhere": partial(filed, bucket=COMPANY_BUCKET, key="kestra/{date}"),
        "KeepOffsetParameters": filed,
        "ContinueRun": lambda scenarios: scenarios.continued(function),
    }


def search_gone(scenarios: Scenarios) -> None:
    """Search lineage events when the body of one is gone."""
    s3, bucket = scenarios.stack.client("s3"), scenarios.stack.names["LineageBucket"]
    scenarios.record_large()
    newest = max(s3.list_objects_v2(Bucket=bucket, Prefix="events/")["Contents"], key=lambda one: one["LastModified"])
    s3.delete_object(Bucket=bucket, Key=newest["Key"])
    # What is gone S3 denies to whoever may not list all of the bucket; the emulator does not, unless it is told.
    denied = {"Effect": "Deny", "Principal": "*", "Action": "s3:GetObject"}
    statement = denied | {"Resource": f"arn:aws:s3:::{bucket}/{newest['Key']}"}
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    assert scenarios.ask("GET", "/assets/lineage-events/search")["results"]


def last(name: str, proofs: dict[str, Callable[[Scenarios], Any]]) -> dict[str, Callable[[Scenarios], Any]]:
    """The proofs with one of them at the end, for it leaves the function with too little time."""
    return {**{other: proof for other, proof in proofs.items() if other != name}, name: proofs[name]}


PROOFS: dict[str, dict[str, Callable[[Scenarios], Any]]] = {
    "RecorderFunction": {
        "RecordEvents": Scenarios.record,
        "KeepCatalog": Scenarios.record_with_other_metadata,
        "ReadNamespaceSettings": Scenarios.record_elsewhere,
        "ReadLargeReports": Scenarios.record_from_bucket,
        "KeepLargeEvents": Scenarios.record_large,
        "TellChangedStates": Scenarios.tell,
    },
    "ShipperFunction": last(
        "ContinueRun",
        shipping("ShipperFunction")
        | {
            "ReadSecrets": lambda scenarios: scenarios.run("ShipperFunction", scenarios.flow(scenarios.by_secret)),
            "PutAsideLargeLetters": Scenarios.set_aside,
            "ReadSecretParameters": lambda scenarios: scenarios.run(
                "ShipperFunction", scenarios.flow(scenarios.by_parameter)
            ),
        },
    ),
    "FileExporterFunction": shipping("FileExporterFunction"),
    "CatalogFunction": {
        "KeepCatalog": lambda scenarios: scenarios.ask("GET", "/assets/search"),
        "KeepNamespaceSettings": lambda scenarios: scenarios.ask("PUT", "/namespaces/sales", {"readers": ["*"]}),
        "ReadLargeEvents": Scenarios.search_large,
        "SearchLog": lambda scenarios: scenarios.ask("GET", "/assets/lineage-events/search"),
        # The last: from then on the newest event has no body.
        "FindLargeEvents": search_gone,
    },
}


@contextmanager
def without(scenarios: Scenarios, function: str, name: str) -> Iterator[None]:
    """Take a statement out of the role of a function."""
    iam, role = scenarios.stack.client("iam"), scenarios.stack.names[FUNCTIONS[function]]
    for policy in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]
        kept = [statement for statement in document["Statement"] if statement["Sid"] != name]
        if len(kept) < len(document["Statement"]):
            break
    else:
        raise AssertionError(f"{role} has no statement {name}")
    less = document | {"Statement": kept or [{"Effect": "Deny", "Action": "none:None", "Resource": "*"}]}
    iam.put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=json.dumps(less))
    if name in REMEMBERED:
        scenarios.restart(function)
    try:
        yield
    finally:
        iam.put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=json.dumps(document))


@pytest.fixture(scope="module")
def written() -> dict[str, set[str]]:
    """The names of the statements of each role in the template, with all parameters that add one."""
    template, resources = yaml_parse((ROOT / "template.yaml").read_text()), expanded()
    return {role: {one["Sid"] for one in statements(template, resources, role, **WITH_ALL)} for role in ROLES}


@pytest.mark.parametrize("function", PROOFS)
def test_every_statement_has_a_proof_or_a_reason_why_it_has_none(written: dict[str, set[str]], function: str) -> None:
    assert written[FUNCTIONS[function]] - set(BY_AWS) == set(PROOFS[function])


def test_there_is_no_reason_without_its_statement(written: dict[str, set[str]]) -> None:
    assert written[DEPLOYMENT_ROLE] == set(BY_DEPLOYMENTS)
    assert set(BY_AWS) < set().union(*(written[role] for role in FUNCTION_ROLES))


@pytest.mark.parametrize(("function", "name"), [(function, name) for function in PROOFS for name in PROOFS[function]])
def test_with_a_statement_a_function_can_do_what_it_is_for_and_without_it_cannot(
    scenarios: Scenarios, function: str, name: str
) -> None:
    PROOFS[function][name](scenarios)
    with without(scenarios, function, name), pytest.raises((FunctionFailed, AssertionError)) as caught:
        PROOFS[function][name](scenarios)
    assert re.search(NO_PERMISSION, str(caught.value))
