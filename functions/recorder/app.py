"""RecorderFunction: takes task run reports (DESIGN 3)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from waybill.record.ways_in import answer_to
from waybill.record.wiring import recorder_of
from waybill.settings import settings

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from waybill.record.recorder import Recorder

logger = Logger()


@cache
def recorder() -> Recorder:
    """Return the recorder of this process."""
    return recorder_of(settings(), logger)


@logger.inject_lambda_context
def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Record one report, or a batch of them."""
    return answer_to(event, context, lambda document: recorder().record(document), logger)
