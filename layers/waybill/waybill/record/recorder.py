"""The use case of the recorder: one task run report becomes lineage events and changes of the catalog, once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from waybill.model.event import event_of
from waybill.model.report import bundles_of, parse_report
from waybill.model.usage import usages_of
from waybill.record.assets import CREATED, UPDATED, AssetRecorder
from waybill.record.failure import state_after
from waybill.store.namespaces import NamespaceRules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_lambda_powertools import Logger

    from waybill.model.event import LineageEvent
    from waybill.model.report import State, TaskRunReport
    from waybill.model.usage import Usage
    from waybill.record.announce import StateChanges
    from waybill.record.assets import AssetChanges
    from waybill.store.catalog import AssetStore
    from waybill.store.log import Log, Receipt
    from waybill.store.namespaces import NamespaceStore
    from waybill.store.usages import UsageStore


class Recorder:
    """Records task run reports."""

    def __init__(
        self,
        log: Log,
        assets: AssetStore,
        usages: UsageStore,
        namespaces: NamespaceStore,
        state_changes: StateChanges,
        logger: Logger,
    ) -> None:
        self._log = log
        self._assets = assets
        self._usages = usages
        self._namespaces = namespaces
        self._state_changes = state_changes
        self._logger = logger

    def record(self, document: Any) -> dict[str, Any]:
        """Record a report, or finish one that was cut short, or give the answer given before.

        Returns:
            `state`, `lineageEvents` and `assets` (DESIGN 3).

        Raises:
            InvalidReport: the report is refused; nothing was written.
            ClientError, BotoCoreError, StoreBusy, Conflict: a store does not answer; the next delivery finishes the
                report.
        """
        report = parse_report(document)
        if not report.records:
            return _answer(report.state, (), [], [], [])

        def events_of(content: dict[str, Any]) -> Sequence[LineageEvent]:
            return _events(report if content is document else parse_report(content))

        receipt = self._log.record(report.identity, document, events_of)
        if receipt.answer is not None:
            return receipt.answer
        first = report if receipt.fresh else parse_report(receipt.report)
        return self._log.complete(report.identity, self._finish(first, receipt))

    def _finish(self, report: TaskRunReport, receipt: Receipt) -> dict[str, Any]:
        """Do what comes after the log, whether for the first time or again."""
        found = bundles_of(report)
        usages = [
            usage for event, key in zip(_events(report), receipt.keys, strict=True) for usage in usages_of(event, key)
        ]
        before = [] if receipt.fresh else self._usages.stored(usages)
        recorder = AssetRecorder(report, self._assets, NamespaceRules(self._namespaces))
        changes = recorder.write(found.bundles, {usage.asset_id: usage.change for usage in before if usage.change})
        self._usages.put_all(_with_changes(usages, changes))
        failed = _failed(found.faults, changes)
        state = state_after(report.state, report.assets.asset_failure_behavior) if failed else report.state
        self._log_failed(report, failed)
        if state is not report.state:
            self._state_changes.announce(report, state, failed)
        self._logger.info(
            "recorded",
            extra=_names(report) | {"state": state.value, "lineageEvents": list(receipt.event_ids)},
        )
        return _answer(state, receipt.event_ids, changes.ids(CREATED), changes.ids(UPDATED), failed)

    def _log_failed(self, report: TaskRunReport, failed: Sequence[dict[str, str]]) -> None:
        for asset in failed:
            self._logger.warning(
                "asset not written",
                extra=_names(report) | {"assetId": asset["id"], "reason": asset["reason"]},
            )


def _names(report: TaskRunReport) -> dict[str, str]:
    """Return what log lines about a report are found by."""
    return {"job": report.job, "executionId": report.execution_id, "taskRunId": report.task_run_id}


def _events(report: TaskRunReport) -> Sequence[LineageEvent]:
    return [event_of(report, bundle, number) for number, bundle in enumerate(bundles_of(report).bundles)]


def _with_changes(usages: Sequence[Usage], changes: AssetChanges) -> list[Usage]:
    return [replace(usage, change=changes.done.get(usage.asset_id, "")) for usage in usages]


def _failed(faults: Sequence[str], changes: AssetChanges) -> list[dict[str, str]]:
    """List what failed: emits that were left out, by their place in the report, then assets that were refused."""
    emits: dict[str, list[str]] = {}
    for fault in faults:
        emits.setdefault(fault[: fault.index("]") + 1], []).append(fault)
    reasons = {emit: "; ".join(lines) for emit, lines in emits.items()} | changes.failed
    return [{"id": name, "reason": reason} for name, reason in reasons.items()]


def _answer(
    state: State,
    event_ids: Sequence[str],
    created: Sequence[str],
    updated: Sequence[str],
    failed: Sequence[dict[str, str]],
) -> dict[str, Any]:
    return {
        "state": state.value,
        "lineageEvents": list(event_ids),
        "assets": {"created": list(created), "updated": list(updated), "failed": list(failed)},
    }
