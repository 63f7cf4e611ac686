"""FileExporterFunction: files lineage in S3; takes file exporters alone (DESIGN 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from waybill.ship.invocation import ship_lineage

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handle(event: Any, context: LambdaContext) -> dict[str, Any]:
    """Run the flow document of an invocation."""
    return ship_lineage(event, context, logger, files_only=True)
