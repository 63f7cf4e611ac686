"""Asks for tokens by the client credentials grant (RFC 6749, 4.4)."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import httpx

from waybill.errors import ExporterStopped, OutOfTime
from waybill.export.openlineage.secrets import fits_a_header

if TYPE_CHECKING:
    from waybill.export.openlineage.auth_config import OAuth2Auth
    from waybill.export.ports import Deadline

_TIMEOUT = 10
_TRIES = 4
_LEAST_TIME = 0.01


class TokenEndpoint:
    """The token endpoint of one exporter, for one run."""

    def __init__(self, config: OAuth2Auth, deadline: Deadline) -> None:
        self._config = config
        self._deadline = deadline

    async def token(self, transport: httpx.AsyncBaseTransport, secret: str) -> tuple[str, float]:
        """Ask for a token, and for how many seconds it lives; the endpoint may be in trouble for a moment.

        Raises:
            ExporterStopped: it gives none.
            OutOfTime: the run's time is over.
        """
        trouble = ""
        for attempt in range(_TRIES):
            pause = 0.5 * 2**attempt if attempt else 0
            if pause >= self._deadline.remaining():
                break
            await asyncio.sleep(pause)
            answer = await self._asked(transport, secret)
            if isinstance(answer, httpx.Response):
                return self._read(answer)
            if self._deadline.remaining() > _LEAST_TIME:
                trouble = answer
        endpoint = self._config.token_endpoint
        if not trouble:
            raise OutOfTime(f"the run's time is over, and the token endpoint {endpoint} gave no token by then")
        raise ExporterStopped(f"the token endpoint {endpoint} gives no token: {trouble}")

    async def _asked(self, transport: httpx.AsyncBaseTransport, secret: str) -> httpx.Response | str:
        """Ask once; return the whole answer, or what the trouble was."""
        try:
            async with asyncio.timeout(min(_TIMEOUT, self._deadline.remaining())):
                response = await transport.handle_async_request(self._request(secret))
                try:
                    await response.aread()
                finally:
                    await response.aclose()
        except (httpx.HTTPError, TimeoutError) as error:
            return type(error.__cause__ or error).__name__
        if response.status_code >= 500:  # noqa: PLR2004 - server errors may pass
            return f"HTTP {response.status_code}"
        return response

    def _request(self, secret: str) -> httpx.Request:
        config = self._config
        form = {"grant_type": "client_credentials"} | ({"scope": config.scope} if config.scope else {})
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        if config.client_auth_method == "basic":
            pair = base64.b64encode(f"{config.client_id}:{secret}".encode()).decode()
            headers["authorization"] = f"Basic {pair}"
        else:
            form |= {"client_id": config.client_id, "client_secret": secret}
        return httpx.Request("POST", config.token_endpoint, headers=headers, data=form)

    def _read(self, response: httpx.Response) -> tuple[str, float]:
        try:
            document = response.json()
        except ValueError:
            document = None
        status, granted = response.status_code, isinstance(document, dict)
        token = document.get("access_token") if granted else None
        if status == 200 and isinstance(token, str) and fits_a_header(token):  # noqa: PLR2004
            return token, _seconds(document.get("expires_in"))
        said = document.get("error") if granted else None
        raise ExporterStopped(
            f"the token endpoint {self._config.token_endpoint} gives no token: HTTP {status}"
            f"{f', {said}' if said else ''}; look at clientId, clientSecret and scope"
        )


def _seconds(expires_in: Any) -> float:
    """Read for how long a token lives; what is no such number means that it does not say."""
    try:
        lives = float("inf") if isinstance(expires_in, bool) else float(expires_in)
    except (TypeError, ValueError, OverflowError):
        return float("inf")
    return lives if lives > 0 else float("inf")
