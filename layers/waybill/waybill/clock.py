"""Time: the one clock, and its ISO 8601 form."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the present instant, in UTC."""
    return datetime.now(UTC)


def iso(moment: datetime) -> str:
    """Write an instant as ISO 8601 in UTC ending in `Z`, milliseconds always, microseconds where there are any."""
    moment = moment.astimezone(UTC)
    timespec = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    return moment.isoformat(timespec=timespec).replace("+00:00", "Z")


def from_millis(millis: int) -> datetime:
    """Return the instant that lies `millis` milliseconds after the epoch."""
    return datetime.fromtimestamp(millis // 1000, UTC).replace(microsecond=millis % 1000 * 1000)


def iso_of_millis(millis: int) -> str:
    """Write the instant that lies `millis` milliseconds after the epoch, as `iso` does."""
    return f"{datetime.fromtimestamp(millis // 1000, UTC).isoformat()[:19]}.{millis % 1000:03}Z"


def to_millis(moment: datetime) -> int:
    """Return the whole milliseconds from the epoch to an instant."""
    return int(moment.timestamp()) * 1000 + moment.microsecond // 1000
