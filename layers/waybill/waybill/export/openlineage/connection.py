"""What a connection needs beside the address: whom to trust, which certificate to show, which proxy to go through."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from waybill.errors import ExporterStopped
from waybill.export.openlineage.addresses import split_url
from waybill.export.openlineage.auth_config import ClientCertificateAuth, OAuth2Auth
from waybill.export.openlineage.secrets import read_secret

if TYPE_CHECKING:
    from waybill.export.openlineage.config import OpenLineageAssetExporter, Tls


class Login(NamedTuple):
    """Who goes through a proxy."""

    name: str
    password: str


def tls_context(config: OpenLineageAssetExporter) -> ssl.SSLContext:
    """Make the TLS settings: the system's authorities and our own, and our certificate where `auth` has one.

    Raises:
        ExporterStopped: a bundle, certificate or key cannot be had or read.
    """
    context = ssl.create_default_context()
    try:
        _trust(context, config.tls)
        if isinstance(config.auth, ClientCertificateAuth):
            _show(context, config.auth)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ExporterStopped(f"tls: a certificate or key cannot be read ({error})") from None
    return context


def _trust(context: ssl.SSLContext, tls: Tls) -> None:
    """Trust our own authorities too; many a company's certificates lack extensions that Python 3.13 insists on."""
    if tls.ca is not None or tls.ca_file is not None:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if tls.ca is not None:
        context.load_verify_locations(cadata=read_secret(tls.ca))
    if tls.ca_file is not None:
        context.load_verify_locations(cafile=tls.ca_file)


def _show(context: ssl.SSLContext, auth: ClientCertificateAuth) -> None:
    """Load a certificate and its key; Python reads them from files only, so one stands there for a moment."""
    password = read_secret(auth.passphrase) if auth.passphrase else None
    with tempfile.TemporaryDirectory() as folder:
        chain = Path(folder) / "chain.pem"
        chain.touch(mode=0o600)
        chain.write_text(f"{read_secret(auth.private_key)}\n{read_secret(auth.certificate)}\n")
        context.load_cert_chain(chain, password=password)


def tls_of(config: OpenLineageAssetExporter, proxy: str | None) -> ssl.SSLContext | bool:
    """Return the TLS settings where any of the addresses needs them, else True.

    Raises:
        ExporterStopped: a bundle, certificate or key cannot be had or read.
    """
    tokens = config.auth.token_endpoint if isinstance(config.auth, OAuth2Auth) else ""
    addresses = (config.url, tokens, proxy or "")
    return tls_context(config) if any(address.startswith("https:") for address in addresses) else True


def proxy_of(config: OpenLineageAssetExporter) -> tuple[str | None, Login | None]:
    """Return the address of the proxy and its credentials: the exporter's, or the environment's, or none.

    Raises:
        ExporterStopped: its password cannot be had, or the environment says no address.
    """
    if config.proxy is not None:
        name, password = config.proxy.username, config.proxy.password
        return config.proxy.uri, Login(name, read_secret(password) if password else "") if name else None
    parts = urlsplit(config.url)
    said = getproxies().get(parts.scheme)
    if not said or proxy_bypass(parts.hostname or ""):
        return None, None
    try:
        return _proxy_said(said)
    except ValueError:
        like = "an address of an HTTP proxy such as http://proxy:3128"
        raise ExporterStopped(f"proxy: {parts.scheme}_proxy in the environment is not {like}") from None


def _proxy_said(said: str) -> tuple[str, Login | None]:
    """Read what the environment says: the scheme may be left out, and credentials are percent-encoded.

    Raises:
        ValueError: it is no address.
    """
    parts = urlsplit(said if "://" in said else f"http://{said}")
    credentials, _, place = parts.netloc.rpartition("@")
    name, _, password = credentials.partition(":")
    address = split_url(f"{parts.scheme}://{place}").geturl()
    return address, Login(unquote(name), unquote(password)) if name else None
