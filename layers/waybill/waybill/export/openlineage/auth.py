"""Makes the headers that prove who sends, and makes them again once when they are refused."""

from __future__ import annotations

import asyncio
import base64
import time
from typing import TYPE_CHECKING, Any

from waybill.errors import ConfigurationFault, ExporterStopped
from waybill.export.openlineage.auth_config import ApiKeyAuth, BasicAuth, BearerAuth, OAuth2Auth, SigV4Auth
from waybill.export.openlineage.secrets import fits_a_header, read_secret
from waybill.export.openlineage.tokens import TokenEndpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from waybill.export.openlineage.auth_config import AuthConfig
    from waybill.export.ports import Deadline

_EARLY = 60
"""Seconds before its end at which a token is replaced."""


class Auth:
    """Says nothing about who sends; the base of those that do.

    Attributes:
        credentials: counts how often the headers have been made again.
        unproven: they were made again and nothing was accepted since.
    """

    renewable = False

    def __init__(self) -> None:
        self.credentials = 0
        self.unproven = False
        self._headers: Mapping[str, str] = {}
        self._renewing = asyncio.Lock()
        self._failed: ExporterStopped | None = None

    async def open(self, transport: httpx.AsyncBaseTransport) -> None:
        """Make the headers.

        Raises:
            ExporterStopped: a secret cannot be had.
        """
        self._headers = await self._made(transport, fresh=False)

    async def headers(self, method: str, url: httpx.URL, body: bytes) -> Mapping[str, str]:  # noqa: ARG002 - see SignedAuth
        """Return the headers of a request; the same object as long as they stay the same."""
        return self._headers

    async def renew(self, transport: httpx.AsyncBaseTransport, credentials: int) -> bool:
        """Make the headers again after those counted `credentials` were refused; False when there is no use in it.

        Raises:
            ExporterStopped: a secret cannot be had.
        """
        async with self._renewing:
            if credentials != self.credentials:
                return True
            if self.unproven or not self.renewable:
                return False
            await self._replace(transport, fresh=True)
            self.unproven = True
            return True

    async def _replace(self, transport: httpx.AsyncBaseTransport, *, fresh: bool) -> None:
        """Make the headers again; where that failed, those who waited for it do not try once more."""
        if self._failed is not None:
            raise type(self._failed)(str(self._failed))
        try:
            self._headers = await self._made(transport, fresh=fresh)
        except ExporterStopped as error:
            self._failed = error
            raise
        self.credentials += 1

    async def _made(self, transport: httpx.AsyncBaseTransport, *, fresh: bool) -> Mapping[str, str]:  # noqa: ARG002
        return {}


class SecretAuth(Auth):
    """A header made of a secret."""

    renewable = True

    def __init__(self, config: ApiKeyAuth | BearerAuth | BasicAuth) -> None:
        super().__init__()
        self._config = config

    async def _made(self, transport: httpx.AsyncBaseTransport, *, fresh: bool) -> Mapping[str, str]:  # noqa: ARG002
        return await asyncio.to_thread(self._header, fresh=fresh)

    def _header(self, *, fresh: bool) -> Mapping[str, str]:
        config = self._config
        if isinstance(config, BasicAuth):
            pair = f"{config.username}:{read_secret(config.password, fresh=fresh)}"
            return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        if isinstance(config, BearerAuth):
            return {"Authorization": f"Bearer {_printable(config.token, fresh=fresh)}"}
        key = _printable(config.api_key, fresh=fresh)
        return {config.header: f"Bearer {key}" if config.header.lower() == "authorization" else key}


def _printable(ref: Any, *, fresh: bool) -> str:
    secret = read_secret(ref, fresh=fresh)
    if not fits_a_header(secret):
        raise ExporterStopped(f"{ref} is empty or holds a character that no header may hold")
    return secret


class OAuth2TokenAuth(Auth):
    """Tokens of the client credentials grant, replaced a minute before they end."""

    renewable = True

    def __init__(self, config: OAuth2Auth, deadline: Deadline) -> None:
        super().__init__()
        self._secret = config.client_secret
        self._endpoint = TokenEndpoint(config, deadline)
        self._transport: httpx.AsyncBaseTransport | None = None
        self._replace_at = float("inf")

    async def headers(self, method: str, url: httpx.URL, body: bytes) -> Mapping[str, str]:
        """Return the headers of a request, with a token that lives."""
        if time.monotonic() >= self._replace_at and self._transport is not None:
            async with self._renewing:
                if time.monotonic() >= self._replace_at:
                    await self._replace(self._transport, fresh=False)
        return await super().headers(method, url, body)

    async def _made(self, transport: httpx.AsyncBaseTransport, *, fresh: bool) -> Mapping[str, str]:
        self._transport = transport
        secret = await asyncio.to_thread(read_secret, self._secret, fresh=fresh)
        token, lives = await self._endpoint.token(transport, secret)
        self._replace_at = time.monotonic() + max(lives - _EARLY, lives / 2)
        return {"Authorization": f"Bearer {token}"}


class SignedAuth(Auth):
    """AWS Signature Version 4, of each request with its body."""

    renewable = True

    def __init__(self, config: SigV4Auth) -> None:
        super().__init__()
        self._config = config
        self._signer: Any = None

    async def _made(self, transport: httpx.AsyncBaseTransport, *, fresh: bool) -> Mapping[str, str]:  # noqa: ARG002
        self._signer = await asyncio.to_thread(self._new_signer)
        return {}

    def _new_signer(self) -> Any:
        import boto3
        from botocore.auth import SigV4Auth as Signer

        session = boto3.Session()
        credentials, region = session.get_credentials(), self._config.region or session.region_name
        if credentials is None:
            raise ExporterStopped("auth sigv4: there are no AWS credentials to sign with")
        if region is None:
            raise ConfigurationFault("auth.region: is needed where no region is set")
        return Signer(credentials, self._config.service, region)

    async def headers(self, method: str, url: httpx.URL, body: bytes) -> Mapping[str, str]:
        """Return the signature of a request."""
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError

        request = AWSRequest(method, str(url), data=body, headers={"content-type": "application/json"} if body else {})
        try:
            self._signer.add_auth(request)
        except BotoCoreError as error:
            raise ExporterStopped(f"auth sigv4: {error}") from error
        return {name: value for name, value in request.headers.items() if name.lower() != "content-type"}


def auth_of(config: AuthConfig, deadline: Deadline) -> Auth:
    """Return what makes the headers for an `auth`. A client certificate is shown in the handshake, not in a header."""
    if isinstance(config, (ApiKeyAuth, BearerAuth, BasicAuth)):
        return SecretAuth(config)
    if isinstance(config, OAuth2Auth):
        return OAuth2TokenAuth(config, deadline)
    return SignedAuth(config) if isinstance(config, SigV4Auth) else Auth()
