"""What each function does with the rights of its role, as one call each, which raises when it could not be done."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

from tools.emulator import ROOT
from waybill.ship.flow import LEAST_RESERVE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.stack import Stack

NAMESPACE = "company.platform"
COMPANY_BUCKET = "company-lineage"
KEY = "the-key-of-the-backend"
SETTLED_SECONDS = 1.2
"""After this an event can be shipped, on a stack with `SettleSeconds` 1."""
SHORT_SECONDS = {"ShipperFunction": LEAST_RESERVE + 4, "FileExporterFunction": LEAST_RESERVE + 2}
"""Timeouts that leave a run of the scenario too little time."""
LONG_SECONDS = 60
LARGE = 400_000
"""Characters of an error that makes an event too large for an item."""


class TakesEvents(BaseHTTPRequestHandler):
    """Takes an event that comes with the key, slowly when told so; below `/refusing` it refuses what it holds."""

    protocol_version = "HTTP/1.1"
    wait = 0.0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.wait)
        known = self.headers.get("Authorization") == f"Bearer {KEY}"
        self.send_response((422 if self.path.startswith("/refusing") else 201) if known else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def receiver(wait: float) -> Iterator[str]:
    """A backend on a free port, which takes `wait` seconds for each event; its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (TakesEvents,), {"wait": wait}))
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def report(**changes: Any) -> dict[str, Any]:
    """A report of a task run of its own, which writes an asset of its own."""
    name = uuid.uuid4().hex
    document: dict[str, Any] = json.loads((ROOT / "events" / "record_success.json").read_text())
    outputs = [{"id": f"out.{name}", "type": "Table", "metadata": {"owner": name}}]
    assets = {"inputs": [{"id": f"in.{name}"}], "outputs": outputs}
    return document | {"taskRunId": str(uuid.uuid4()), "flowId": f"flow_{name}", "assets": assets} | changes


