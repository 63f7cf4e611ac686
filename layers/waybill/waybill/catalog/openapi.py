"""The OpenAPI document of the catalog API, as far as Powertools does not make it of the routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from waybill import __version__
from waybill.catalog.documents import Problem
from waybill.catalog.filters import FUNCTION, OPERATORS, Kind
from waybill.catalog.problems import STATUSES
from waybill.catalog.runs import EVENT_FIELDS, USAGE_FIELDS
from waybill.catalog.search import FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
    from pydantic import BaseModel

LISTED = ("page", "size", "sort", "nextToken")
"""The parameters that every list takes."""

_FILTERED: Mapping[str, Mapping[str, Kind]] = {
    "/assets/search": FIELDS,
    "/assets/by-query": FIELDS,
    "/assets/usages/search": USAGE_FIELDS,
    "/assets/usages/by-query": USAGE_FIELDS,
    "/assets/lineage-events/search": EVENT_FIELDS,
    "/assets/lineage-events/by-query": EVENT_FIELDS,
}
_SCHEMAS: Mapping[Kind, dict[str, Any]] = {
    Kind.TEXT: {"type": "string"},
    Kind.MAP: {"type": "string"},
    Kind.WORDS: {"type": "string"},
    Kind.TIME: {"type": "string", "format": "date-time"},
    Kind.NUMBER: {"type": "integer"},
    Kind.FLAG: {"type": "boolean"},
}
_METADATA_KEY = "owner"
"""Stands for any key of metadata in the document, for a parameter's name cannot hold a placeholder."""


def answers(model: type[BaseModel] | None, *problems: int) -> dict[int, Any]:
    """Describe the answers of a route: what it gives, and the statuses of its problems."""
    if model is None:
        good: dict[int, Any] = {204: {"description": "Done"}}
    else:
        good = {200: {"description": "Done", "content": {"application/json": {"model": model}}}}
    content = {"application/problem+json": {"model": Problem}}
    return good | {status: {"description": STATUSES[status], "content": content} for status in (*problems, 503)}


def document(app: APIGatewayHttpResolver) -> dict[str, Any]:
    """Return the OpenAPI document."""
    text = app.get_openapi_json_schema(
        title="Waybill catalog", version=__version__, description="The catalog of assets and their lineage."
    )
    found: dict[str, Any] = orjson.loads(text)
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            operation["responses"].pop("422", None)
            operation.setdefault("parameters", []).extend(_parameters(path, method))
    return found


def _parameters(path: str, method: str) -> Iterator[dict[str, Any]]:
    if method == "get" and (path == "/assets" or path.endswith("/search")):
        yield _parameter("page", {"type": "integer", "minimum": 1}, "From 1; gives an exact `total`.")
        yield _parameter(
            "size", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 10}, "Results of a page."
        )
        yield _parameter("sort", {"type": "string"}, "`field:asc` or `field:desc`.")
        yield _parameter("nextToken", {"type": "string"}, "What the part before gave; for long walks.")
    if path == "/assets" and method == "get":
        yield from (_parameter(name, {"type": "string"}, "Exactly.") for name in FUNCTION)
        yield _parameter(f"metadata[{_METADATA_KEY}]", {"type": "string"}, "Exactly; any key of metadata.")
    for field, kind in _FILTERED.get(path, {}).items():
        key = f"[{_METADATA_KEY}]" if kind is Kind.MAP else ""
        for operator in OPERATORS[kind]:
            schema = {"type": "string"} if operator in ("IN", "NOT_IN") else _SCHEMAS[kind]
            yield _parameter(f"filters[{field}][{operator}]{key}", schema, _DESCRIPTIONS.get(operator, ""))


def _parameter(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    found = {"name": name, "in": "query", "required": False, "schema": schema}
    return found | ({"description": description} if description else {})


_DESCRIPTIONS = {
    "IN": "Values joined by commas.",
    "NOT_IN": "Values joined by commas.",
    "PREFIX": "The value itself, or anything after it and a dot.",
    "REGEX": "Found anywhere in the value; ^ and $ bind it.",
    "IS_NULL": "Any value.",
    "IS_NOT_NULL": "Any value.",
}
