"""How an exporter proves who it is: one document for each type of `auth` (DESIGN 4).

Secrets are never written in a flow: each is a reference to Secrets Manager or to an SSM parameter.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from waybill.model.fields import Document, Text, matches

_HTTP = re.compile(r"https?://[^\s/?#]+\S*")


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
    header: Text = "Authorization"


class BearerAuth(Document):
    """A token that is given out elsewhere."""

    type: Literal["bearer"]
    token: SecretRef


class BasicAuth(Document):
    """A user's name and password (RFC 7617)."""

    type: Literal["basic"]
    username: Text
    password: SecretRef


class OAuth2Auth(Document):
    """Tokens by the client credentials grant (RFC 6749, 4.4), asked for before the old one ends."""

    type: Literal["oauth2"]
    token_endpoint: Annotated[str, matches(_HTTP, "must be an http or https URL", longest=2000)]
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
