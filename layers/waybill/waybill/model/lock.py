"""A lock on an asset: while it holds, its owner alone may write (`kestra.md` 1.8, 6.8)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import ConfigDict

from waybill.clock import iso
from waybill.model.fields import Document, Instant

if TYPE_CHECKING:
    from datetime import datetime

DEFAULT_LOCK = timedelta(hours=1)
LONGEST_LOCK = timedelta(days=7)


def execution_owner(execution_id: str) -> str:
    """Name an execution as an owner of locks."""
    return f"EXECUTION#{execution_id}"


def user_owner(arn: str) -> str:
    """Name a caller of the API as an owner of locks."""
    return f"USER#{arn}"


class Lock(Document):
    """Who holds an asset, and until when.

    Attributes:
        username: the ARN of the caller that took the lock.
        execution_id: the execution it was taken for; without one the caller itself is the owner.
    """

    model_config = ConfigDict(extra="ignore")

    locked_until: Instant
    acquired_at: Instant
    username: str
    execution_id: str | None = None
    flow_id: str | None = None
    flow_namespace: str | None = None

    @property
    def owner(self) -> str:
        """The owner's name."""
        return execution_owner(self.execution_id) if self.execution_id else user_owner(self.username)

    def keeps_out(self, owner: str, now: datetime) -> bool:
        """Tell whether somebody may not write because of this lock."""
        return self.locked_until > now and self.owner != owner

    def reason(self, asset_id: str) -> str:
        """Say who holds the asset until when."""
        holder = f"execution {self.execution_id}" if self.execution_id else self.username
        return f"{asset_id} is locked by {holder} until {iso(self.locked_until)}"
