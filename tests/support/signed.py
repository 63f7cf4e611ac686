"""Requests signed with IAM credentials, as the catalog's API wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tools.emulator import REGION, client_environment

if TYPE_CHECKING:
    from collections.abc import Generator


class Signed(httpx.Auth):
    """Signs each request for API Gateway."""

    requires_request_body = True

    def __init__(self, url: str) -> None:
        environment = client_environment(url)
        keys = Credentials(environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"])
        self._signer = SigV4Auth(keys, "execute-api", REGION)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Sign a request."""
        plain = AWSRequest(request.method, str(request.url), data=request.content)
        self._signer.add_auth(plain)
        request.headers.update({name: value for name, value in plain.headers.items() if name != "Content-Length"})
        yield request
