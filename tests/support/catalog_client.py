"""The catalog API without a network: requests as API Gateway hands them to the function."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from waybill.catalog.api import CatalogApi
from waybill.catalog.services import services_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from waybill.settings import Settings

ANALYST = "arn:aws:sts::000000000000:assumed-role/analyst/ann"
ENGINEER = "arn:aws:sts::000000000000:assumed-role/engineer/eve"


@dataclass(frozen=True)
class Answer:
    """A response: its status and its body."""

    status: int
    body: Any

    @property
    def ids(self) -> list[str]:
        """The ids of the assets that a list holds."""
        return [result["id"] for result in self.body["results"]]


class CatalogClient:
    """Asks the API on behalf of a caller."""

    def __init__(self, settings: Settings, caller: str = ENGINEER) -> None:
        self._api = CatalogApi(services_of(settings), Logger(service="test"))
        self.caller = caller

    @property
    def document(self) -> dict[str, Any]:
        """The OpenAPI document."""
        return self._api.document()

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Answer:
        return self.ask("GET", path, query)

    def post(self, path: str, body: Any) -> Answer:
        return self.ask("POST", path, body=json.dumps(body))

    def put(self, path: str, body: Any) -> Answer:
        return self.ask("PUT", path, body=json.dumps(body))

    def delete(self, path: str, query: Mapping[str, Any] | None = None, body: Any = None) -> Answer:
        return self.ask("DELETE", path, query, None if body is None else json.dumps(body))

    def ask(self, method: str, path: str, query: Mapping[str, Any] | None = None, body: str | None = None) -> Answer:
        """Make a request."""
        raw = urlencode(query or {}, quote_via=quote)
        event = {
            "version": "2.0",
            "rawPath": quote(path, safe="/"),
            "rawQueryString": raw,
            "queryStringParameters": dict(parse_qsl(raw, keep_blank_values=True)),
            "headers": {"content-type": "application/json"},
            "requestContext": {
                "http": {"method": method, "path": path},
                "stage": "$default",
                "authorizer": {"iam": {"userArn": self.caller}},
            },
            "body": body,
            "isBase64Encoded": False,
        }
        response = self._api.answer(event, LambdaContext())
        return Answer(int(response["statusCode"]), json.loads(response["body"]) if response.get("body") else None)
