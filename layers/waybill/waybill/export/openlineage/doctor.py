"""Looks at a destination step by step and explains what it finds: name, connection, TLS, credentials, one event."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from waybill.errors import ExporterStopped, WaybillError
from waybill.export.openlineage.connection import proxy_of, tls_context
from waybill.export.openlineage.outcomes import Verdict, judge
from waybill.export.openlineage.probe import PROBE_JOB, harmless_event
from waybill.export.openlineage.senders import sender_of
from waybill.export.ports import Deadline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from waybill.export.openlineage.config import OpenLineageAssetExporter
    from waybill.export.openlineage.outcomes import Answer

_LONGEST = 60.0
_SHOWN = 200
_TAKEN = (Verdict.DONE,)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one step found.

    Attributes:
        step: `name`, `connection`, `tls`, `credentials` or `event`.
        well: whether the next step makes sense.
        text: what was found, and what to do about it.
    """

    step: str
    well: bool
    text: str


async def examine(config: OpenLineageAssetExporter) -> AsyncIterator[Finding]:
    """Examine the destination of an exporter, from the machine that this runs on; the first ill step is the last."""
    steps = [_credentials_and_event]
    if config.backend != "datazone":
        steps = [_name_and_connection, _credentials_and_event]
    for step in steps:
        async for finding in step(config):
            yield finding
            if not finding.well:
                return


async def _name_and_connection(config: OpenLineageAssetExporter) -> AsyncIterator[Finding]:
    try:
        proxy, _ = await asyncio.to_thread(proxy_of, config)
    except ExporterStopped as error:
        yield Finding("name", well=False, text=str(error))
        return
    target = urlsplit(proxy or config.url)
    host, port = target.hostname or "", target.port or (443 if target.scheme == "https" else 80)
    through = " of the proxy" if proxy else ""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        yield Finding(
            "name", well=False, text=f"{host}{through} does not resolve ({error.strerror or error}); look at uri"
        )
        return
    addresses = ", ".join(dict.fromkeys(str(entry[4][0]) for entry in found))
    yield Finding("name", well=True, text=f"{host}{through} is {addresses}")
    yield await _connected(config, host, port, through)
    if target.scheme == "https" and not proxy:
        yield await _shaken_hands(config, host, port)


async def _connected(config: OpenLineageAssetExporter, host: str, port: int, through: str) -> Finding:
    try:
        async with asyncio.timeout(config.timeout.connect):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError) as error:
        reason = str(error) or f"nothing within {config.timeout.connect:g} s"
        advice = "is it running, and may this machine reach it?"
        return Finding("connection", well=False, text=f"port {port}{through} does not answer ({reason}); {advice}")
    writer.close()
    return Finding("connection", well=True, text=f"port {port}{through} answers")


async def _shaken_hands(config: OpenLineageAssetExporter, host: str, port: int) -> Finding:
    try:
        context = await asyncio.to_thread(tls_context, config)
        async with asyncio.timeout(config.timeout.connect):
            _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        text = f"its certificate is not trusted: {error.verify_message}; look at tls, or have it renewed"
        return Finding("tls", well=False, text=text)
    except (ssl.SSLError, OSError, TimeoutError, ExporterStopped) as error:
        return Finding("tls", well=False, text=f"no handshake: {error}")
    shown: Any = writer.get_extra_info("peercert") or {}
    version = writer.get_extra_info("ssl_object").version()
    writer.close()
    with suppress(OSError, ssl.SSLError):
        await writer.wait_closed()
    return Finding(
        "tls", well=True, text=f"{version}, its certificate is good until {shown.get('notAfter', 'an unknown day')}"
    )


def _without_edge(config: OpenLineageAssetExporter, answer: Answer) -> bool:
    """Whether a backend that looks only at events with both sides took ours, of which it can make no edge."""
    said = answer.json()
    taken = isinstance(said, dict) and said.get("status") == "success" and said.get("lineageEdgesCreated") == 0
    return config.preset.both_sides and answer.status == HTTPStatus.OK and taken


async def _credentials_and_event(config: OpenLineageAssetExporter) -> AsyncIterator[Finding]:
    sender = sender_of(config, Deadline(_LONGEST))
    try:
        try:
            await sender.open()
        except WaybillError as error:
            yield Finding("credentials", well=False, text=str(error))
            return
        kind = "of the AWS role" if config.backend == "datazone" else config.auth.type
        yield Finding("credentials", well=True, text=f"{kind}: at hand")
        answer = await sender.post(harmless_event())
        judgement = judge(answer, config.preset.outcomes)
        well = judgement.verdict in _TAKEN or _without_edge(config, answer)
        body = answer.body[:_SHOWN].decode(errors="replace").strip()
        said = f"; it said: {body}" if body and not well else ""
        what = f"a run of {PROBE_JOB} without datasets"
        where = config.domain_id or config.url
        text = judgement.why if answer.fault else f"{answer} to {what} at {where}: {judgement.why}{said}"
        yield Finding("event", well=well, text=text)
    finally:
        await sender.close()
