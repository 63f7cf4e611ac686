"""What runs did, newest first: lineage events and usages, found by asset where one is named, else in the log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from waybill.catalog.filters import Kind
from waybill.clock import utc_now
from waybill.ids import uuid7_floor
from waybill.model.fields import parse_instant
from waybill.model.usage import usages_of
from waybill.threads import side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from waybill.catalog.filters import Condition
    from waybill.model.usage import Usage
    from waybill.store.history import History
    from waybill.store.log_reader import LogItem, LogReader
    from waybill.store.usages import UsageStore

_RUN = {
    "namespace": Kind.TEXT,
    "flowId": Kind.TEXT,
    "flowRevision": Kind.NUMBER,
    "executionId": Kind.TEXT,
    "taskId": Kind.TEXT,
    "taskRunId": Kind.TEXT,
    "assetId": Kind.TEXT,
    "created": Kind.TIME,
    "q": Kind.WORDS,
}

EVENT_FIELDS = _RUN | {"state": Kind.TEXT}
"""What lineage events can be filtered by; `namespace` is the flow's, `assetId` that of any input or output."""
USAGE_FIELDS = _RUN | {"direction": Kind.TEXT}
"""What usages can be filtered by; `namespace` is the flow's, `direction` READ or WRITE."""

OWN_ORDER = "created:desc"
SORTABLE = ("created",)

_CHUNK = 50
_END = "g"
"""Sorts after every key of the log."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A lineage event or a usage; without a view, the sign that the walk got as far as `key` and found nothing.

    Attributes:
        key: newer entries have greater ones.
        view: what callers see.
        asset_ids: the assets that it names.
        row: what is deleted when it is: `(bucket, id)` of the event, or the usage.
    """

    key: str
    view: dict[str, Any] | None = None
    asset_ids: tuple[str, ...] = ()
    row: Any = None


class Runs:
    """What runs did.

    Args:
        usages: finds what used an asset.
        reader: reads single events.
        history: reads the log backwards.
        keep: how long the log keeps an event: how far back a walk without a lower bound of `created` goes.
        now: tells the present.
    """

    def __init__(
        self,
        usages: UsageStore,
        reader: LogReader,
        history: History,
        keep: timedelta,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._usages = usages
        self._reader = reader
        self._history = history
        self._keep = keep
        self._now = now

    def events(self, conditions: Sequence[Condition], before: str = "") -> Iterator[Entry]:
        """Go through lineage events, among them all that pass."""
        asset_ids = _assets(conditions)
        if asset_ids is None:
            yield from self._logged_events(conditions, before)
            return
        rows = {usage.log_key: usage.log_bucket for asset_id in asset_ids for usage in self._usages.of_asset(asset_id)}
        keys = sorted((key for key in rows if not before or key < before), reverse=True)
        for start in range(0, len(keys), _CHUNK):
            part = keys[start : start + _CHUNK]
            items = side_by_side(lambda key: self._reader.get(rows[key], key), part)
            yield from (_event_entry(rows[item.key], item) for item in items if item is not None)

    def usages(self, conditions: Sequence[Condition], before: str = "") -> Iterator[Entry]:
        """Go through usages, among them all that pass."""
        asset_ids = _assets(conditions)
        if asset_ids is None:
            yield from self._logged_usages(conditions, before)
            return
        found = [usage for asset_id in asset_ids for usage in self._usages.of_asset(asset_id)]
        entries = sorted((_usage_entry(usage) for usage in found), key=lambda entry: entry.key, reverse=True)
        yield from (entry for entry in entries if not before or entry.key < before)

    def _logged_events(self, conditions: Sequence[Condition], before: str) -> Iterator[Entry]:
        oldest, newest = self._bounds(conditions)
        for key, bucket, item in self._history.newest_first(oldest, min(newest, before or _END)):
            yield Entry(key) if item is None else _event_entry(bucket, item)

    def _logged_usages(self, conditions: Sequence[Condition], before: str) -> Iterator[Entry]:
        """The log tells which usages there should be; those deleted since are not."""
        oldest, newest = self._bounds(conditions)
        upper = before.partition("#")[0] + _END if before else _END
        for key, bucket, item in self._history.newest_first(oldest, min(newest, upper)):
            event = None if item is None else item.event()
            if event is None or isinstance(event, str):
                yield Entry(key)
                continue
            stored = self._usages.stored(usages_of(event, (bucket, key)))
            entries = sorted((_usage_entry(usage) for usage in stored), key=lambda entry: entry.key, reverse=True)
            yield from (entry for entry in entries if not before or entry.key < before)

    def _bounds(self, conditions: Iterable[Condition]) -> tuple[str, str]:
        """Return the keys between which everything lies that passes the conditions on `created`."""
        oldest, newest = self._now() - self._keep, self._now() + timedelta(minutes=1)
        for condition in conditions:
            if condition.field != "created" or condition.operator == "NOT_EQUALS":
                continue
            if not condition.operator.startswith("LESS"):
                oldest = max(oldest, condition.wanted)
            if not condition.operator.startswith("GREATER") and condition.wanted < newest:
                newest = condition.wanted + timedelta(milliseconds=1)
        return uuid7_floor(oldest), uuid7_floor(max(oldest, newest))


def value_of(entry: Entry, condition: Condition) -> Any:
    """Return what a condition looks at."""
    view = entry.view or {}
    if condition.field == "assetId":
        return list(entry.asset_ids)
    if condition.field == "q":
        texts = (view["flowId"], view["taskId"], view["executionId"], *entry.asset_ids)
        return [text.casefold() for text in texts]
    value = view.get(condition.field)
    return parse_instant(value) if condition.field == "created" else value


def _assets(conditions: Iterable[Condition]) -> tuple[str, ...] | None:
    """Return the only assets that can pass, or None."""
    named = (condition.texts for condition in conditions if condition.field == "assetId")
    return next((texts for texts in named if texts is not None), None)


def _event_entry(bucket: str, item: LogItem) -> Entry:
    event = item.event()
    if isinstance(event, str):
        return Entry(item.key)
    ids = tuple(ref.id for ref in (*event.inputs, *event.outputs))
    return Entry(item.key, event.as_json(), ids, (bucket, item.key))


def _usage_entry(usage: Usage) -> Entry:
    key = f"{usage.log_key}#{usage.direction}#{usage.asset_id}"
    return Entry(key, usage.as_json(), (usage.asset_id,), usage)
