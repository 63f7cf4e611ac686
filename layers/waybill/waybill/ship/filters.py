"""Which events a task ships, and which of their assets (DESIGN 4). Filters never influence the position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waybill.model.asset import Asset
    from waybill.model.event import LineageEvent
    from waybill.model.flow import AssetShipper


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a task: on the event by exact match, on each asset as it is now."""

    flow_namespace: str | None = None
    flow_id: str | None = None
    task_id: str | None = None
    asset_namespace: str | None = None
    asset_types: frozenset[str] | None = None

    @classmethod
    def of(cls, task: AssetShipper) -> Filters:
        """Return the filters that a task names."""
        types = None if task.asset_types is None else frozenset(task.asset_types)
        return cls(task.flow_namespace, task.flow_id, task.task_id, task.asset_namespace, types)

    @property
    def on_assets(self) -> bool:
        """Whether an event must keep an asset to be shipped."""
        return self.asset_namespace is not None or self.asset_types is not None

    def takes(self, event: LineageEvent) -> bool:
        """Tell whether the event's flow and task are asked for."""
        return (
            self.flow_namespace in (None, event.namespace)
            and self.flow_id in (None, event.flow_id)
            and self.task_id in (None, event.task_id)
        )

    def keeps(self, asset: Asset) -> bool:
        """Tell whether an asset stays in its event."""
        return self.asset_namespace in (None, asset.namespace) and (
            self.asset_types is None or asset.type in self.asset_types
        )
