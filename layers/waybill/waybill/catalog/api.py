"""The catalog API: routes, problems and the OpenAPI document, behind an HTTP API with payload 2.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from waybill.catalog import asset_routes, namespace_routes, run_routes  # noqa: F401 - they add their routes
from waybill.catalog.openapi import document
from waybill.catalog.problems import answer_problems
from waybill.catalog.router import current, router
from waybill.catalog.services import ANONYMOUS, Request
from waybill.errors import InvalidRequest
from waybill.faults import unstorable

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from waybill.catalog.services import Services


class CatalogApi:
    """Answers the requests of one process."""

    def __init__(self, services: Services, logger: Logger) -> None:
        self._services = services
        self._app = APIGatewayHttpResolver(
            enable_validation=True, serializer=lambda found: orjson.dumps(found).decode()
        )
        self._app.use([_storable])
        answer_problems(self._app, logger)
        self._app.include_router(router)
        self._app.get("/openapi.json", include_in_schema=False)(self._document)

    def answer(self, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        """Answer one request."""
        caller = event.get("requestContext", {}).get("authorizer", {}).get("iam", {}).get("userArn") or ANONYMOUS
        current.set(Request(self._services, caller, event.get("rawQueryString", "")))
        return self._app.resolve(event, context)

    def document(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        return document(self._app)

    def _document(self) -> Response[str]:
        return Response(200, "application/json", orjson.dumps(self.document()).decode())


def _storable(app: APIGatewayHttpResolver, go_on: NextMiddleware) -> Response[Any]:
    """Refuse a body that holds what no store takes."""
    faults = unstorable(app.current_event.json_body) if app.current_event.body else []
    if faults:
        raise InvalidRequest(faults)
    return go_on(app)
