"""The ways in which a report reaches the recorder: by itself, on the bus, in a batch of the queue, by a pointer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from waybill.errors import InvalidReport
from waybill.store.aws import client
from waybill.store.objects import read_pointer

if TYPE_CHECKING:
    from collections.abc import Callable

    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
    from aws_lambda_powertools.utilities.typing import LambdaContext


def answer_to(
    event: Any, context: LambdaContext, record: Callable[[Any], dict[str, Any]], logger: Logger
) -> dict[str, Any]:
    """Answer an invocation: with the report's answer, or for a batch with the messages that failed.

    Raises:
        InvalidReport: the report is refused. In a batch only its message fails.
    """
    if isinstance(event, dict) and "Records" in event:
        return _batch(event, context, record, logger)
    return record(report_in(event))


def report_in(message: Any) -> Any:
    """Return the report that a message holds or points to.

    Raises:
        InvalidReport: the pointer cannot be followed, or leads to no JSON.
    """
    if isinstance(message, dict) and "detail-type" in message and "detail" in message:
        message = message["detail"]
    if isinstance(message, dict) and message.keys() == {"report"}:
        return _json("report", read_pointer(client("s3"), "report", str(message["report"]), InvalidReport))
    return message


def _batch(
    event: dict[str, Any], context: LambdaContext, take: Callable[[Any], dict[str, Any]], logger: Logger
) -> dict[str, Any]:
    from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response

    def record_message(record: SQSRecord) -> dict[str, Any]:  # the processor passes it by this name
        try:
            return take(report_in(_json("body", record.body)))
        except Exception:
            logger.exception("message not recorded", extra={"messageId": record.message_id})
            raise

    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
    answer = process_partial_response(event, record_message, processor, context)
    return dict(answer)


def _json(path: str, text: str | bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidReport([f"{path}: is not JSON ({error})"]) from None
