"""Reports a piece of a job to Waybill: for a Glue job, or any Python that has boto3.

    with reported("company.sales", "nightly", "load_orders",
                  inputs=["s3.raw-orders"], outputs=[{"id": "lake.orders", "type": "Table"}]) as outputs:
        rows = spark.read.json("s3://raw/orders") ...
        outputs[0]["metadata"] = {"rows": rows}

The role of the job needs the policy RecorderCallerPolicyArn; the environment variable WAYBILL_RECORDER is the stack's
output RecorderFunctionName. In a Glue job pass it as a job parameter, and `execution` as the job's run id.
"""

from __future__ import annotations

import json
import os
import traceback
import uuid
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import boto3

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

EXECUTION = str(uuid.uuid4())


@contextmanager
def reported(
    namespace: str,
    flow: str,
    task: str,
    *,
    inputs: Sequence[str] = (),
    outputs: Sequence[dict[str, Any]] = (),
    execution: str = EXECUTION,
) -> Generator[list[dict[str, Any]]]:
    """Report what the block read and wrote when it ends, whether it succeeds or fails.

    Yields:
        The outputs, to which the block may add metadata.

    Raises:
        RuntimeError: Waybill refused the report, or counts the task as failed for an asset that could not be written;
            or, before the block starts, nobody said where the recorder is.
    """
    if not os.environ.get("WAYBILL_RECORDER"):
        raise RuntimeError("set WAYBILL_RECORDER to the stack's output RecorderFunctionName")
    written = [dict(output) for output in outputs]
    report = {
        "namespace": namespace,
        "flowId": flow,
        "executionId": execution,
        "taskId": task,
        "taskRunId": str(uuid.uuid4()),
        "startDate": _now(),
        "assets": {"inputs": [{"id": name} for name in inputs], "outputs": written},
    }
    try:
        yield written
    except Exception as error:
        failed = {"message": f"{type(error).__name__}: {error}", "stackTrace": traceback.format_exc()}
        hand_in(report | {"state": "FAILED", "endDate": _now(), "error": failed})
        raise
    answer = hand_in(report | {"state": "SUCCESS", "endDate": _now()})
    if answer["state"] == "FAILED":
        raise RuntimeError(f"the task counts as failed: {answer['assets']['failed']}")


def hand_in(report: dict[str, Any]) -> dict[str, Any]:
    """Give a report to the recorder, and return its answer."""
    answer = boto3.client("lambda").invoke(
        FunctionName=os.environ["WAYBILL_RECORDER"], Payload=json.dumps(report).encode()
    )
    content: dict[str, Any] = json.loads(answer["Payload"].read())
    if answer.get("FunctionError"):
        raise RuntimeError(content.get("errorMessage"))
    return content


def _now() -> str:
    return datetime.now(UTC).isoformat()
