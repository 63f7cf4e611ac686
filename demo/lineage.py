"""The lineage that some lineage events say: which asset is made of which, by what, and how that ended last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class Node:
    """An asset in the lineage.

    Attributes:
        upstream: the ids of the assets it is made of, in the order of their first mention.
        job: `<flowId>.<taskId>` of the run that wrote it last; None for a source.
        state: how that run ended.
    """

    upstream: list[str] = field(default_factory=list)
    job: str | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Lineage:
    """Assets by id, and those that nothing else is made of."""

    nodes: dict[str, Node]
    products: tuple[str, ...]


def lineage_of(events: Iterable[dict[str, Any]]) -> Lineage:
    """Build the lineage of lineage events (as a file exporter writes them), in the order of their coming."""
    nodes: dict[str, Node] = {}
    read: set[str] = set()
    for event in events:
        inputs = [asset["id"] for asset in event["inputs"]]
        for asset in inputs:
            nodes.setdefault(asset, Node())
        for output in event["outputs"]:
            node = nodes.setdefault(output["id"], Node())
            node.upstream += [asset for asset in inputs if asset not in node.upstream and asset != output["id"]]
            node.job, node.state = f"{event['flowId']}.{event['taskId']}", event["state"]
            read.update(node.upstream)
    return Lineage(nodes, tuple(asset for asset in nodes if asset not in read))
