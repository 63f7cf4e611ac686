"""Reads secrets by their references; nothing here ever writes one down."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from waybill.errors import ExporterStopped

if TYPE_CHECKING:
    from waybill.export.openlineage.auth_config import SecretRef

_KEPT = 300
"""Seconds for which a secret is kept before it is read again."""


def read_secret(ref: SecretRef, *, fresh: bool = False) -> str:
    """Return the secret that a reference names.

    Args:
        ref: to Secrets Manager or to an SSM parameter.
        fresh: read it anew although it is kept.

    Raises:
        ExporterStopped: it does not exist, may not be read, or lacks the field.
    """
    from aws_lambda_powertools.utilities import parameters
    from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError
    from botocore.exceptions import BotoCoreError

    try:
        if ref.secret is not None:
            value = parameters.get_secret(ref.secret, max_age=_KEPT, force_fetch=fresh)
        else:
            name = str(ref.parameter)
            value = parameters.get_parameter(name, decrypt=True, max_age=_KEPT, force_fetch=fresh)
    except (GetParameterError, BotoCoreError) as error:
        raise ExporterStopped(f"{ref} cannot be read: {error}") from error
    text = _text(ref, value)
    return (text if ref.field is None else _field(ref, text)).strip()


def _text(ref: SecretRef, value: object) -> str:
    """Return a secret as text: Secrets Manager gives what was put as SecretBinary as bytes."""
    try:
        return value.decode() if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError:
        raise ExporterStopped(f"{ref} holds bytes that are no text") from None


def _field(ref: SecretRef, text: str) -> str:
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    value = document.get(ref.field) if isinstance(document, dict) else None
    if not isinstance(value, str):
        raise ExporterStopped(f"{ref} is no JSON object with a text under {ref.field!r}")
    return value


def fits_a_header(secret: str) -> bool:
    """Whether a secret can be said in a header."""
    return bool(secret) and secret.isascii() and secret.isprintable()
