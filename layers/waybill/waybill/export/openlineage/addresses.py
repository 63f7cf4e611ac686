"""Checks the web addresses of a flow, so that whatever takes them later takes them all.

httpx, yarl and the system's resolver each refuse another part of what `urlsplit` lets pass, and importing them takes
longer than reading a flow.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import AfterValidator

if TYPE_CHECKING:
    from urllib.parse import SplitResult

_NO_URL = "must be a URL with scheme and host such as http://marquez:5000"
_HOST_AND_PORT = re.compile(r"(\[[^\[\]]*\]|[^\[\]:]+)(:[0-9]*)?")
_NUMBERS = re.compile(r"\d+\.\d+\.\d+\.\d+")
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}")
_LONGEST_HOST = 253
_LONGEST = 2000


def url_of(credentials: str, *, query: bool = False) -> AfterValidator:
    """Return what validates a URL; its scheme is written small afterwards.

    Args:
        credentials: where they are said instead of in the URL.
        query: whether it may end with a query.
    """

    def check(value: str) -> str:
        parts = split_url(value)
        if parts.username is not None or parts.password is not None:
            raise ValueError(f"must not hold credentials; say them in {credentials}")
        if parts.fragment or (parts.query and not query):
            raise ValueError("must end with its path; a query or fragment has no meaning here")
        return f"{parts.scheme}{value[len(parts.scheme) :]}"

    return AfterValidator(check)


def _path(value: str) -> str:
    if not value.isprintable():
        raise ValueError("holds a character that no address may hold")
    if len(value) > _LONGEST:
        raise ValueError(f"is {len(value)} characters long; the most is {_LONGEST}")
    return value


PATH = AfterValidator(_path)
"""Validates a path that is added to a URL."""


def split_url(value: str) -> SplitResult:
    """Split a URL into its parts.

    Raises:
        ValueError: saying why it is none.
    """
    _path(value)
    try:
        parts = urlsplit(value)
        placed = _HOST_AND_PORT.fullmatch(parts.netloc.rpartition("@")[2]) and parts.port != 0
    except ValueError:
        raise ValueError(_NO_URL) from None
    if not placed or parts.scheme not in ("http", "https") or value != value.strip():
        raise ValueError(_NO_URL)
    host = str(parts.hostname)
    if not _is_host(host, bracketed="[" in parts.netloc):
        raise ValueError(f"its host {host!r} is no name or address of a machine")
    return parts


def _is_host(host: str, *, bracketed: bool) -> bool:
    """Whether a name or address can be one of a machine."""
    try:
        if bracketed:
            return bool(IPv6Address(host))
        if _NUMBERS.fullmatch(host):
            return bool(IPv4Address(host))
        if not host.isascii():
            import idna

            host = idna.encode(host).decode()
    except ValueError:
        return False
    labels = host.removesuffix(".").split(".")
    return len(host) <= _LONGEST_HOST and all(_LABEL.fullmatch(label) for label in labels)
