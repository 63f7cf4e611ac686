"""Posts to Amazon DataZone, whose API is its own: boto3 signs, a token prevents repeats, the verdict comes later."""

from __future__ import annotations

import asyncio
import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import boto3
import orjson
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError, NoCredentialsError
from botocore.exceptions import ConnectTimeoutError as NoConnectionInTime

from waybill.errors import ExporterStopped
from waybill.export.openlineage.outcomes import Answer, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from waybill.export.openlineage.config import OpenLineageAssetExporter
    from waybill.export.openlineage.mapping import RunEvent
    from waybill.export.ports import Deadline

T = TypeVar("T")

_LOOK_BACK = timedelta(days=1)
_MOST_FAILURES = 100
_NOT_SENT = (EndpointConnectionError, NoConnectionInTime)


class DataZoneSender:
    """Posts to one domain."""

    def __init__(self, config: OpenLineageAssetExporter, deadline: Deadline) -> None:
        self._domain = str(config.domain_id)
        self._config = config
        self._deadline = deadline
        self._threads = ThreadPoolExecutor(config.max_in_flight, thread_name_prefix="datazone")
        self._client: Any = None

    async def open(self) -> None:
        """Make the client.

        Raises:
            ExporterStopped: there are no credentials or no region.
        """
        self._client = await self._in_thread(self._new_client)

    async def close(self) -> None:
        """Give the threads back."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def post(self, event: RunEvent) -> Answer:
        """Post an event; DataZone takes the same token once."""
        if self._deadline.remaining() <= 0:
            return Answer(fault="the time of the run is over", verdict=Verdict.RETRY)
        try:
            async with asyncio.timeout(min(self._config.timeout.total, self._deadline.remaining())):
                return await self._in_thread(self._post, event)
        except TimeoutError:
            return Answer(fault="it was sent and no whole answer came in time", verdict=Verdict.UNKNOWN)

    async def get(self, url: str) -> Answer:  # noqa: ARG002 - there is nothing to ask
        """Nothing can be asked."""
        return Answer(fault="DataZone cannot be asked", verdict=Verdict.RETRY)

    async def renew(self, credentials: int) -> bool:  # noqa: ARG002 - as for every sender
        """boto3 renews credentials by itself, before they end."""
        return False

    async def later_failures(self, started: datetime) -> list[tuple[str, dict[str, Any]]]:
        """Return events of ours that the domain took within the last day and could not process then, by its id."""
        try:
            return await self._in_thread(lambda: list(self._failures(started - _LOOK_BACK)))
        except (ClientError, BotoCoreError):
            return []

    def _failures(self, since: datetime) -> Iterator[tuple[str, dict[str, Any]]]:
        pages = self._client.get_paginator("list_lineage_events").paginate(
            domainIdentifier=self._domain,
            processingStatus="FAILED",
            timestampAfter=since,
            PaginationConfig={"MaxItems": _MOST_FAILURES},
        )
        for item in (item for page in pages for item in page["items"]):
            held = self._client.get_lineage_event(domainIdentifier=self._domain, identifier=item["id"])
            event = orjson.loads(held["event"].read() if hasattr(held["event"], "read") else held["event"])
            if str(event.get("producer", "")).startswith("urn:waybill:"):
                yield item["id"], event

    def _new_client(self) -> Any:
        timeout = self._config.timeout
        settings = Config(
            retries={"mode": "standard", "total_max_attempts": 1},
            connect_timeout=timeout.connect,
            read_timeout=timeout.first_byte,
            max_pool_connections=self._config.max_in_flight,
        )
        try:
            return boto3.client("datazone", config=settings)
        except BotoCoreError as error:
            raise ExporterStopped(f"DataZone cannot be reached: {error}") from error

    def _post(self, event: RunEvent) -> Answer:
        token = hashlib.sha256(b"\n".join((self._domain.encode(), event.id.encode(), event.body))).hexdigest()
        try:
            self._client.post_lineage_event(domainIdentifier=self._domain, event=event.body, clientToken=token)
        except ClientError as error:
            return _answer(error)
        except _NOT_SENT as error:
            return Answer(fault=f"no connection ({error})", verdict=Verdict.RETRY)
        except NoCredentialsError as error:
            return Answer(fault=f"there are no AWS credentials ({error})", verdict=Verdict.AUTH)
        except BotoCoreError as error:
            return Answer(fault=f"the connection broke before a whole answer ({error})", verdict=Verdict.UNKNOWN)
        return Answer(status=200)

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)


def _answer(error: ClientError) -> Answer:
    said = error.response["Error"]
    metadata = error.response.get("ResponseMetadata", {})
    return Answer(
        status=metadata.get("HTTPStatusCode"),
        content_type="application/json",
        retry_after=metadata.get("HTTPHeaders", {}).get("retry-after"),
        body=orjson.dumps({"code": said.get("Code"), "message": said.get("Message")}),
    )
