"""What an item under a task's key must be to count as its state, and the errors that name one that does not."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from waybill.errors import InvalidOffset

if TYPE_CHECKING:
    from collections.abc import Mapping

_TYPES = {"generation": "S", "fence": "N", "owner": "S", "until": "S", "flow": "S", "task": "S"}


def is_state(item: Mapping[str, Any]) -> bool:
    """Tell whether the attributes of an item are those of a state, as far as it has them."""
    return all(kind in item.get(name, {kind: None}) for name, kind in _TYPES.items()) and (
        "until" not in item or moment(item, "until") is not None
    )


def text(item: Mapping[str, Any], name: str) -> str | None:
    """Return an attribute that is a text, or None."""
    value: str | None = item.get(name, {}).get("S")
    return value


def moment(item: Mapping[str, Any], name: str) -> datetime | None:
    """Return an attribute that is an instant, or None; one without a zone is none."""
    try:
        value = datetime.fromisoformat(text(item, name) or "")
    except ValueError:
        return None
    return value if value.tzinfo else None


def no_state(namespace: str, key: str) -> InvalidOffset:
    """Return the error that what stands under a key is no state."""
    return InvalidOffset(f"{namespace} {key}: holds no offset; delete it to start again from lookbackPeriod")


def no_position(name: str) -> InvalidOffset:
    """Return the error that what stands under a name is no position."""
    return InvalidOffset(f"{name}: holds no position; delete it to start again from lookbackPeriod")
