"""What happens to lines on their way into an object."""

from __future__ import annotations

import sys
import zlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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


def decompressed(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Read a compressed stream back, block by block.

    Raises:
        ValueError: it is damaged, or ends early.
    """
    if name == "none":
        yield from blocks
        return
    reader, errors = _gzip_reader() if name == "gzip" else _zstd_reader()
    try:
        for block in blocks:
            yield reader.decompress(block)
    except errors as error:
        raise ValueError(f"it is no {name}: {error}") from None
    if not reader.eof:
        raise ValueError(f"the {name} stream ends early")


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def _gzip_reader() -> tuple[_Decompressor, tuple[type[Exception], ...]]:
    return zlib.decompressobj(GZIP_HEADER), (zlib.error,)


def _zstd_reader() -> tuple[_Decompressor, tuple[type[Exception], ...]]:
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdDecompressor, ZstdError
    else:
        from backports.zstd import ZstdDecompressor, ZstdError
    return ZstdDecompressor(), (ZstdError, EOFError)
