"""Problem responses (RFC 9457): what went wrong, why, and what to do."""

from __future__ import annotations

from json import JSONDecodeError
from typing import TYPE_CHECKING, Any

import orjson
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from botocore.exceptions import BotoCoreError, ClientError

from waybill.errors import (
    AssetExists,
    AssetLocked,
    AssetNotFound,
    AssetRefused,
    Conflict,
    InvalidRequest,
    NamespaceForbidden,
    StoreBusy,
)
from waybill.faults import lines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.event_handler import APIGatewayHttpResolver

_KINDS: dict[type[Exception], tuple[int, str, str]] = {
    InvalidRequest: (400, "invalid-request", "The request cannot be read"),
    NamespaceForbidden: (403, "forbidden", "The namespace does not allow it"),
    AssetNotFound: (404, "not-found", "There is no such asset"),
    AssetExists: (409, "already-exists", "The id is taken"),
    AssetRefused: (413, "too-large", "The asset is too large"),
    AssetLocked: (423, "resource-leased", "Somebody holds the asset"),
    Conflict: (503, "busy", "Try again"),
    StoreBusy: (503, "busy", "Try again"),
}
STATUSES = {status: title for status, _, title in _KINDS.values()}
"""What each status of a problem means, for the OpenAPI document."""


def problem(status: int, kind: str, title: str, detail: str, faults: Sequence[str] = ()) -> Response[str]:
    """Return a problem response."""
    document: dict[str, Any] = {"type": kind, "title": title, "status": status, "detail": detail}
    if faults:
        document["faults"] = list(faults)
    return Response(status, "application/problem+json", orjson.dumps(document).decode())


def answer_problems(app: APIGatewayHttpResolver, logger: Logger) -> None:
    """Make the API answer what is raised with problems."""

    def raised(error: Exception) -> Response[str]:
        status, kind, title = next(_KINDS[cls] for cls in type(error).__mro__ if cls in _KINDS)
        faults = error.faults if isinstance(error, InvalidRequest) else ()
        return problem(status, kind, title, str(error), faults)

    def unreadable(error: RequestValidationError) -> Response[str]:
        faults = lines_of([_without_place(fault) for fault in error.errors()], {})
        return problem(400, "invalid-request", "The request cannot be read", "\n".join(faults), faults)

    def undecodable(_: Exception) -> Response[str]:
        fault = "body: must be JSON in UTF-8, and not nested hundreds of levels deep"
        return problem(400, "invalid-request", "The request cannot be read", fault, [fault])

    def broken(error: Exception) -> Response[str]:
        logger.error("a store does not answer", exc_info=error)
        return problem(503, "busy", "Try again", "a store of the stack does not answer as it should")

    def unknown_route(_: Exception) -> Response[str]:
        return problem(404, "not-found", "There is no such path", "GET /openapi.json lists the paths")

    app.exception_handler(list(_KINDS))(raised)
    app.exception_handler(RequestValidationError)(unreadable)
    app.exception_handler([JSONDecodeError, RecursionError, UnicodeError])(undecodable)
    app.exception_handler([ClientError, BotoCoreError])(broken)
    app.not_found(unknown_route)


def _without_place(fault: dict[str, Any]) -> dict[str, Any]:
    """Name a fault by its path in the body, or by the parameter."""
    place, *location = fault["loc"]
    if fault["type"] == "json_invalid":
        return fault | {"loc": ("body",), "msg": "is not JSON"}
    return fault | {"loc": tuple(location) or (place,)}
