"""CatalogFunction: answers the catalog API (DESIGN 4, "Catalog API")."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from waybill.catalog.api import CatalogApi
from waybill.catalog.services import services_of
from waybill.settings import settings

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()


@cache
def api() -> CatalogApi:
    """Return the API of this process."""
    return CatalogApi(services_of(settings()), logger)


@logger.inject_lambda_context(correlation_id_path="requestContext.requestId")
def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request."""
    return api().answer(event, context)
