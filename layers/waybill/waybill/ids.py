"""Identifiers: sort keys of the log, ids of events and runs, and ids made of user input."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import unicodedata
import uuid
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING

from waybill.clock import to_millis

if TYPE_CHECKING:
    from datetime import datetime

NAMESPACE = uuid.UUID("5f1d6b0e-7c0c-5a53-9a52-6a4d4f6e7a11")
"""The namespace of every UUIDv5 that Waybill makes."""

_lock = threading.Lock()
_last = [0, 0]


def _v7(millis: int, random_bits: int) -> uuid.UUID:
    """Lay out a UUIDv7 (RFC 9562, 5.7) of 48 bits of time and the lowest 74 bits of `random_bits`."""
    high, low = random_bits >> 62 & 0xFFF, random_bits & (1 << 62) - 1
    return uuid.UUID(int=millis << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low)


def uuid7(moment: datetime) -> str:
    """Make a UUIDv7 of an instant. Within a process and a millisecond, later calls give greater ids (RFC 9562, 6.2)."""
    millis = to_millis(moment)
    with _lock:
        previous_millis, previous_bits = _last
        if millis == previous_millis:
            bits = previous_bits + 1 + int.from_bytes(os.urandom(4), "big")
        else:
            bits = int.from_bytes(os.urandom(10), "big") & (1 << 73) - 1
        _last[:] = millis, bits
    return str(_v7(millis, bits))


def uuid7_floor(moment: datetime) -> str:
    """Return the least UUIDv7 of an instant's millisecond: a bound for key conditions."""
    return str(_v7(to_millis(moment), 0))


def uuid7_millis(value: str) -> int:
    """Return the milliseconds from the epoch that a UUIDv7 holds."""
    return int(value[:8] + value[9:13], 16)


def derived_uuid7(moment: datetime, *parts: str) -> str:
    """Make the UUIDv7 that an instant and some text always give, so that a second sending carries the same id."""
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    return str(_v7(to_millis(moment), int.from_bytes(digest[:10], "big")))


def derived_uuid(*parts: str) -> str:
    """Make the UUIDv5 that some text always gives."""
    return str(uuid.uuid5(NAMESPACE, "\x1f".join(parts)))


def short_uuid(value: str) -> str:
    """Write a UUID in 22 characters: for where many are kept."""
    return urlsafe_b64encode(bytes.fromhex(value.replace("-", ""))).decode().rstrip("=")


def long_uuid(short: str) -> str:
    """Read what `short_uuid` wrote.

    Raises:
        ValueError: it is no UUID.
    """
    return str(uuid.UUID(bytes=urlsafe_b64decode(short + "==")))


_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


def as_uuid(text: str) -> str | None:
    """Return a UUID in lower case with dashes, or None where the text is none."""
    return text.lower() if _UUID.fullmatch(text) else None


def slugify(text: str) -> str:
    """Turn user input into a part of an asset id: lower case, ASCII, words joined by dashes."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
