"""An authority of our own, and certificates that it gives."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, PEM."""

    certificate: str
    key: str


class Authority:
    """Gives certificates for 127.0.0.1."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of a test")])
        basics = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = (
            self._builder(self._name, self._key, datetime.now(UTC) + DAY)
            .add_extension(basics, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def bundle(self) -> str:
        """The authority's own certificate, PEM."""
        return self._certificate.public_bytes(serialization.Encoding.PEM).decode()

    def give(self, *, ends: datetime | None = None) -> Certificate:
        """Give a certificate, by default one that is good for a day."""
        key = ec.generate_private_key(ec.SECP256R1())
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "A test")])
        certificate = (
            self._builder(subject, key, ends or datetime.now(UTC) + DAY)
            .add_extension(address, critical=False)
            .add_extension(authority, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Certificate(certificate.public_bytes(serialization.Encoding.PEM).decode(), _pem(key))

    def server(self, folder: Path, certificate: Certificate, *, asks_client: bool = False) -> ssl.SSLContext:
        """Return the TLS settings of a server with a certificate; it may ask its clients for theirs."""
        chain = folder / "server.pem"
        chain.write_text(certificate.key + certificate.certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        if asks_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self.bundle)
        return context

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, ends: datetime) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.now(UTC) - 10 * DAY)
            .not_valid_after(ends)
        )


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
