"""Whatever its own OpenAPI document lets callers send, the catalog's API has an answer (schemathesis).

It deletes what it finds, so it has an emulator of its own.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation.modes import GenerationMode

from tests.support.signed import PATIENCE_SECONDS, Signer, signed_client
from tools.emulator import Emulator
from tools.stack import Stack, deploy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schemathesis import Case

EXAMPLES = 8
KNOWN = ["orders", "shop:orders", "gone"]


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """A stack in which there is something to be found."""
    with Emulator() as emulator:
        deployed = deploy(emulator)
        deployed.invoke("RecorderFunction", REPORT)
        with signed_client(deployed.url, deployed.catalog_url) as api:
            assert api.delete("/assets/gone").status_code == 204
        yield deployed


REPORT = {
    "namespace": "company.sales",
    "flowId": "load",
    "executionId": "e1",
    "taskId": "t1",
    "taskRunId": "r1",
    "state": "SUCCESS",
    "startDate": "2026-12-01T09:00:00Z",
    "endDate": "2026-12-01T09:00:05Z",
    "assets": {
        "inputs": [{"id": "shop:orders"}],
        "outputs": [{"id": name, "type": "Table", "owner": "sales"} for name in ("orders", "gone")],
    },
}


def operations(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(path, method) for path, methods in document["paths"].items() for method in methods]


def test_nothing_that_the_document_allows_breaks_the_api(stack: Stack) -> None:
    with signed_client(stack.url, stack.catalog_url) as api:
        document = api.get("/openapi.json").json()
    for path, method in operations(document):
        for parameter in document["paths"][path][method]["parameters"]:
            if parameter["name"] == "asset_id":
                parameter["schema"] = {"anyOf": [{"enum": KNOWN}, {"type": "string", "minLength": 1}]}
    schema = schemathesis.openapi.from_dict(document)
    signer, answered = Signer(stack.url), set()

    for path, method in operations(document):
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @settings(
                max_examples=EXAMPLES,
                deadline=None,
                derandomize=True,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=schema[path][method].as_strategy(generation_mode=mode))
            def ask(case: Case[Any]) -> None:
                answer = case.call(base_url=stack.catalog_url, auth=signer, timeout=PATIENCE_SECONDS)
                case.validate_response(answer, checks=[not_a_server_error])
                answered.add((case.operation.path, answer.status_code))

            # Where every parameter takes any text, there is nothing that the document forbids.
            with suppress(Unsatisfiable) if mode is GenerationMode.NEGATIVE else nullcontext():
                ask()

    assert {status for _, status in answered} >= {200, 400, 404}
    assert {path for path, _ in answered} == set(document["paths"])
