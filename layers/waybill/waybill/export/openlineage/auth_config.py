"""How an exporter proves who it is: one document for each type of `auth` (DESIGN 4).

Secrets are never written in a flow: each is a reference to Secrets Manager or to an SSM parameter.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from waybill.export.openlineage.addresses import url_of
from waybill.model.fields import Document, Text

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN_HEADERS = frozenset({"content-type", "content-length", "content-encoding", "transfer-encoding", "host"})


def header_fault(name: str) -> str | None:
    """Say why a header of this name cannot be added to a request, or None."""
    if not _HEADER_NAME.fullmatch(name):
        return f"{name!r} is no name of a header"
    return f"{name} is set by the exporter; leave it out" if name.lower() in _OWN_HEADERS else None


def _addable_header(name: str) -> str:
    if fault := header_fault(name):
        raise ValueError(fault)
    return name


def _username(value: str) -> str:
    if ":" in value:
        raise ValueError("must not hold a colon, which ends the name where it is sent")
    return value


USERNAME = AfterValidator(_username)
"""Validates a name that is sent with its password (RFC 7617)."""


class SecretRef(Document):
    """Where a secret is kept: `{secret: <ARN or name>}` or `{parameter: <name>}`.

    `field` picks one property of a secret that is a JSON object.
    """

    secret: Text | None = None
    parameter: Text | None = None
    field: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_plain_secret(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError("must not be written in the flow; give {secret: <ARN>} or {parameter: <name>}")  # noqa: TRY004
        return value

    @model_validator(mode="after")
    def _one_place(self) -> SecretRef:
        if (self.secret is None) == (self.parameter is None):
            raise ValueError("needs either secret (an ARN) or parameter (a name)")
        return self

    def __str__(self) -> str:
        return f"secret {self.secret}" if self.secret else f"parameter {self.parameter}"


class NoAuth(Document):
    """Nothing is said about who sends."""

    type: Literal["none"] = "none"


class ApiKeyAuth(Document):
    """A key in a header: as `Bearer <key>` in `Authorization`, as OpenLineage's clients do, as it is in any other."""

    type: Literal["apiKey"]
    api_key: SecretRef
    header: Annotated[Text, AfterValidator(_addable_header)] = "Authorization"


class BearerAuth(Document):
    """A token that is given out elsewhere."""

    type: Literal["bearer"]
    token: SecretRef


class BasicAuth(Document):
    """A user's name and password (RFC 7617)."""

    type: Literal["basic"]
    username: Annotated[Text, USERNAME]
    password: SecretRef


class OAuth2Auth(Document):
    """Tokens by the client credentials grant (RFC 6749, 4.4), asked for before the old one ends."""

    type: Literal["oauth2"]
    token_endpoint: Annotated[str, url_of("clientId and clientSecret", query=True)]
    client_id: Text
    client_secret: SecretRef
    scope: Text | None = None
    client_auth_method: Literal["basic", "post"] = "basic"


class SigV4Auth(Document):
    """AWS Signature Version 4 by the role that runs; for an API Gateway the service is `execute-api`."""

    type: Literal["sigv4"]
    service: Text = "execute-api"
    region: Text | None = None


class ClientCertificateAuth(Document):
    """A certificate and its private key, PEM, shown in the TLS handshake."""

    type: Literal["clientCertificate"]
    certificate: SecretRef
    private_key: SecretRef
    passphrase: SecretRef | None = None


AuthConfig = Annotated[
    NoAuth | ApiKeyAuth | BearerAuth | BasicAuth | OAuth2Auth | SigV4Auth | ClientCertificateAuth,
    Field(discriminator="type"),
]
AUTH_MODELS = (NoAuth, ApiKeyAuth, BearerAuth, BasicAuth, OAuth2Auth, SigV4Auth, ClientCertificateAuth)
SECRETS = ("apiKey", "token", "password", "clientSecret", "certificate", "privateKey", "passphrase")
"""The properties of an `auth` that are references to secrets."""
