"""From the bundles of a task run to the catalog: outputs are written, unknown inputs get a placeholder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from waybill.clock import utc_now
from waybill.errors import AssetRefused
from waybill.ids import derived_uuid
from waybill.model.asset import merged, placeholder
from waybill.model.lock import execution_owner
from waybill.store.catalog import Writer
from waybill.threads import side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from waybill.model.asset import Asset, AssetRef, DeclaredAsset
    from waybill.model.report import Bundle, TaskRunReport
    from waybill.store.catalog import AssetStore, Change, StoredAsset
    from waybill.store.namespaces import NamespaceRules

CREATED, UPDATED = "created", "updated"

_MANY = 10
"""From so many new assets on, their rows of the index are put in batches."""


@dataclass(slots=True)
class AssetChanges:
    """What a task run did to the catalog.

    Attributes:
        done: `created` or `updated` by the id of each asset that was written.
        failed: the reason by the id of each asset that was refused.
    """

    done: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def ids(self, change: str) -> list[str]:
        """Return the assets that were `created` or `updated`."""
        return [asset_id for asset_id, done in self.done.items() if done == change]


class AssetRecorder:
    """Writes what one task run declares.

    Args:
        report: the task run.
        assets: where to write.
        rules: the settings of namespaces; what they forbid is refused like a locked asset.
    """

    def __init__(
        self, report: TaskRunReport, assets: AssetStore, rules: NamespaceRules, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._flow_namespace = report.namespace
        self._writes_outputs = report.state.writes_outputs
        self._writer = Writer(execution_owner(report.execution_id), run=derived_uuid(*report.identity))
        self._assets = assets
        self._rules = rules
        self._clock = clock

    def write(self, bundles: Sequence[Bundle], done: Mapping[str, str]) -> AssetChanges:
        """Write the outputs, and placeholders for unknown inputs. One that is refused does not stop the others.

        Args:
            bundles: those of the run's bundles that count.
            done: what became of the assets that an earlier try of the report has written; they are left alone now,
                for another run may have changed them since.
        """
        outputs = _outputs(bundles) if self._writes_outputs else {}
        inputs = {ref.id: ref for bundle in bundles for ref in bundle.inputs if ref.id not in outputs}
        stored = self._assets.load_many([*outputs, *inputs])
        unknown = (ref for asset_id, ref in inputs.items() if self._is_unknown(stored.get(asset_id)))
        changes = {asset_id: self._output(declared) for asset_id, declared in outputs.items()}
        changes |= {ref.id: self._placeholder(ref) for ref in unknown}
        self._rules.load(_namespaces(bundles, stored))
        todo = [asset_id for asset_id in changes if asset_id not in done]
        new = self._index_new([(asset_id, changes[asset_id]) for asset_id in todo if asset_id not in stored])
        results = side_by_side(
            lambda asset_id: self._try(asset_id, stored.get(asset_id), changes[asset_id], indexed=asset_id in new), todo
        )
        found = {asset_id: (change, "") for asset_id, change in done.items()} | dict(zip(todo, results, strict=True))
        ordered = [(asset_id, *found[asset_id]) for asset_id in (*outputs, *inputs) if asset_id in found]
        return AssetChanges(
            done={asset_id: change for asset_id, change, _ in ordered if change},
            failed={asset_id: reason for asset_id, _, reason in ordered if reason},
        )

    def _index_new(self, changes: Sequence[tuple[str, Change]]) -> set[str]:
        """Put the rows of the index for assets that do not exist yet, together; return for which that was done."""
        if len(changes) < _MANY:
            return set()
        assets: list[Asset] = []
        for _, change in changes:
            try:
                asset = change(None)
            except AssetRefused:
                continue
            if asset is not None:
                assets.append(asset)
        self._assets.index.add_new(assets)
        return {asset.id for asset in assets}

    def _try(self, asset_id: str, stored: StoredAsset | None, change: Change, *, indexed: bool) -> tuple[str, str]:
        """Write an asset; return what became of it, or the reason why nothing did."""
        try:
            written = self._assets.write(asset_id, stored, change, self._writer, indexed=indexed)
        except AssetRefused as refusal:
            return "", str(refusal)
        if written is None:
            return "", ""
        return CREATED if written.created else UPDATED, ""

    def _is_unknown(self, stored: StoredAsset | None) -> bool:
        """Whether an input needs a placeholder, or got one from an earlier try of this report."""
        return stored is None or stored.asset is None or stored.writer == self._writer.run

    def _output(self, declarations: Sequence[DeclaredAsset]) -> Change:
        def change(asset: Asset | None) -> Asset | None:
            now = self._clock()
            for declared in declarations:
                self._rules.check_flow(self._flow_namespace, asset.namespace if asset else None, declared.namespace)
                asset = merged(asset, declared, now)
            return asset

        return change

    def _placeholder(self, ref: AssetRef) -> Change:
        def change(asset: Asset | None) -> Asset | None:
            if asset is not None:
                return None
            self._rules.check_flow(self._flow_namespace, ref.namespace)
            return placeholder(ref, self._flow_namespace, self._clock())

        return change


def _outputs(bundles: Sequence[Bundle]) -> dict[str, list[DeclaredAsset]]:
    """Gather the declarations of each output, which a plugin and a user may both have made."""
    declarations: dict[str, list[DeclaredAsset]] = {}
    for bundle in bundles:
        for output in bundle.outputs:
            declarations.setdefault(output.id, []).append(output)
    return declarations


def _namespaces(bundles: Sequence[Bundle], stored: Mapping[str, StoredAsset]) -> Iterator[str | None]:
    for bundle in bundles:
        yield from (ref.namespace for ref in bundle.inputs)
        yield from (declared.namespace for declared in bundle.outputs)
    yield from (known.asset.namespace for known in stored.values() if known.asset)
