"""Which proxy an exporter goes through when it names none."""

from __future__ import annotations

import pytest

from tests.support.delivering import exporter_config
from waybill.errors import ExporterStopped
from waybill.export.openlineage.connection import Login, proxy_of


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that names no proxy."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("said", "address", "login"),
    [
        ("http://proxy:3128", "http://proxy:3128", None),
        ("http://proxy:3128/", "http://proxy:3128", None),
        ("proxy:3128", "http://proxy:3128", None),
        ("HTTPS://proxy", "https://proxy", None),
        ("http://[::1]:3128", "http://[::1]:3128", None),
        ("http://user:p%40ss@proxy:3128", "http://proxy:3128", Login("user", "p@ss")),
        ("user@[::1]", "http://[::1]", Login("user", "")),
    ],
)
def test_the_environment_says_a_proxy_in_many_ways(
    monkeypatch: pytest.MonkeyPatch, said: str, address: str, login: Login | None
) -> None:
    monkeypatch.setenv("http_proxy", said)
    assert proxy_of(exporter_config("http://backend.example")) == (address, login)


@pytest.mark.parametrize(
    "said", ["http://user:secret@proxy:99999", "socks5://proxy:1080", "http://", "http://[x", "a..b"]
)
def test_what_is_no_address_of_a_proxy_stops_the_exporter(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv("https_proxy", said)
    with pytest.raises(ExporterStopped) as stopped:
        proxy_of(exporter_config("https://backend.example"))
    assert str(stopped.value) == (
        "proxy: https_proxy in the environment is not an address of an HTTP proxy such as http://proxy:3128"
    )


def test_a_backend_that_is_excepted_is_reached_without_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "backend.example")
    assert proxy_of(exporter_config("http://backend.example")) == (None, None)
