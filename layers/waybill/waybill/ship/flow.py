"""Runs a flow document: its tasks in order, each with its share of the time (DESIGN 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from waybill.errors import ExportFailed, InvalidFlow
from waybill.export.files.config import FileAssetExporter
from waybill.export.ports import Deadline
from waybill.model.flow import Flow, parse_flow
from waybill.ship.checkpoints import TROUBLE
from waybill.ship.task import ship

if TYPE_CHECKING:
    from collections.abc import Callable

    from waybill.ship.answer import TaskAnswer
    from waybill.ship.services import Services

FLOW_OR_POINTER = "must be a flow document, s3://bucket/key or ssm:/name"

LEAST_RESERVE = 5.0
"""Seconds kept back at the end of an invocation for storing and answering."""


def load_flow(document: Any, fetch: Any) -> Flow:
    """Read the flow document that an invocation carries or points to.

    Args:
        document: the flow, a bare list of tasks, or `{"flow": <pointer or flow>, "continuation": n}`.
        fetch: returns the text that `s3://bucket/key` or `ssm:/name` points to.

    Raises:
        InvalidFlow: naming every fault by its path.
    """
    if not isinstance(document, dict) or "flow" not in document:
        return parse_flow(document)
    unknown = sorted(document.keys() - {"flow", "continuation"})
    if unknown:
        raise InvalidFlow([f"{name}: unknown property; beside flow only continuation may stand" for name in unknown])
    flow = document["flow"]
    if isinstance(flow, str):
        flow = _parsed(fetch(flow), flow)
    elif not isinstance(flow, (dict, list)):
        raise InvalidFlow([f"flow: {FLOW_OR_POINTER}"])
    if isinstance(flow, dict) and "continuation" in document:
        flow = flow | {"continuation": document["continuation"]}
    return parse_flow(flow)


def _parsed(text: bytes | str, pointer: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidFlow([f"flow: {pointer} holds no JSON: {error}"]) from error


def require_files_only(flow: Flow) -> None:
    """Refuse exporters that need more than S3 and DynamoDB.

    Raises:
        InvalidFlow: naming each of them.
    """
    faults = [
        f"tasks[{number}].assetExporters[{place}].type: {exporter.type} is for ShipperFunction; "
        "this function takes FileAssetExporter alone"
        for number, task in enumerate(flow.tasks)
        for place, exporter in enumerate(getattr(task, "asset_exporters", ()))
        if not isinstance(exporter, FileAssetExporter)
    ]
    if faults:
        raise InvalidFlow(faults)


async def run_flow(
    services: Services,
    flow: Flow,
    seconds: float,
    owner: str,
    measure: Callable[[Flow, str, TaskAnswer], None] | None = None,
) -> tuple[dict[str, Any], bool]:
    """Run every task of a flow.

    Args:
        services: the stores, the exporters and the clock.
        flow: the flow.
        seconds: what is left of the invocation.
        owner: names this invocation to others that want a lease.
        measure: told of what each task did.

    Returns:
        The answer, and whether the run is to be continued: time ran out, and it moved a position.

    Raises:
        InvalidFlow: a task may not do what it asks.
        ExportFailed: after all tasks, naming every exporter that stopped; it says, too, whether to continue.
    """
    deadline = Deadline(max(0.0, seconds - max(LEAST_RESERVE, seconds / 20)))
    answers: dict[str, TaskAnswer] = {}
    failures: list[str] = []
    refused: list[str] = []
    for number, task in enumerate(flow.shippers):
        share = deadline.share(len(flow.shippers) - number)
        try:
            answers[task.id] = await ship(services, flow, task, share, owner)
        except InvalidFlow as error:
            refused += error.faults
        except TROUBLE as error:
            failures.append(f"{task.id}: {error}")
        else:
            if measure is not None:
                measure(flow, task.id, answers[task.id])
            failures += [f"{task.id}.{exporter}: {reason}" for exporter, reason in answers[task.id].failures.items()]
    again = any(answer.again for answer in answers.values())
    if failures:
        failed = ExportFailed("\n".join(failures + refused))
        failed.again = again
        raise failed
    if refused:
        raise InvalidFlow(refused)
    return {"outputs": {task_id: answer.as_json() for task_id, answer in answers.items()}}, again
