"""What the modules of routes share: the router, and the request that is being answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

if TYPE_CHECKING:
    from waybill.catalog.services import Request

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]


def request() -> Request:
    """Return the request that is being answered."""
    current: Request = router.context["request"]
    return current
