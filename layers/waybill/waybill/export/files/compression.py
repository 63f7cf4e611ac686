"""What happens to lines on their way into an object."""

from __future__ import annotations

import sys
import zlib
from typing import Protocol

GZIP_LEVEL = 5
GZIP_HEADER = 31
"""zlib's window of 15 bits, plus 16 for a gzip header. It holds no time: the same lines give the same bytes."""
ZSTD_LEVEL = 3

SUFFIXES = {"none": "", "gzip": ".gz", "zstd": ".zst"}
CONTENT_TYPES = {"none": "application/x-ndjson", "gzip": "application/gzip", "zstd": "application/zstd"}


class Compressor(Protocol):
    """A compressor of a stream: what goes in comes out smaller, and later."""

    def compress(self, data: bytes, /) -> bytes:
        """Take data in, return what is ready."""
        ...

    def flush(self) -> bytes:
        """Return the rest; nothing may be added any more."""
        ...


class Plain:
    """No compression."""

    def compress(self, data: bytes, /) -> bytes:
        """Return the data."""
        return data

    def flush(self) -> bytes:
        """Return nothing, for nothing is kept back."""
        return b""


def compressor(name: str) -> Compressor:
    """Return a new compressor: `none`, `gzip` or `zstd`."""
    if name == "gzip":
        return zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_HEADER)
    if name == "zstd":
        return _zstd_compressor()
    return Plain()


def _zstd_compressor() -> Compressor:
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdCompressor
    else:
        from backports.zstd import ZstdCompressor
    return ZstdCompressor(ZSTD_LEVEL)


def decompress(data: bytes, name: str) -> bytes:
    """Read back a whole object.

    Raises:
        ValueError: the data is damaged.
    """
    try:
        return _decompress(data, name)
    except (zlib.error, OSError, EOFError) as error:
        raise ValueError(str(error)) from None


def _decompress(data: bytes, name: str) -> bytes:
    if name == "gzip":
        reader = zlib.decompressobj(GZIP_HEADER)
        text = reader.decompress(data)
        if not reader.eof:
            raise EOFError("the gzip stream ends early")
        return text
    if name == "zstd":
        return _zstd_decompress(data)
    return data


def _zstd_decompress(data: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdError
        from compression.zstd import decompress as read
    else:
        from backports.zstd import ZstdError
        from backports.zstd import decompress as read
    try:
        return read(data)
    except ZstdError as error:
        raise ValueError(str(error)) from None
