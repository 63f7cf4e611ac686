"""The ways in which a report reaches the recorder (DESIGN 3, "Ways in")."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from tests.support.stack_in_memory import report
from waybill.errors import InvalidReport
from waybill.record.ways_in import answer_to

if TYPE_CHECKING:
    from tests.support.stack_in_memory import StackInMemory


def answer(stack: StackInMemory, event: Any) -> dict[str, Any]:
    return answer_to(event, LambdaContext(), stack.recorder.record, Logger(service="test"))


def nested(levels: int) -> dict[str, Any]:
    """Return so many objects, each in the one before."""
    innermost: dict[str, Any] = {}
    for _ in range(levels - 1):
        innermost = {"in": innermost}
    return innermost


def put(stack: StackInMemory, key: str, body: bytes) -> str:
    stack.s3.put_object(Bucket=stack.settings.lineage_bucket, Key=key, Body=body)
    return f"s3://{stack.settings.lineage_bucket}/{key}"


ONE = report(assets={"inputs": [{"id": "orders"}]})


def test_a_report_comes_by_itself(stack: StackInMemory) -> None:
    assert answer(stack, ONE)["assets"]["created"] == ["orders"]


def test_a_report_comes_on_the_bus_from_any_source(stack: StackInMemory) -> None:
    event = {"version": "0", "source": "anybody", "detail-type": "Task Run Report", "detail": ONE}

    assert answer(stack, event)["assets"]["created"] == ["orders"]


def test_a_pointer_stands_for_a_report_too_large_for_its_way(stack: StackInMemory) -> None:
    pointer = {"report": put(stack, "reports/one.json", json.dumps(ONE).encode())}

    assert answer(stack, pointer) == answer(stack, ONE)
    assert answer(stack, {"detail-type": "Task Run Report", "detail": pointer}) == answer(stack, ONE)


def test_a_pointer_that_leads_nowhere_or_to_no_json_is_refused(stack: StackInMemory) -> None:
    bucket = stack.settings.lineage_bucket
    cases = {
        "orders.json": "report: must be written s3://bucket/key",
        f"s3://{bucket}/none.json": f"report: s3://{bucket}/none.json cannot be read (NoSuchKey)",
        put(stack, "reports/cut.json", b'{"a"'): "report: is not JSON (",
    }
    for pointer, fault in cases.items():
        with pytest.raises(InvalidReport) as refused:
            answer(stack, {"report": pointer})
        assert str(refused.value).startswith(fault)


def test_of_a_batch_only_what_is_refused_fails(stack: StackInMemory) -> None:
    bodies = [json.dumps(ONE), json.dumps(ONE | {"state": "?"}), "no json", json.dumps(ONE | {"taskRunId": "run-2"})]
    records = [
        {"messageId": f"m{number}", "eventSource": "aws:sqs", "body": body} for number, body in enumerate(bodies)
    ]

    assert answer(stack, {"Records": records}) == {
        "batchItemFailures": [{"itemIdentifier": "m1"}, {"itemIdentifier": "m2"}]
    }
    assert [event.task_run_id for event in stack.events()] == ["run-1", "run-2"]


def test_a_batch_in_which_all_is_refused_fails_message_by_message(stack: StackInMemory) -> None:
    """Not as a whole: that would deliver good messages again."""
    records = [{"messageId": "m0", "eventSource": "aws:sqs", "body": "[]"}]

    assert answer(stack, {"Records": records}) == {"batchItemFailures": [{"itemIdentifier": "m0"}]}


@pytest.mark.parametrize(
    ("metadata", "fault"),
    [
        ({"rows": 2**64}, "assets.outputs[0].metadata.rows: is a number of more than 64 bits; write it as text"),
        ({"note": "\ud800"}, "assets.outputs[0].metadata.note: holds half of a surrogate pair, which is no text"),
        (
            {"tree": nested(96)},
            "assets.outputs[0].metadata.tree: is nested more than 100 levels deep",
        ),
        (
            {"trees": [nested(95), nested(95)]},
            "assets.outputs[0].metadata.trees: is nested more than 100 levels deep",
        ),
    ],
)
def test_what_no_store_takes_is_refused_by_its_path(stack: StackInMemory, metadata: dict[str, Any], fault: str) -> None:
    event = report(assets={"outputs": [{"id": "orders", "type": "T", "metadata": metadata}]})
    with pytest.raises(InvalidReport) as refused:
        answer(stack, event)

    assert refused.value.faults == (fault,)
    assert stack.items(stack.settings.lineage_table) == []


def test_what_is_nested_100_levels_deep_is_recorded_and_read_again(stack: StackInMemory) -> None:
    answer(stack, report(assets={"outputs": [{"id": "orders", "type": "T", "metadata": {"tree": nested(95)}}]}))

    assert stack.asset("orders").metadata == {"tree": nested(95)}
