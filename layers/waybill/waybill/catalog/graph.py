"""The graph of lineage around an asset. Edges are not stored; they follow from who used what in which run."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from waybill.threads import side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from waybill.catalog.caller import Caller
    from waybill.model.usage import Direction, Usage
    from waybill.store.catalog import AssetStore
    from waybill.store.usages import UsageStore

USED_BY, UPSERT = "USED_BY", "UPSERT"

_LARGEST_GRAPH = 40_000
"""Nodes and edges that an answer holds."""
_PART = 480
"""Assets that are looked at between two looks at the clock."""


@dataclass(slots=True)
class Graph:
    """Assets and flows, and how they hang together.

    Attributes:
        nodes: by their uid.
        edges: source, target and relation of each.
        upstream: the assets that the middle one was made of, nearest first.
        downstream: the assets that were made of the middle one, nearest first.
        complete: False when time or room ran out before the end.
    """

    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: set[tuple[str, str, str]] = field(default_factory=set)
    upstream: list[str] = field(default_factory=list)
    downstream: list[str] = field(default_factory=list)
    complete: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return the graph as callers see it, in an order of its own that does not change."""
        return {
            "nodes": [self.nodes[uid] for uid in sorted(self.nodes)],
            "edges": [
                {"source": source, "target": target, "relation": relation}
                for source, target, relation in sorted(self.edges)
            ],
            "upstream": self.upstream,
            "downstream": self.downstream,
            "complete": self.complete,
        }

    @property
    def is_full(self) -> bool:
        """Whether an answer would hold no more."""
        return len(self.nodes) + len(self.edges) >= _LARGEST_GRAPH


class LineageGraph:
    """Makes graphs of what a caller may see; it leads neither to nor through anything else.

    Args:
        seconds: after which a graph is given as far as it got.
    """

    def __init__(
        self,
        assets: AssetStore,
        usages: UsageStore,
        caller: Caller,
        seconds: float = 20.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._assets = assets
        self._usages = usages
        self._caller = caller
        self._end = clock() + seconds
        self._clock = clock
        self._neighbours: dict[tuple[str, str, Direction], Sequence[str]] = {}

    def around(self, asset_id: str, *, destination_only: bool, expand_all: bool) -> Graph:
        """Return the graph around an asset that the caller may see.

        Args:
            asset_id: the asset in the middle.
            destination_only: leave out what lies upstream.
            expand_all: go all the way, not one step.
        """
        graph = Graph()
        self._visible(graph, [asset_id])
        graph.downstream = self._walk(graph, asset_id, "R", expand_all=expand_all)
        if not destination_only:
            graph.upstream = self._walk(graph, asset_id, "W", expand_all=expand_all)
        return graph

    def _walk(self, graph: Graph, start: str, direction: Direction, *, expand_all: bool) -> list[str]:
        """Go from asset to asset, in breadth, each once; so a cycle ends where it began."""
        reached: list[str] = []
        seen, frontier = {start}, [start]
        while frontier:
            part, frontier = frontier[:_PART], frontier[_PART:]
            if graph.is_full or self._clock() > self._end:
                graph.complete = False
                break
            new = [asset_id for asset_id in self._step(graph, part, direction) if asset_id not in seen]
            seen.update(new)
            reached += new
            if expand_all:
                frontier += new
        return reached

    def _step(self, graph: Graph, assets: Sequence[str], direction: Direction) -> list[str]:
        """Add what lies one step behind some assets; return the visible assets there, each once."""
        found = side_by_side(lambda asset_id: self._around(asset_id, direction), assets)
        targets = dict.fromkeys(other for steps in found for _, others in steps for other in others)
        visible = self._visible(graph, targets)
        for asset_id, steps in zip(assets, found, strict=True):
            for usage, others in steps:
                self._connect(graph, usage, asset_id, [other for other in others if other in visible])
        return [target for target in targets if target in visible]

    def _around(self, asset_id: str, direction: Direction) -> list[tuple[Usage, Sequence[str]]]:
        return [(usage, self._others(usage)) for usage in self._usages.one_of_each_shape(asset_id, direction)]

    def _others(self, usage: Usage) -> Sequence[str]:
        key = (usage.job, usage.shape, usage.direction)
        if key not in self._neighbours:
            self._neighbours[key] = self._usages.neighbours(usage)
        return self._neighbours[key]

    def _connect(self, graph: Graph, usage: Usage, asset_id: str, others: Sequence[str]) -> None:
        asset = _asset_uid(asset_id)
        if usage.direction == "R":
            graph.edges.update((asset, _asset_uid(other), USED_BY) for other in others)
            written = [_asset_uid(other) for other in others]
        else:
            graph.edges.update((_asset_uid(other), asset, USED_BY) for other in others)
            written = [asset]
        flow = self._flow(graph, usage)
        if flow is None:
            return
        graph.edges.update((flow, target, UPSERT) for target in written)
        if not written:
            graph.edges.add((asset, flow, USED_BY))

    def _flow(self, graph: Graph, usage: Usage) -> str | None:
        """Add the flow of a usage, where the caller may see it."""
        namespace, flow_id = usage.details["namespace"], usage.details["flowId"]
        if not self._caller.reads(namespace):
            return None
        uid = f"flow/{namespace}/{flow_id}"
        graph.nodes[uid] = {"uid": uid, "namespace": namespace, "id": flow_id, "type": "FLOW"}
        return uid

    def _visible(self, graph: Graph, ids: Iterable[str]) -> set[str]:
        """Add the living assets that the caller may see; return all those among the ids."""
        unknown = [asset_id for asset_id in ids if _asset_uid(asset_id) not in graph.nodes]
        found = self._assets.get_many(unknown)
        self._caller.prepare(asset.namespace for asset in found.values())
        for asset in found.values():
            if not asset.deleted and self._caller.reads(asset.namespace):
                uid = _asset_uid(asset.id)
                graph.nodes[uid] = {"uid": uid, "namespace": asset.namespace, "id": asset.id, "type": "ASSET"}
        return {asset_id for asset_id in ids if _asset_uid(asset_id) in graph.nodes}


def _asset_uid(asset_id: str) -> str:
    return f"asset/{asset_id}"
