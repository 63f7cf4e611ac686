"""What the catalog API works with: the stores of the stack, and one request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from waybill.catalog.caller import Caller
from waybill.catalog.changes import AssetChanger
from waybill.catalog.filters import Condition, parse_filters
from waybill.catalog.paging import LARGEST_PAGE, paging_of
from waybill.catalog.runs import Runs
from waybill.errors import AssetNotFound, InvalidRequest
from waybill.faults import unknown_property
from waybill.store.aws import client
from waybill.store.catalog import AssetStore
from waybill.store.history import History
from waybill.store.locks import LockStore
from waybill.store.log_reader import LogReader
from waybill.store.namespaces import NamespaceRules, NamespaceStore
from waybill.store.objects import Objects
from waybill.store.shards import Shards
from waybill.store.usages import UsageStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from waybill.catalog.filters import Kind
    from waybill.catalog.paging import Paging
    from waybill.settings import Settings
    from waybill.store.catalog import StoredAsset

ANONYMOUS = "anonymous"
"""The caller where nobody asks for signatures, as emulators do."""

_DEFAULT_SIZE = 10


@dataclass(frozen=True, slots=True)
class Services:
    """The stores of the stack.

    Attributes:
        keep: how long the log keeps an event.
    """

    assets: AssetStore
    usages: UsageStore
    locks: LockStore
    namespaces: NamespaceStore
    reader: LogReader
    runs: Runs
    keep: timedelta


def services_of(settings: Settings) -> Services:
    """Return the stores of a stack."""
    dynamodb = client("dynamodb")
    keep = timedelta(days=settings.retention_days)
    objects = Objects(client("s3"), settings.lineage_bucket)
    usages = UsageStore(dynamodb, settings.catalog_table, keep)
    reader = LogReader(dynamodb, settings.lineage_table, objects)
    shards = Shards(dynamodb, settings.lineage_table, settings.log_shards)
    history = History(dynamodb, settings.lineage_table, shards, usages.hours, objects)
    return Services(
        assets=AssetStore(dynamodb, settings.catalog_table),
        usages=usages,
        locks=LockStore(dynamodb, settings.catalog_table),
        namespaces=NamespaceStore(dynamodb, settings.key_value_table),
        reader=reader,
        runs=Runs(usages, reader, history, keep),
        keep=keep,
    )


class Request:
    """One request: who asks, and what for.

    Args:
        services: the stores.
        arn: of the caller.
        query: the query string, undecoded.
    """

    def __init__(self, services: Services, arn: str, query: str) -> None:
        self.services = services
        self.caller = Caller(arn, NamespaceRules(services.namespaces))
        self.changer = AssetChanger(services.assets, self.caller, services.keep)
        self.pairs = parse_qsl(query, keep_blank_values=True)

    def visible(self, asset_id: str, *, deleted: bool = False) -> StoredAsset:
        """Return an asset that the caller may see.

        Raises:
            AssetNotFound: there is none.
        """
        stored = self.services.assets.load(asset_id)
        asset = stored.asset if stored else None
        if stored is None or asset is None or (asset.deleted and not deleted) or not self.caller.reads(asset.namespace):
            raise AssetNotFound(f"there is no asset {asset_id}")
        return stored

    def conditions(self, fields: Mapping[str, Kind], others: Iterable[str] = ()) -> list[Condition]:
        """Return the filters.

        Args:
            fields: what can be filtered by.
            others: the parameters that the route takes besides.

        Raises:
            InvalidRequest: one line for each parameter that cannot be read or is unknown.
        """
        known = ("filters[field][OPERATOR]", *others)
        faults = [
            f"{name}: {unknown_property(name, known)}"
            for name, _ in self.pairs
            if name not in others and not name.startswith(("filters", "X-Amz-"))
        ]
        try:
            conditions = parse_filters(self.pairs, fields)
        except InvalidRequest as error:
            raise InvalidRequest([*faults, *error.faults]) from None
        if faults:
            raise InvalidRequest(faults)
        return conditions

    def only_visible(self, conditions: Sequence[Condition]) -> list[Condition]:
        """Return filters without the assets that the caller may not see, so that nobody learns of their runs."""
        named = {text for condition in conditions if condition.field == "assetId" for text in condition.texts or ()}
        known = self.services.assets.get_many(named)
        hidden = [asset.id for asset in known.values() if not self.caller.reads(asset.namespace)]
        return [*conditions, Condition("assetId", "NOT_IN", tuple(hidden))] if hidden else list(conditions)

    def paging(self, sortable: Iterable[str], own_order: str) -> Paging:
        """Return which part of a list is wanted.

        Raises:
            InvalidRequest: one line for each parameter that cannot be used.
        """
        given = dict(self.pairs)
        faults = [
            f"{name}: must be a whole number from 1 to {most}"
            for name, most in (("page", 1_000_000), ("size", LARGEST_PAGE))
            if name in given and not _is_number(given[name], most)
        ]
        if faults:
            raise InvalidRequest(faults)
        return paging_of(
            page=int(given["page"]) if "page" in given else None,
            size=int(given.get("size", _DEFAULT_SIZE)),
            sort=given.get("sort"),
            token=given.get("nextToken"),
            sortable=sortable,
            own_order=own_order,
        )


def _is_number(text: str, most: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and 1 <= int(text) <= most
