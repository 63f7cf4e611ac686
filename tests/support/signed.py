"""Requests signed with IAM credentials, as the catalog's API wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tools.emulator import REGION, client_environment

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from requests import PreparedRequest

PATIENCE_SECONDS = 60.0


class Signer:
    """Signs requests for API Gateway, for httpx as `httpx.Auth` and for requests as a callable."""

    def __init__(self, url: str) -> None:
        environment = client_environment(url)
        keys = Credentials(environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"])
        self._signer = SigV4Auth(keys, "execute-api", REGION)

    def headers(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        """Return the headers that sign a request."""
        request = AWSRequest(method, url, data=body)
        self._signer.add_auth(request)
        return {name: value for name, value in request.headers.items() if name != "Content-Length"}

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Sign a request of the library requests."""
        body = request.body.encode() if isinstance(request.body, str) else request.body or b""
        if not isinstance(body, bytes):
            raise TypeError("a body that is read while it is sent cannot be signed")
        request.headers.update(self.headers(str(request.method), str(request.url), body))
        return request


class _Auth(httpx.Auth):
    requires_request_body = True

    def __init__(self, url: str) -> None:
        self._signer = Signer(url)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers.update(self._signer.headers(request.method, str(request.url), request.content))
        yield request


def signed_client(url: str, api: str) -> httpx.Client:
    """Return a client of an API on an emulator."""
    return httpx.Client(base_url=api, auth=_Auth(url), timeout=PATIENCE_SECONDS)
