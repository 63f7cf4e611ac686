"""`waybill doctor` finds out, step by step, why a backend does not take what is shipped."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from tests.support.certificates import Authority
from tests.support.receivers import Receiver, Reply
from waybill import cli

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from typer.testing import Result


def examined(
    tmp_path: Path, receiver: Receiver | None, context: ssl.SSLContext | None = None, **properties: Any
) -> tuple[list[list[str]], int]:
    """Run `waybill doctor` on one exporter; return its findings as [verdict, step, text], and the exit code."""

    def command(uri: str) -> Result:
        exporter = {"id": "backend", "type": "OpenLineageAssetExporter", "uri": uri, **properties}
        task = {"id": "ship", "type": "AssetShipper", "assetExporters": [exporter]}
        (tmp_path / "flow.json").write_text(json.dumps({"id": "f", "namespace": "n", "tasks": [task]}))
        return CliRunner().invoke(cli.app, ["doctor", "--flow", str(tmp_path / "flow.json")])

    async def run() -> Result:
        if receiver is None:
            return await asyncio.to_thread(command, properties.pop("uri"))
        async with receiver.listening(context):
            return await asyncio.to_thread(command, receiver.url)

    result = asyncio.run(run())
    title, *lines = result.output.splitlines()
    assert title == f"backend ({properties.get('backend', 'marquez')})"
    return [line.split(maxsplit=2) for line in lines], result.exit_code


def test_a_backend_that_is_well_takes_a_harmless_event(tmp_path: Path) -> None:
    receiver = Receiver()
    findings, code = examined(tmp_path, receiver)
    assert findings == [
        ["ok", "name", "127.0.0.1 is 127.0.0.1"],
        ["ok", "connection", f"port {receiver.port} answers"],
        ["ok", "credentials", "none: at hand"],
        [
            "ok",
            "event",
            f"HTTP 201 to a run of waybill.probe without datasets at {receiver.url}/api/v1/lineage: taken",
        ],
    ]
    assert code == 0
    (event,) = receiver.received
    assert (event["job"]["name"], event["inputs"], event["outputs"]) == ("waybill.probe", [], [])


def test_a_name_that_does_not_resolve(tmp_path: Path) -> None:
    (finding,), code = examined(tmp_path, None, uri="http://no-such-host.invalid:5000")
    assert finding[:2] == ["ill", "name"]
    assert finding[2].startswith("no-such-host.invalid does not resolve (")
    assert finding[2].endswith("; look at uri")
    assert code == 1


def test_a_port_where_nobody_listens(tmp_path: Path) -> None:
    findings, code = examined(tmp_path, None, uri="http://127.0.0.1:1")
    assert [finding[:2] for finding in findings] == [["ok", "name"], ["ill", "connection"]]
    assert findings[1][2].startswith("port 1 does not answer (")
    assert findings[1][2].endswith("; is it running, and may this machine reach it?")
    assert code == 1


def test_a_certificate_that_is_not_trusted(tmp_path: Path) -> None:
    authority = Authority()
    findings, code = examined(tmp_path, Receiver(), authority.server(tmp_path, authority.give()))
    assert [finding[:2] for finding in findings] == [["ok", "name"], ["ok", "connection"], ["ill", "tls"]]
    assert findings[2][2] == (
        "its certificate is not trusted: unable to get local issuer certificate; look at tls, or have it renewed"
    )
    assert code == 1


def test_a_certificate_of_an_own_authority(tmp_path: Path) -> None:
    authority = Authority()
    (tmp_path / "ca.pem").write_text(authority.bundle)
    tls = {"caFile": str(tmp_path / "ca.pem")}
    findings, code = examined(tmp_path, Receiver(), authority.server(tmp_path, authority.give()), tls=tls)
    assert [finding[:2] for finding in findings] == [
        ["ok", "name"], ["ok", "connection"], ["ok", "tls"], ["ok", "credentials"], ["ok", "event"],
    ]  # fmt: skip
    assert findings[2][2].startswith("TLSv1.3, its certificate is good until ")
    assert code == 0


def test_an_answer_that_is_no_success_is_explained_with_what_was_said(tmp_path: Path) -> None:
    receiver = Receiver(lambda _: Reply(404, b"no such page"))
    findings, code = examined(tmp_path, receiver)
    assert findings[-1][:2] == ["ill", "event"]
    assert findings[-1][2] == (
        f"HTTP 404 to a run of waybill.probe without datasets at {receiver.url}/api/v1/lineage: "
        "nothing takes lineage at this address; look at uri and endpoint; it said: no such page"
    )
    assert code == 1


@pytest.mark.parametrize(("status", "verdict"), [("success", "ok"), ("failure", "ill")])
def test_openmetadata_is_well_although_it_makes_no_edge_of_an_event_without_datasets(
    tmp_path: Path, status: str, verdict: str
) -> None:
    answer = {"status": status, "message": "1 event", "lineageEdgesCreated": 0}
    receiver = Receiver(lambda _: Reply(200, json.dumps(answer).encode()))
    findings, code = examined(tmp_path, receiver, backend="openmetadata")
    assert findings[-1][:2] == [verdict, "event"]
    assert code == (verdict == "ill")


def test_a_proxy_that_is_no_address_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:99999")
    monkeypatch.setenv("no_proxy", "")
    findings, code = examined(tmp_path, None, uri="http://backend.example")
    assert findings == [
        [
            "ill",
            "name",
            "proxy: http_proxy in the environment is not an address of an HTTP proxy such as http://proxy:3128",
        ]
    ]
    assert code == 1


def test_a_flow_without_such_an_exporter(tmp_path: Path) -> None:
    exporter = {"id": "files", "type": "FileAssetExporter"}
    task = {"id": "ship", "type": "AssetShipper", "assetExporters": [exporter]}
    (tmp_path / "flow.json").write_text(json.dumps({"id": "f", "namespace": "n", "tasks": [task]}))
    result = CliRunner().invoke(cli.app, ["doctor", "--flow", str(tmp_path / "flow.json")])
    assert (result.output, result.exit_code) == ("The flow has no OpenLineageAssetExporter.\n", 0)
