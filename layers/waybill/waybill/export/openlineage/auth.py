"""Makes the headers that prove who sends, and makes them again once when they are refused."""

from __future__ import annotations

import asyncio
import base64
import time
from typing import TYPE_CHECKING, Any

from waybill.errors import ConfigurationFault, ExporterStopped
from waybill.export.openlineage.auth_config import ApiKeyAuth, BasicAuth, BearerAuth, OAuth2Auth, SigV4Auth
from waybill.export.openlineage.secrets import read_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from waybill.export.openlineage.auth_config import AuthConfig

_TOKEN_TIMEOUT = 10
_TOKEN_TRIES = 4
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
            self._headers = await self._made(transport, fresh=True)
            self.credentials += 1
            self.unproven = True
            return True

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
    if not _fits_a_header(secret):
        raise ExporterStopped(f"{ref} is empty or holds a character that no header may hold")
    return secret


def _fits_a_header(secret: str) -> bool:
    return bool(secret) and secret.isascii() and secret.isprintable()


class OAuth2TokenAuth(Auth):
    """Tokens of the client credentials grant, replaced a minute before they end."""

    renewable = True

    def __init__(self, config: OAuth2Auth) -> None:
        super().__init__()
        self._config = config
        self._transport: httpx.AsyncBaseTransport | None = None
        self._replace_at = float("inf")

    async def headers(self, method: str, url: httpx.URL, body: bytes) -> Mapping[str, str]:
        """Return the headers of a request, with a token that lives."""
        if time.monotonic() >= self._replace_at and self._transport is not None:
            async with self._renewing:
                if time.monotonic() >= self._replace_at:
                    self._headers = await self._made(self._transport, fresh=False)
                    self.credentials += 1
        return await super().headers(method, url, body)

    async def _made(self, transport: httpx.AsyncBaseTransport, *, fresh: bool) -> Mapping[str, str]:
        self._transport = transport
        secret = await asyncio.to_thread(read_secret, self._config.client_secret, fresh=fresh)
        token = await self._token(transport, secret)
        lives = token.get("expires_in")
        lives = float(lives) if isinstance(lives, (int, str)) and str(lives).isdigit() else float("inf")
        self._replace_at = time.monotonic() + max(lives - _EARLY, lives / 2)
        return {"Authorization": f"Bearer {token['access_token']}"}

    async def _token(self, transport: httpx.AsyncBaseTransport, secret: str) -> dict[str, Any]:
        """Ask for a token; the endpoint may be in trouble for a moment."""
        import httpx

        endpoint, trouble = self._config.token_endpoint, ""
        for attempt in range(_TOKEN_TRIES):
            await asyncio.sleep(0.5 * 2**attempt if attempt else 0)
            try:
                async with asyncio.timeout(_TOKEN_TIMEOUT):
                    response = await transport.handle_async_request(self._request(secret))
                    await response.aread()
            except (httpx.HTTPError, TimeoutError) as error:
                trouble = type(error.__cause__ or error).__name__
            else:
                if response.status_code < 500:  # noqa: PLR2004 - server errors may pass
                    return self._read(response)
                trouble = f"HTTP {response.status_code}"
        raise ExporterStopped(f"the token endpoint {endpoint} gives no token: {trouble}")

    def _request(self, secret: str) -> httpx.Request:
        import httpx

        config = self._config
        form = {"grant_type": "client_credentials"} | ({"scope": config.scope} if config.scope else {})
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        if config.client_auth_method == "basic":
            pair = base64.b64encode(f"{config.client_id}:{secret}".encode()).decode()
            headers["authorization"] = f"Basic {pair}"
        else:
            form |= {"client_id": config.client_id, "client_secret": secret}
        return httpx.Request("POST", config.token_endpoint, headers=headers, data=form)

    def _read(self, response: httpx.Response) -> dict[str, Any]:
        try:
            document = response.json()
        except ValueError:
            document = None
        status, granted = response.status_code, isinstance(document, dict)
        token = document.get("access_token") if granted else None
        if status == 200 and isinstance(token, str) and _fits_a_header(token):  # noqa: PLR2004
            return dict(document)
        said = document.get("error") if granted else None
        raise ExporterStopped(
            f"the token endpoint {self._config.token_endpoint} gives no token: HTTP {status}"
            f"{f', {said}' if said else ''}; look at clientId, clientSecret and scope"
        )


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


def auth_of(config: AuthConfig) -> Auth:
    """Return what makes the headers for an `auth`. A client certificate is shown in the handshake, not in a header."""
    if isinstance(config, (ApiKeyAuth, BearerAuth, BasicAuth)):
        return SecretAuth(config)
    if isinstance(config, OAuth2Auth):
        return OAuth2TokenAuth(config)
    return SignedAuth(config) if isinstance(config, SigV4Auth) else Auth()
