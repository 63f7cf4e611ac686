"""What is compressed comes back, and a damaged stream is told."""

from __future__ import annotations

import gzip

import pytest

from waybill.export.files.compression import compressor, decompressed

TEXT = b"".join(b'{"line":%d}\n' % number for number in range(20_000))


def compressed(name: str) -> bytes:
    writer = compressor(name)
    return b"".join(
        [*(writer.compress(TEXT[start : start + 9_999]) for start in range(0, len(TEXT), 9_999)), writer.flush()]
    )


@pytest.mark.parametrize("name", ["none", "gzip", "zstd"])
def test_what_goes_in_comes_out(name: str) -> None:
    data = compressed(name)
    blocks = [data[start : start + 777] for start in range(0, len(data), 777)]
    assert b"".join(decompressed(blocks, name)) == TEXT


def test_gzip_is_read_by_others_and_holds_no_time() -> None:
    assert gzip.decompress(compressed("gzip")) == TEXT
    assert compressed("gzip")[4:8] == b"\0\0\0\0"


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_a_stream_that_ends_early_is_told(name: str) -> None:
    with pytest.raises(ValueError, match=f"the {name} stream ends early"):
        b"".join(decompressed([compressed(name)[:-4]], name))


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_what_is_no_stream_is_told(name: str) -> None:
    with pytest.raises(ValueError, match=f"it is no {name}"):
        b"".join(decompressed([b"certainly not compressed"], name))
