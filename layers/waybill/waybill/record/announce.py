"""Tells callers that came by queue or bus that the failure behaviour changed the state of their task run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from waybill.errors import StoreBusy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from waybill.model.report import State, TaskRunReport

SOURCE = "waybill"
DETAIL_TYPE = "Task State Changed"

_MOST_REASONS = 100


class StateChanges:
    """Puts `Task State Changed` on the bus."""

    def __init__(self, client: Any, bus: str) -> None:
        self._client = client
        self._bus = bus

    def announce(self, report: TaskRunReport, state: State, failed: Sequence[dict[str, str]]) -> None:
        """Announce the state of a task run; of many reasons, the first hundred.

        Raises:
            StoreBusy: the bus did not take it.
        """
        detail = {
            "namespace": report.namespace,
            "flowId": report.flow_id,
            "executionId": report.execution_id,
            "taskId": report.task_id,
            "taskRunId": report.task_run_id,
            "reportedState": report.state.value,
            "state": state.value,
            "failed": failed[:_MOST_REASONS],
        }
        entry = {"Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": orjson.dumps(detail).decode()}
        answer = self._client.put_events(Entries=[entry | {"EventBusName": self._bus}])
        if answer["FailedEntryCount"]:
            raise StoreBusy(f"the bus {self._bus} did not take the event: {answer['Entries'][0].get('ErrorMessage')}")
