"""Whatever address a flow may say, what opens connections can take."""

from __future__ import annotations

import httpx
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from yarl import URL

from tests.support.delivering import exporter_config

ODD = st.text("abc.:/?#[]@\\% _-0129xü☃\t\r\u200b\u00ad٣ⅷ。'\"<>|^`{}~!$&()*+,;=", max_size=9)
STARTS = st.sampled_from(["http://", "https://a", "HTTP://h:80/", "http://[::1]"])


@given(STARTS, ODD, ODD)
def test_no_address_that_is_accepted_breaks_a_sender(start: str, rest: str, endpoint: str) -> None:
    try:
        config = exporter_config(start + rest, endpoint=endpoint or None)
    except ValidationError:
        return

    address = URL(str(httpx.URL(config.url)), encoded=True)

    assert address.scheme in ("http", "https")
    assert str(address.raw_host).encode("idna")
    assert address.raw_path_qs.startswith("/")
