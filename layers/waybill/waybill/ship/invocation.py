"""What ShipperFunction and FileExporterFunction have in common: from the event of an invocation to its answer."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from waybill.errors import ExportFailed, InvalidFlow
from waybill.settings import settings
from waybill.ship.flow import FLOW_OR_POINTER, load_flow, require_files_only, run_flow
from waybill.ship.metrics import publish
from waybill.ship.services import services_of
from waybill.store.aws import client
from waybill.store.objects import read_pointer

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from waybill.model.flow import Flow
    from waybill.ship.answer import TaskAnswer


def ship_lineage(event: Any, context: LambdaContext, logger: Logger, *, files_only: bool = False) -> dict[str, Any]:
    """Run the flow document of an invocation, and go on in another one when time ran out.

    Raises:
        InvalidFlow, ExportFailed: see `run_flow`.
    """
    flow = load_flow(event, _fetched)
    if files_only:
        require_files_only(flow)
    logger.append_keys(flow=f"{flow.namespace}/{flow.id}")
    for warning in flow.warnings:
        logger.warning(warning)

    def measure(flow: Flow, task_id: str, answer: TaskAnswer) -> None:
        publish(flow, task_id, answer)
        _tell(logger, task_id, answer)

    def go_on() -> None:
        if flow.continuation < settings().continue_runs:
            _continue(event, flow, context)
            logger.info("time ran out; going on in another invocation", continuation=flow.continuation + 1)

    seconds = context.get_remaining_time_in_millis() / 1000
    try:
        answer, again = asyncio.run(run_flow(services_of(settings()), flow, seconds, context.aws_request_id, measure))
    except ExportFailed as failed:
        try:
            if failed.again:
                go_on()
        except (BotoCoreError, ClientError):
            logger.exception("cannot go on in another invocation")
        raise
    if again:
        go_on()
    return answer


def _tell(logger: Logger, task_id: str, answer: TaskAnswer) -> None:
    """Log what a task did: counts, and why exporters stopped; nothing of what the events hold."""
    exporters = {
        name: {key: count for key, count in figures.counts.items() if isinstance(count, int)}
        | {"lagSeconds": figures.lag_seconds}
        for name, figures in answer.figures.items()
    }
    logger.info("shipped", task=task_id, size=answer.size, complete=answer.complete, exporters=exporters)
    for name, reason in answer.failures.items():
        logger.error("exporter stopped", task=task_id, exporter=name, reason=reason)


def _fetched(pointer: str) -> bytes | str:
    if pointer.startswith("s3://"):
        return read_pointer(client("s3"), "flow", pointer, InvalidFlow)
    if pointer.startswith("ssm:"):
        ssm = client("ssm")
        try:
            value: str = ssm.get_parameter(Name=pointer.removeprefix("ssm:"))["Parameter"]["Value"]
        except ssm.exceptions.ParameterNotFound:
            raise InvalidFlow([f"flow: the parameter {pointer.removeprefix('ssm:')} does not exist"]) from None
        return value
    raise InvalidFlow([f"flow: {FLOW_OR_POINTER}"])


def _continue(event: Any, flow: Flow, context: LambdaContext) -> None:
    document = event["flow"] if isinstance(event, dict) and "flow" in event else event
    if isinstance(document, list):
        document = {"id": flow.id, "namespace": flow.namespace, "tasks": document}
    payload = {"flow": document, "continuation": flow.continuation + 1}
    client("lambda").invoke(
        FunctionName=context.invoked_function_arn, InvocationType="Event", Payload=json.dumps(payload).encode()
    )
