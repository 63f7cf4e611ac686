"""What it means when a post ended without an answer: was the event sent, and is it any use to try again?"""

from __future__ import annotations

import aiohttp

from waybill.export.openlineage.outcomes import Answer, Verdict

_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientProxyConnectionError)
_PROXY_TROUBLE = range(500, 600)


def trouble_of(error: BaseException) -> Answer:
    """Sort an error of the connection: not sent, of unknown outcome, or of no use to try again."""
    cause = error.__cause__ or error
    text = f"{type(cause).__name__}: {cause}"
    if isinstance(cause, aiohttp.ClientConnectorCertificateError):
        return Answer(fault=f"its certificate is not trusted ({cause}); look at tls", verdict=Verdict.MISROUTED)
    if isinstance(cause, aiohttp.ClientHttpProxyError):
        return _proxy(cause)
    if isinstance(cause, aiohttp.InvalidURL):
        return Answer(fault=f"it redirects or is no URL ({text})", verdict=Verdict.MISROUTED)
    if isinstance(cause, _NOT_SENT):
        return Answer(fault=f"no connection ({text})", verdict=Verdict.RETRY)
    if isinstance(cause, aiohttp.SocketTimeoutError):
        return Answer(fault="it was sent and no answer began in time", verdict=Verdict.UNKNOWN)
    return Answer(fault=f"the connection broke before a whole answer ({text})", verdict=Verdict.UNKNOWN)


def _proxy(error: aiohttp.ClientHttpProxyError) -> Answer:
    text = f"the proxy answered {error.status} {error.message}"
    verdict = Verdict.RETRY if error.status in _PROXY_TROUBLE else Verdict.MISROUTED
    return Answer(fault=f"{text}; look at proxy" if verdict is Verdict.MISROUTED else text, verdict=verdict)
