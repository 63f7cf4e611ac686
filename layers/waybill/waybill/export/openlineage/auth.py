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

    import aiohttp
    from yarl import URL

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

    async def open(self, session: aiohttp.ClientSession) -> None:
        """Make the headers.

        Raises:
            ExporterStopped: a secret cannot be had.
        """
        self._headers = await self._made(session, fresh=False)

    async def headers(self, method: str, url: URL, body: bytes) -> Mapping[str, str]:  # noqa: ARG002 - see SignedAuth
        """Return the headers of a request; the same object as long as they stay the same."""
        return self._headers

    async def renew(self, session: aiohttp.ClientSession, credentials: int) -> bool:
        """Make the headers again after those counted `credentials` were refused; False when there is no use in it.

        Raises:
            ExporterStopped: a secret cannot be had.
        """
        async with self._renewing:
            if credentials != self.credentials:
                return True
            if self.unproven or not self.renewable:
                return False
            self._headers = await self._made(session, fresh=True)
            self.credentials += 1
            self.unproven = True
            return True

    async def _made(self, session: aiohttp.ClientSession, *, fresh: bool) -> Mapping[str, str]:  # noqa: ARG002
        return {}


class SecretAuth(Auth):
    """A header made of a secret."""

    renewable = True

    def __init__(self, config: ApiKeyAuth | BearerAuth | BasicAuth) -> None:
        super().__init__()
        self._config = config

    async def _made(self, session: aiohttp.ClientSession, *, fresh: bool) -> Mapping[str, str]:  # noqa: ARG002
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
    if not secret.isascii() or not secret.isprintable() or not secret:
        raise ExporterStopped(f"{ref} is empty or holds a character that no header may hold")
    return secret


class OAuth2TokenAuth(Auth):
    """Tokens of the client credentials grant, replaced a minute before they end."""

    renewable = True

    def __init__(self, config: OAuth2Auth) -> None:
        super().__init__()
        self._config = config
        self._session: aiohttp.ClientSession | None = None
        self._replace_at = float("inf")

    async def headers(self, method: str, url: URL, body: bytes) -> Mapping[str, str]:
        """Return the headers of a request, with a token that lives."""
        if time.monotonic() >= self._replace_at and self._session is not None:
            async with self._renewing:
                if time.monotonic() >= self._replace_at:
                    self._headers = await self._made(self._session, fresh=False)
                    self.credentials += 1
        return await super().headers(method, url, body)

    async def _made(self, session: aiohttp.ClientSession, *, fresh: bool) -> Mapping[str, str]:
        self._session = session
        secret = await asyncio.to_thread(read_secret, self._config.client_secret, fresh=fresh)
        token = await self._token(session, secret)
        lives = token.get("expires_in")
        lives = float(lives) if isinstance(lives, (int, str)) and str(lives).isdigit() else float("inf")
        self._replace_at = time.monotonic() + max(lives - _EARLY, lives / 2)
        return {"Authorization": f"Bearer {token['access_token']}"}

    async def _token(self, session: aiohttp.ClientSession, secret: str) -> dict[str, Any]:
        """Ask for a token; the endpoint may be in trouble for a moment."""
        import aiohttp

        endpoint, trouble = self._config.token_endpoint, ""
        for attempt in range(_TOKEN_TRIES):
            await asyncio.sleep(0.5 * 2**attempt if attempt else 0)
            try:
                async with session.post(endpoint, **self._request(secret)) as response:
                    if response.status < 500:  # noqa: PLR2004 - server errors may pass
                        return await self._read(response)
                    trouble = f"HTTP {response.status}"
            except (aiohttp.ClientError, TimeoutError) as error:
                trouble = type(error).__name__
        raise ExporterStopped(f"the token endpoint {endpoint} gives no token: {trouble}")

    def _request(self, secret: str) -> dict[str, Any]:
        import aiohttp

        config = self._config
        form = {"grant_type": "client_credentials"} | ({"scope": config.scope} if config.scope else {})
        request: dict[str, Any] = {
            "timeout": aiohttp.ClientTimeout(total=_TOKEN_TIMEOUT),
            "allow_redirects": False,
            "headers": {"accept": "application/json", "accept-encoding": "identity"},
        }
        if config.client_auth_method == "basic":
            pair = base64.b64encode(f"{config.client_id}:{secret}".encode()).decode()
            request["headers"]["Authorization"] = f"Basic {pair}"
            return request | {"data": form}
        return request | {"data": {**form, "client_id": config.client_id, "client_secret": secret}}

    async def _read(self, response: aiohttp.ClientResponse) -> dict[str, Any]:
        try:
            document = await response.json(content_type=None)
        except ValueError:
            document = None
        if response.status == 200 and isinstance(document, dict) and isinstance(document.get("access_token"), str):  # noqa: PLR2004
            return document
        said = document.get("error") if isinstance(document, dict) else None
        raise ExporterStopped(
            f"the token endpoint {self._config.token_endpoint} gives no token: HTTP {response.status}"
            f"{f', {said}' if said else ''}; look at clientId, clientSecret and scope"
        )


class SignedAuth(Auth):
    """AWS Signature Version 4, of each request with its body."""

    renewable = True

    def __init__(self, config: SigV4Auth) -> None:
        super().__init__()
        self._config = config
        self._signer: Any = None

    async def _made(self, session: aiohttp.ClientSession, *, fresh: bool) -> Mapping[str, str]:  # noqa: ARG002
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

    async def headers(self, method: str, url: URL, body: bytes) -> Mapping[str, str]:
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
