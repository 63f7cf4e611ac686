"""The properties of an OpenLineageAssetExporter (DESIGN 4)."""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, StrictBool, StrictInt, ValidationInfo, field_validator

from waybill.export.openlineage.addresses import PATH, url_of
from waybill.export.openlineage.auth_config import (
    AUTH_MODELS,
    SECRETS,
    USERNAME,
    AuthConfig,
    NoAuth,
    SecretRef,
    header_fault,
)
from waybill.export.openlineage.backends import BACKENDS, Backend
from waybill.model.fields import Document, ExporterId, Text, matches

EventType = Literal["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]
BackendName = Literal["marquez", "data-rentgen", "datahub", "openmetadata", "datazone", "snowflake", "atlan", "generic"]
Seconds = Annotated[float, Field(gt=0, le=3600, strict=True)]

_DOMAIN_ID = re.compile(r"dzd[-_][a-zA-Z0-9_-]{1,36}")


def _regular_expression(value: str) -> str:
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return value


class DatasetMapping(Document):
    """Which metadata keys give the namespace and the name of an asset's dataset."""

    namespace: Text | None = None
    name: Text | None = None


class NamespaceRewrite(Document):
    r"""A dataset namespace that `pattern` matches whole is sent as `replacement` (`\1` is its first group)."""

    pattern: Annotated[str, AfterValidator(_regular_expression)]
    replacement: Text

    @field_validator("replacement")
    @classmethod
    def _fits_the_pattern(cls, value: str, info: ValidationInfo) -> str:
        if "pattern" in info.data:
            try:
                # What stands after the last bar matches the empty text, whatever the pattern is.
                re.sub(f"{info.data['pattern']}\n|", value, "")
            except (re.error, IndexError) as error:
                raise ValueError(f"does not fit the pattern: {error}") from None
        return value


class Timeout(Document):
    """How long to wait, in seconds.

    Attributes:
        first_byte: from the end of the request to the first byte of the answer, and between any two parts of it.
        give_up: for how long nothing may succeed before the exporter stops.
    """

    connect: Seconds = 5
    first_byte: Seconds = 60
    total: Seconds = 120
    give_up: Seconds = 60


class Compression(Document):
    """Whether bodies of more than `over` bytes are compressed."""

    type: Literal["none", "gzip"] = "none"
    over: Annotated[StrictInt, Field(ge=0)] = 1024


class Tls(Document):
    """Whom to trust: `ca` is a bundle of certificates, PEM, kept as a secret or parameter, or a file of a layer."""

    ca: SecretRef | None = None
    ca_file: Text | None = None

    @field_validator("ca_file")
    @classmethod
    def _one_place(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("ca") is not None:
            raise ValueError("stands beside ca; leave one of them out")
        return value


class Proxy(Document):
    """An HTTP proxy that requests go through."""

    uri: Annotated[str, url_of("proxy.username and proxy.password")]
    username: Annotated[Text, USERNAME] | None = None
    password: SecretRef | None = None

    @field_validator("password")
    @classmethod
    def _of_somebody(cls, value: SecretRef | None, info: ValidationInfo) -> SecretRef | None:
        if value is not None and info.data.get("username", "") is None:
            raise ValueError("is of no use without username")
        return value


class OpenLineageAssetExporter(Document):
    """Posts each lineage event as one OpenLineage run event. What is None is as the backend's preset says."""

    id: ExporterId
    type: Literal["OpenLineageAssetExporter"]
    backend: BackendName = "marquez"
    domain_id: (
        Annotated[str, matches(_DOMAIN_ID, "must be the id of a DataZone domain such as dzd_4bfhw3w7qk5xqd")] | None
    ) = None
    uri: Annotated[Annotated[str, url_of("auth")] | None, Field(validate_default=True)] = None
    mappings: dict[str, DatasetMapping] = Field(default_factory=dict)
    auth: AuthConfig = NoAuth()
    timeout: Timeout = Timeout()
    endpoint: Annotated[Text, PATH] | None = None
    headers: dict[str, Text] = Field(default_factory=dict)
    compression: Compression = Compression()
    max_in_flight: Annotated[StrictInt, Field(ge=1, le=256)] = 10
    event_types: Annotated[tuple[EventType, ...], Field(min_length=1)] | None = None
    default_namespace: Text = "default"
    on_rejected: Literal["DEAD_LETTER", "FAIL"] = "DEAD_LETTER"
    start_events: StrictBool = False
    parent_run: StrictBool | None = None
    run_ids: Literal["keep", "uuid7"] | None = None
    verify_unknown: StrictBool = False
    tls: Tls = Tls()
    proxy: Proxy | None = None
    namespace_rewrites: tuple[NamespaceRewrite, ...] = ()
    max_event_bytes: Annotated[StrictInt, Field(ge=1024)] | None = None
    batch: Annotated[StrictInt, Field(ge=1, le=1000)] = 1

    @field_validator("uri")
    @classmethod
    def _uri_where_needed(cls, value: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("backend") != "datazone":
            if value is None:
                raise ValueError("is required")
        elif info.data.get("domain_id", "") is None:
            raise ValueError("backend datazone needs domainId, the id of its domain, instead")
        return value

    @field_validator("domain_id")
    @classmethod
    def _domain_of_datazone(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("backend", "datazone") != "datazone":
            raise ValueError("is only for backend datazone; leave it out")
        return value

    @field_validator("compression", mode="before")
    @classmethod
    def _compression_by_name(cls, value: object) -> object:
        return {"type": value} if isinstance(value, str) else value

    @field_validator("proxy", mode="before")
    @classmethod
    def _proxy_by_uri(cls, value: object) -> object:
        return {"uri": value} if isinstance(value, str) else value

    @field_validator("headers")
    @classmethod
    def _usable_headers(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if fault := header_fault(name):
                raise ValueError(fault)
            if name.lower() == "authorization":
                raise ValueError(f"{name} is made of auth; say it there")
            if not text.isprintable():
                raise ValueError(f"the value of {name} holds a character that no header may hold")
        return value

    @field_validator("verify_unknown")
    @classmethod
    def _verifiable(cls, value: bool, info: ValidationInfo) -> bool:  # noqa: FBT001 - pydantic calls it
        if value and info.data.get("backend") != "marquez":
            raise ValueError("is only for backend marquez, which can be asked for a run")
        return value

    @field_validator("batch")
    @classmethod
    def _batchable(cls, value: int, info: ValidationInfo) -> int:
        backend = BACKENDS.get(str(info.data.get("backend")))
        if value > 1 and backend and backend.batch_endpoint is None:
            raise ValueError(f"backend {backend.name} takes one event at a time; leave it out")
        return value

    @property
    def preset(self) -> Backend:
        """What is special about the backend."""
        return BACKENDS[self.backend]

    @property
    def url(self) -> str:
        """Where events are posted: a path in `uri` is kept."""
        return joined(self.uri or "", self.endpoint or self.preset.endpoint)


def joined(uri: str, endpoint: str) -> str:
    """Add a path to a base URL without losing the one that it has."""
    return f"{uri.rstrip('/')}/{endpoint.lstrip('/')}"


def _kind(model: type[Document]) -> str:
    (kind,) = get_args(model.model_fields["type"].annotation)
    return str(kind)


NESTED_MODELS: dict[str, tuple[type[Document], ...]] = {
    **{f"auth:{_kind(model)}": (model,) for model in AUTH_MODELS},
    **{f"auth.{name}": (SecretRef,) for name in SECRETS},
    "mappings.*": (DatasetMapping,),
    "timeout": (Timeout,),
    "compression": (Compression,),
    "tls": (Tls,),
    "tls.ca": (SecretRef,),
    "proxy": (Proxy,),
    "proxy.password": (SecretRef,),
    "namespaceRewrites[]": (NamespaceRewrite,),
}
"""The documents inside an exporter's, by their path (`:` and the type where there are several, `*` for any key)."""
