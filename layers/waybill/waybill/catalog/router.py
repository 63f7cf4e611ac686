"""What the modules of routes share: the router, and the request that is being answered."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

if TYPE_CHECKING:
    from waybill.catalog.services import Request

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]

current: ContextVar[Request] = ContextVar("current")
"""The request that is being answered."""


def request() -> Request:
    """Return the request that is being answered."""
    return current.get()
