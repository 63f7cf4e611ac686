"""Asks a backend whether it is well, and whether it holds an event."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import uuid4

import orjson

from waybill.clock import iso, utc_now
from waybill.export.openlineage.facets import PRODUCER
from waybill.export.openlineage.mapping import JOB_TYPE, SCHEMA_URL, RunEvent
from waybill.export.openlineage.outcomes import Verdict, judge
from waybill.export.openlineage.runs import ENGINE
from waybill.ids import uuid7

if TYPE_CHECKING:
    from waybill.export.openlineage.config import OpenLineageAssetExporter
    from waybill.export.openlineage.sender import Sender

PROBE_NAMESPACE = "waybill"
PROBE_JOB = "waybill.probe"
_AT_LEAST_READ = 1000


def harmless_event() -> RunEvent:
    """Return an event that changes nothing but the job `waybill.probe`: a run without datasets."""
    now = utc_now()
    run = uuid7(now)
    document = {
        "eventType": "COMPLETE",
        "eventTime": iso(now),
        "run": {"runId": run, "facets": {"processing_engine": ENGINE}},
        "job": {"namespace": PROBE_NAMESPACE, "name": PROBE_JOB, "facets": {"jobType": JOB_TYPE}},
        "inputs": [],
        "outputs": [],
        "producer": PRODUCER,
        "schemaURL": SCHEMA_URL,
    }
    return RunEvent(run, "COMPLETE", run, orjson.dumps(document))


class Probe:
    """Asks one backend."""

    def __init__(self, config: OpenLineageAssetExporter, sender: Sender) -> None:
        self._sender = sender
        self._rules = config.preset.outcomes
        self._verify = config.verify_unknown
        self._api = config.url.removesuffix("/lineage") if config.preset.can_be_asked else None

    async def well(self, *, thoroughly: bool = False) -> bool | None:
        """Find out whether the backend is well, None when it cannot be told.

        Args:
            thoroughly: post a harmless event when asking does not tell.
        """
        well = await self._knows_of_no_such_run()
        if well is None and thoroughly:
            answer = await self._sender.post(harmless_event())
            return judge(answer, self._rules).verdict in (Verdict.DONE, Verdict.REFUSED, Verdict.TOO_BIG)
        return well

    async def _knows_of_no_such_run(self) -> bool | None:
        """Ask for a run that does not exist: to say so, the backend must reach its database."""
        if self._api is None:
            return None
        answer = await self._sender.get(f"{self._api}/jobs/runs/{uuid4()}")
        document = answer.json()
        if isinstance(document, dict) and document.get("code") == 404:  # noqa: PLR2004 - Marquez repeats the status
            return True
        return False if answer.status is None or answer.status >= 500 else None  # noqa: PLR2004 - server errors

    async def holds(self, event: RunEvent) -> bool:
        """Read back whether the backend holds an event, where `verifyUnknown` asks for it; in doubt it does not."""
        if not self._verify or self._api is None:
            return False
        sent = orjson.loads(event.body)
        moment = datetime.fromisoformat(sent["eventTime"])
        around = {"after": iso(moment - timedelta(seconds=1)), "before": iso(moment + timedelta(seconds=1))}
        answer = await self._sender.get(f"{self._api}/events/lineage?{urlencode({**around, 'limit': _AT_LEAST_READ})}")
        document = answer.json()
        events = document.get("events") if isinstance(document, dict) else None
        looked_for = _essence(sent)
        return isinstance(events, list) and any(_is(held, looked_for) for held in events)


def _is(held: Any, looked_for: Any) -> bool:
    """Whether a backend holds the event that is looked for, and not another or something odd."""
    try:
        return bool(_essence(held) == looked_for)
    except (AttributeError, KeyError, TypeError):
        return False


def _essence(event: Any) -> Any:
    """Return what tells two run events apart, whatever a backend does to their facets and times."""
    sides = [
        sorted((dataset["namespace"], dataset["name"]) for dataset in event.get(side) or ())
        for side in ("inputs", "outputs")
    ]
    return event["run"]["runId"].lower(), event.get("eventType"), event["job"]["name"], sides
