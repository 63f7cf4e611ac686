"""No statement of a role is there for nothing: without it, what it is for fails.

The emulator checks each call that a function makes against its role (`AUTH=true`). A statement is taken out of the
deployed role, and what the statement is for is tried.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.scenarios import COMPANY_BUCKET, SETTLED_SECONDS, Scenarios, receiver, report
from tools.emulator import Emulator
from tools.stack import FunctionFailed, deploy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROLES = {name: f"{name}Role" for name in ("RecorderFunction", "ShipperFunction", "FileExporterFunction")} | {
    "CatalogFunction": "CatalogFunctionRole"
}
NOT_BY_THE_FUNCTION = {
    "TakeQueuedReports": "Lambda takes messages in the function's name; the emulator does so in its own",
    "PutAsideFailures": "Lambda sends in the function's name; the emulator does so in its own",
    "WriteLog": "Lambda writes in the function's name; the emulator does so in its own",
    "WriteTraces": "the X-Ray daemon sends; there is none on the emulator",
}
"""Statements that AWS's services use in the function's name, and why they cannot be proven on the emulator."""

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
    },
}


@contextmanager
def without(scenarios: Scenarios, function: str, name: str) -> Iterator[None]:
    """Take a statement out of the role of a function."""
    iam, role = scenarios.stack.client("iam"), scenarios.stack.names[ROLES[function]]
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


def deployed(scenarios: Scenarios, function: str) -> set[str]:
    """The names of the statements of a function's role."""
    iam, role = scenarios.stack.client("iam"), scenarios.stack.names[ROLES[function]]
    return {
        statement["Sid"]
        for policy in iam.list_role_policies(RoleName=role)["PolicyNames"]
        for statement in iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]["Statement"]
    }


@pytest.mark.parametrize("function", PROOFS)
def test_every_statement_that_the_function_uses_has_a_proof(scenarios: Scenarios, function: str) -> None:
    assert deployed(scenarios, function) - set(NOT_BY_THE_FUNCTION) == set(PROOFS[function])


@pytest.mark.parametrize(("function", "name"), [(function, name) for function in PROOFS for name in PROOFS[function]])
def test_with_a_statement_a_function_can_do_what_it_is_for_and_without_it_cannot(
    scenarios: Scenarios, function: str, name: str
) -> None:
    PROOFS[function][name](scenarios)
    with without(scenarios, function, name), pytest.raises((FunctionFailed, AssertionError)) as caught:
        PROOFS[function][name](scenarios)
    assert re.search(NO_PERMISSION, str(caught.value))
