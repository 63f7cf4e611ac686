"""Field types that several documents share, each with a message that says what to do."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel

from waybill.clock import iso

ASSET_ID = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._:-]*")
NAMESPACE = re.compile(r"[a-z0-9][a-z0-9._-]*")
EXPORTER_ID = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]*")
KEY = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]*")
LONGEST_ID = 150

_DURATION = re.compile(
    r"P(?=\d|T\d)(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


class Document(BaseModel):
    """A JSON object in camelCase that takes no property it does not know.

    Its validation is built when it is first used, for a function imports more documents than it meets.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        str_strip_whitespace=False,
        defer_build=True,
    )


def matches(pattern: re.Pattern[str], rule: str, longest: int = LONGEST_ID) -> AfterValidator:
    """Validate by full match and length (the reference product does both)."""

    def check(value: str) -> str:
        if not value:
            raise ValueError("must not be empty")
        if len(value) > longest:
            raise ValueError(f"is {len(value)} characters long; the most is {longest}")
        if not pattern.fullmatch(value):
            raise ValueError(rule)
        return value

    return AfterValidator(check)


def _described(pattern: re.Pattern[str], longest: int = LONGEST_ID) -> WithJsonSchema:
    """Say in the OpenAPI document what `matches` checks."""
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern.pattern}$", "maxLength": longest})


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


def parse_instant(value: Any) -> datetime:
    """Read an ISO 8601 time with zone.

    Raises:
        ValueError: saying how a time is written.
    """
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, str) and "T" in value:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("must be an ISO 8601 time such as 2026-12-01T09:00:00Z") from None
    else:
        raise ValueError("must be an ISO 8601 time such as 2026-12-01T09:00:00Z")
    if moment.tzinfo is None:
        raise ValueError("has no time zone; add Z or an offset such as +01:00")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("lies outside the years 1 to 9999 of UTC") from None


def parse_duration(value: Any) -> timedelta:
    """Read an ISO 8601 duration of weeks, days, hours, minutes and seconds.

    Raises:
        ValueError: saying how a duration is written.
    """
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("must be an ISO 8601 duration such as P7D or PT12H")
    try:
        return timedelta(**{unit: float(amount) for unit, amount in match.groupdict(default="0").items()})
    except OverflowError:
        raise ValueError("is longer than a duration may be") from None


AssetId = Annotated[
    str,
    matches(ASSET_ID, "must start with a letter or digit and hold only letters, digits and . _ : -"),
    _described(ASSET_ID),
]
Namespace = Annotated[
    str,
    matches(
        NAMESPACE, "must start with a lower-case letter or digit and hold only lower-case letters, digits and . _ -"
    ),
    _described(NAMESPACE),
]
ExporterId = Annotated[
    str, matches(EXPORTER_ID, "must start with a letter or digit and hold only letters, digits, _ and -")
]
KeyPart = Annotated[str, matches(KEY, "must start with a letter or digit and hold only letters, digits and . _ -")]
Text = Annotated[str, AfterValidator(_not_blank)]
Instant = Annotated[datetime, BeforeValidator(parse_instant), PlainSerializer(iso, when_used="json")]
Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
