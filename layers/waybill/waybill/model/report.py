"""The task run report: what a job hands in when it ends (DESIGN 3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pydantic import Field, StrictBool, StrictInt, TypeAdapter, ValidationError

from waybill.errors import InvalidReport
from waybill.faults import fault_lines, unstorable
from waybill.model.asset import AssetRef, DeclaredAsset
from waybill.model.fields import Document, Instant, KeyPart, Namespace, Text

if TYPE_CHECKING:
    from collections.abc import Sequence


class State(StrEnum):
    """How a task run ended. SKIPPED records nothing."""

    SUCCESS = "SUCCESS"
    WARNING = "WARNING"
    FAILED = "FAILED"
    KILLED = "KILLED"
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"

    @property
    def writes_outputs(self) -> bool:
        """Whether a run that ended so has written its outputs."""
        return self in (State.SUCCESS, State.WARNING)


class AssetFailureBehavior(StrEnum):
    """What becomes of a task whose assets could not all be written."""

    WARN = "WARN"
    FAIL = "FAIL"
    IGNORE = "IGNORE"


class RunError(Document):
    """Why a task run failed."""

    message: str
    stack_trace: str | None = None


class Bundle(Document):
    """What one declaration, or one emit of a plugin, read and wrote: it becomes one lineage event."""

    inputs: tuple[AssetRef, ...] = ()
    outputs: tuple[DeclaredAsset, ...] = ()


class Assets(Bundle):
    """The `assets` block of a report: its own bundle, and how to treat the rest."""

    enable_auto: StrictBool = False
    asset_failure_behavior: AssetFailureBehavior = AssetFailureBehavior.WARN


class TaskRunReport(Document):
    """A task run that ended, with what it read and wrote."""

    namespace: Namespace
    flow_id: KeyPart
    execution_id: Text
    task_id: Text
    task_run_id: Text
    flow_revision: StrictInt | None = None
    state: State
    start_date: Instant
    end_date: Instant
    execution_start_date: Instant | None = None
    error: RunError | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    kind: Text | None = None
    assets: Assets = Assets()
    emits: list[Any] = Field(default_factory=list)

    @property
    def identity(self) -> tuple[str, ...]:
        """What makes two reports the same one."""
        return (self.namespace, self.flow_id, self.execution_id, self.task_id, self.task_run_id)

    @property
    def job(self) -> str:
        """The job that ran: `<namespace>/<flowId>.<taskId>`."""
        return f"{self.namespace}/{self.flow_id}.{self.task_id}"

    @property
    def records(self) -> bool:
        """Whether anything is recorded of this run at all."""
        return self.state is not State.SKIPPED and self.kind != "TEST"


@dataclass(frozen=True, slots=True)
class Bundles:
    """The bundles of a report that count, and the faults of the emits that were left out, one line each."""

    bundles: tuple[Bundle, ...]
    faults: tuple[str, ...]


_bundle = TypeAdapter(Bundle)


def _known() -> dict[str, Sequence[str]]:
    def names(model: type[Document]) -> list[str]:
        return [field.alias or name for name, field in model.model_fields.items()]

    ref = ["id", "type", "namespace"]
    return {
        "": names(TaskRunReport), "error": names(RunError), "assets": names(Assets), "assets.inputs[]": ref,
        "emits[]": names(Bundle), "emits[].inputs[]": ref,
    }  # fmt: skip


def parse_report(document: Any) -> TaskRunReport:
    """Validate a task run report.

    Raises:
        InvalidReport: naming every fault by its path.
    """
    faults = unstorable(document)
    if faults:
        raise InvalidReport(faults)
    try:
        return TaskRunReport.model_validate(document)
    except ValidationError as error:
        raise InvalidReport(fault_lines(error, _known())) from None


def bundles_of(report: TaskRunReport) -> Bundles:
    """Return what the report declares and, with `enableAuto`, what its plugin emitted.

    A declaration or an emit that names no asset makes no bundle. A faulty emit is left out whole.
    """
    bundles = [Bundle(inputs=report.assets.inputs, outputs=report.assets.outputs)]
    faults: list[str] = []
    for position, emit in enumerate(report.emits if report.assets.enable_auto else ()):
        try:
            bundles.append(_bundle.validate_python(emit))
        except ValidationError as error:
            faults += fault_lines(error, _known(), within=("emits", position))
    return Bundles(tuple(bundle for bundle in bundles if bundle.inputs or bundle.outputs), tuple(faults))
