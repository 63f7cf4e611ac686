"""What it means when a post ended without an answer: was the event sent, and is it any use to try again?"""

from __future__ import annotations

import aiohttp
import httpx

from waybill.export.openlineage.connections import KeptConnectionBroke
from waybill.export.openlineage.outcomes import Answer, Verdict

_PROXY_IN_TROUBLE = range(500, 600)


def trouble_of(error: Exception, *, sent: bool) -> Answer:
    """Sort an error of the connection: not sent, of unknown outcome, or of no use to try again.

    The error of the connection itself, which is the cause of httpx's, tells more.

    Args:
        error: of httpx, or that the time was over.
        sent: whether a connection was had to send over.
    """
    stale = isinstance(error, KeptConnectionBroke)
    never_sent = not sent or isinstance(error, httpx.ConnectError)
    if isinstance(error, httpx.HTTPError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        fault = f"its certificate is not trusted ({error.certificate_error}); look at tls"
        return Answer(fault=fault, verdict=Verdict.MISROUTED)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return _proxy_refuses(error)
    if isinstance(error, aiohttp.InvalidURL):
        return Answer(fault=f"no request can be made of the address ({text})", verdict=Verdict.MISROUTED)
    if never_sent:
        return Answer(fault=f"no connection ({text})", verdict=Verdict.RETRY)
    if isinstance(error, TimeoutError):
        return Answer(fault=f"it was sent and no whole answer came in time ({text})", verdict=Verdict.UNKNOWN)
    return Answer(fault=f"the connection broke before a whole answer ({text})", verdict=Verdict.UNKNOWN, stale=stale)


def _proxy_refuses(error: aiohttp.ClientHttpProxyError) -> Answer:
    if error.status in _PROXY_IN_TROUBLE:
        return Answer(fault=f"the proxy answered {error.status}", verdict=Verdict.RETRY)
    return Answer(fault=f"the proxy answered {error.status}; look at proxy", verdict=Verdict.MISROUTED)
