"""What becomes of a task run whose assets could not all be written (`kestra.md` 3.2)."""

from __future__ import annotations

from waybill.model.report import AssetFailureBehavior, State


def state_after(state: State, behavior: AssetFailureBehavior) -> State:
    """Return the state of a run after one or more of its assets failed.

    A run that did not succeed stays as it is, and a state never gets better.
    """
    if not state.writes_outputs or behavior is AssetFailureBehavior.IGNORE:
        return state
    return State.FAILED if behavior is AssetFailureBehavior.FAIL else State.WARNING
