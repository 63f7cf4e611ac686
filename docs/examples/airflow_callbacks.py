"""Reports each task of an Airflow DAG (Amazon MWAA, or your own) through the stack's queue.

    PythonOperator(task_id="load_orders", python_callable=load,
                   **reports(inputs=["s3.raw-orders"], outputs=[{"id": "lake.orders", "type": "Table"}]))

A callback must not keep a worker waiting, so the report goes to ReportQueue, which tries again by itself. The role of
the environment needs the policy RecorderCallerPolicyArn; WAYBILL_QUEUE is the stack's output ReportQueueUrl, and
WAYBILL_NAMESPACE the namespace of the flows.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import boto3

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def reports(
    *, inputs: Sequence[str] = (), outputs: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Callable[[Mapping[str, Any]], None]]:
    """Return the callbacks of an operator that reports what it reads and writes.

    A retry that failed is reported as well: each try is a task run of its own.
    """
    assets = {"inputs": [{"id": name} for name in inputs], "outputs": list(outputs)}
    return {
        "on_success_callback": lambda context: send(context, "SUCCESS", assets),
        "on_failure_callback": lambda context: send(context, "FAILED", assets),
        "on_retry_callback": lambda context: send(context, "FAILED", assets),
    }


def send(context: Mapping[str, Any], state: str, assets: Mapping[str, Any]) -> None:
    """Send the report of the task instance of a callback's context."""
    task = context["task_instance"]
    error = context.get("exception")
    report = {
        "namespace": os.environ["WAYBILL_NAMESPACE"],
        "flowId": task.dag_id,
        "executionId": task.run_id,
        "taskId": task.task_id,
        "taskRunId": f"{task.run_id}.{task.task_id}.{task.map_index}.{task.try_number}",
        "state": state,
        "startDate": task.start_date.isoformat(),
        "endDate": (task.end_date or datetime.now(UTC)).isoformat(),
        "assets": assets,
    }
    if error is not None:
        report["error"] = {"message": str(error)}
    boto3.client("sqs").send_message(QueueUrl=os.environ["WAYBILL_QUEUE"], MessageBody=json.dumps(report))