@dataclass
class Scenarios:
    """The scenarios on one stack.

    Attributes:
        url: where a backend takes events that come with `KEY`.
        slow_url: where another takes its time.
    """

    stack: Stack
    url: str
    slow_url: str
    secret: str = field(init=False)

    def __post_init__(self) -> None:
        secret = self.stack.client("secretsmanager").create_secret(Name="waybill/secrets/backend", SecretString=KEY)
        self.secret = secret["ARN"]
        self._parameter("waybill/secrets/backend", KEY, "SecureString")

    def _parameter(self, name: str, value: str, kind: str = "String") -> str:
        self.stack.client("ssm").put_parameter(Name=f"/{name}", Value=value, Type=kind, Overwrite=True)
        return f"/{name}"

    def _object(self, key: str, document: Any) -> str:
        bucket = self.stack.names["LineageBucket"]
        self.stack.client("s3").put_object(Bucket=bucket, Key=key, Body=json.dumps(document).encode())
        return f"s3://{bucket}/{key}"

    # --- record

    def record(self) -> None:
        """Record a report, and record it again with a second output of its asset's."""
        sent = report()
        for document in (sent, sent, sent | {"taskRunId": str(uuid.uuid4())}):
            answer = self.stack.invoke("RecorderFunction", document)
            assert answer["assets"]["failed"] == [], answer

    def record_with_other_metadata(self) -> None:
        """Record an asset with a value, then with another: its index row goes."""
        sent = report()
        self.stack.invoke("RecorderFunction", sent)
        sent["assets"]["outputs"][0]["metadata"] = {"owner": "another"}
        answer = self.stack.invoke("RecorderFunction", sent | {"taskRunId": str(uuid.uuid4())})
        assert answer["assets"]["failed"] == [], answer

    def record_elsewhere(self) -> None:
        """Record an asset of another namespace, whose settings are asked."""
        sent = report()
        sent["assets"]["outputs"][0]["namespace"] = f"company.{uuid.uuid4().hex}"
        answer = self.stack.invoke("RecorderFunction", sent)
        assert answer["assets"]["failed"] == [], answer

    def record_from_bucket(self) -> None:
        """Record a report that lies in the bucket."""
        self.stack.invoke("RecorderFunction", {"report": self._object(f"reports/{uuid.uuid4()}.json", report())})

    def record_large(self) -> dict[str, Any]:
        """Record an event that is too large for an item, and read it back by an answer to the same report."""
        sent = report(state="FAILED", error={"message": "out of memory", "stackTrace": "x" * LARGE})
        first = self.stack.invoke("RecorderFunction", sent)
        assert self.stack.invoke("RecorderFunction", sent) == first
        return sent

    def tell(self) -> None:
        """Record a report whose state changes, for its asset's namespace does not admit the flow."""
        closed = f"closed_{uuid.uuid4().hex}"
        self.ask("PUT", f"/namespaces/{closed}", {"allowedNamespaces": [NAMESPACE]})
        sent = report()
        sent["assets"] |= {"assetFailureBehavior": "FAIL"}
        sent["assets"]["outputs"][0]["namespace"] = closed
        assert self.stack.invoke("RecorderFunction", sent)["state"] == "FAILED"

    # --- ship and file

    def flow(self, *exporters: dict[str, Any], **task: Any) -> dict[str, Any]:
        """A flow of its own that starts at the beginning of the log."""
        shipper = {"id": "ship", "type": "AssetShipper", "lookbackPeriod": "PT1H", "assetExporters": list(exporters)}
        return {"id": f"flow_{uuid.uuid4().hex}", "namespace": NAMESPACE, "tasks": [shipper | task]}

    def openlineage(self, token: dict[str, str], url: str | None = None, **more: Any) -> dict[str, Any]:
        """An exporter to the backend."""
        auth = {"type": "bearer", "token": token}
        return {"id": "backend", "type": "OpenLineageAssetExporter", "uri": url or self.url, "auth": auth} | more

    @property
    def by_secret(self) -> dict[str, Any]:
        return self.openlineage({"secret": self.secret})

    @property
    def by_parameter(self) -> dict[str, Any]:
        return self.openlineage({"parameter": "/waybill/secrets/backend"})

    @staticmethod
    def files(**more: Any) -> dict[str, Any]:
        """An exporter to files."""
        return {"id": "file", "type": "FileAssetExporter", "format": "JSON"} | more

    def run(self, function: str, flow: Any) -> dict[str, Any]:
        """Run a flow, which must ship something."""
        output: dict[str, Any] = self.stack.invoke(function, flow)["outputs"]["ship"]
        assert output["size"] > 0, output
        return output

    def delete(self, function: str) -> None:
        """Ship a flow's events and delete them from the log."""
        sent = report()
        self.stack.invoke("RecorderFunction", sent)
        time.sleep(SETTLED_SECONDS)
        exporter = self.by_secret if function == "ShipperFunction" else self.files()
        self.run(function, self.flow(exporter, flowId=sent["flowId"], delete=True, force=True))

    def pointed(self, function: str, kind: str) -> None:
        """Run a flow that a parameter or an object of the bucket holds."""
        document = self.flow(self.files())
        if kind == "ssm":
            pointer = "ssm:" + self._parameter(f"waybill/flows/{document['id']}", json.dumps(document))
        else:
            pointer = self._object(f"waybill/flows/{document['id']}.json", document)
        self.run(function, {"flow": pointer})

    def continued(self, function: str) -> None:
        """Run out of time and go on in another invocation, which a stack with `ContinueRuns` 1 does once."""
        slow = self.openlineage({"secret": self.secret}, self.slow_url, maxInFlight=1)
        exporter = slow if function == "ShipperFunction" else self.files(maxLinesPerFile=1)
        self.restart(function, SHORT_SECONDS[function])
        assert self.run(function, self.flow(exporter))["complete"] is False
        time.sleep(SHORT_SECONDS[function] - LEAST_RESERVE + 2)

    def set_aside(self) -> None:
        """Put aside an event that is refused and is too large for an item."""
        sent = self.record_large()
        time.sleep(SETTLED_SECONDS)
        exporter = self.openlineage({"secret": self.secret}, f"{self.url}/refusing")
        output = self.run("ShipperFunction", self.flow(exporter, flowId=sent["flowId"]))
        assert output["outputs"]["backend"]["rejected"] == 1, output

    def restart(self, function: str, seconds: float = LONG_SECONDS) -> None:
        """Let a function start anew at its next invocation, and run for so long at most."""
        self.stack.client("lambda").update_function_configuration(
            FunctionName=self.stack.names[function], Timeout=int(seconds)
        )

    # --- ask

    def search_large(self) -> None:
        """Search lineage events, one of which is too large for an item."""
        self.record_large()
        assert self.ask("GET", "/assets/lineage-events/search")["results"]

    def ask(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """Send a request to the catalog's function, and return the body of its answer."""
        event: dict[str, Any] = json.loads((ROOT / "events" / "catalog_search.json").read_text())
        event |= {"rawPath": path, "queryStringParameters": query, "body": json.dumps(body) if body else None}
        event["rawQueryString"] = "&".join(f"{name}={value}" for name, value in query.items())
        event["requestContext"]["http"] |= {"method": method, "path": path}
        answer = self.stack.invoke("CatalogFunction", event)
        assert answer["statusCode"] < 300, answer
        return json.loads(answer["body"]) if answer.get("body") else None
