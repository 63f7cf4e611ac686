"""The routes of the settings of namespaces."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler.openapi.params import Body, Path
from pydantic import TypeAdapter, ValidationError

from waybill.catalog.openapi import answers
from waybill.catalog.router import request, router
from waybill.errors import InvalidRequest, NamespaceForbidden
from waybill.model.fields import Namespace
from waybill.model.namespace import NamespaceSettings

Name = Annotated[str, Path(description="The namespace.")]

_namespace = TypeAdapter(Namespace)


@router.get("/namespaces/<namespace>", responses=answers(NamespaceSettings, 400, 403))
def get_namespace(namespace: Name) -> dict[str, Any]:
    """Return what a namespace itself restricts; what it does not name, its parents decide, and else it is open."""
    name, asked = _name(namespace), request()
    if not asked.caller.reads(name):
        raise NamespaceForbidden(f"namespace {name} does not let {asked.caller.arn} read; add it to its readers")
    settings = asked.services.namespaces.get_many([name]).get(name, NamespaceSettings())
    return settings.model_dump(mode="json", by_alias=True, exclude_none=True)


@router.put("/namespaces/<namespace>", responses=answers(NamespaceSettings, 400, 403))
def put_namespace(namespace: Name, settings: Annotated[NamespaceSettings, Body()]) -> dict[str, Any]:
    """Replace what a namespace restricts."""
    name, asked = _name(namespace), request()
    asked.caller.check_writes(name)
    asked.services.assets.index.add_namespace(name)
    asked.services.namespaces.put(name, settings)
    return settings.model_dump(mode="json", by_alias=True, exclude_none=True)


def _name(namespace: str) -> str:
    try:
        return _namespace.validate_python(unquote(namespace))
    except ValidationError as error:
        raise InvalidRequest([f"namespace: {error.errors()[0]['ctx']['error']}"]) from None
