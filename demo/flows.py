"""The flows that the demo runs: those of the guide, with the addresses of this run in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMESPACE = "company.platform"
SHIP_TASK = "ship_lineage"
FILE_TASK = "export_lineage"
FILE_EXPORTER = "file"


@dataclass(frozen=True, slots=True)
class Backend:
    """The OpenLineage backend to ship to.

    Attributes:
        endpoint: the path that takes events, where it is not the usual one.
        api_key: a secret; it goes into the stack's parameter store, never into a flow.
        preset: the `backend` property of the exporter.
    """

    uri: str
    endpoint: str | None = None
    api_key: str | None = field(default=None, repr=False)
    preset: str | None = None

    def exporter(self, api_key_parameter: str | None = None) -> dict[str, Any]:
        """Return the exporter that posts to this backend; the key is named, not given."""
        secret = {"type": "apiKey", "apiKey": {"parameter": api_key_parameter}} if api_key_parameter else None
        properties = {"uri": self.uri, "endpoint": self.endpoint, "backend": self.preset, "auth": secret}
        return {
            "id": self.preset or "marquez",
            "type": "io.kestra.plugin.ee.openlineage.OpenLineageAssetExporter",
            **{name: value for name, value in properties.items() if value is not None},
        }


def backend_of(environment: Mapping[str, str]) -> Backend | None:
    """Read the backend from the variables that OpenLineage's own clients read, None without `OPENLINEAGE_URL`."""
    uri = environment.get("OPENLINEAGE_URL")
    if not uri:
        return None
    return Backend(
        uri=uri,
        endpoint=environment.get("OPENLINEAGE_ENDPOINT") or None,
        api_key=environment.get("OPENLINEAGE_API_KEY") or None,
        preset=environment.get("OPENLINEAGE_BACKEND") or None,
    )


def ship_flow(exporter: dict[str, Any]) -> dict[str, Any]:
    """Return the guide's flow of step 1, which ships the lineage of the last seven days."""
    return {
        "id": f"ship_lineage_to_{exporter['id']}",
        "namespace": NAMESPACE,
        "tasks": [
            {
                "id": SHIP_TASK,
                "type": "io.kestra.plugin.ee.assets.AssetShipper",
                "lookbackPeriod": "P7D",
                "assetExporters": [exporter],
            }
        ],
        "triggers": [{"id": "hourly", "type": "io.kestra.plugin.core.trigger.Schedule", "cron": "@hourly"}],
    }


def file_flow(bucket: str) -> dict[str, Any]:
    """Return the guide's flow of step 4, which files the lineage as JSON lines in a bucket."""
    return {
        "id": "ship_lineage_to_s3",
        "namespace": NAMESPACE,
        "tasks": [
            {
                "id": FILE_TASK,
                "type": "io.kestra.plugin.ee.assets.AssetShipper",
                "assetExporters": [
                    {
                        "id": FILE_EXPORTER,
                        "type": "io.kestra.plugin.ee.assets.FileAssetExporter",
                        "format": "JSON",
                    }
                ],
            },
            {
                "id": "upload",
                "type": "io.kestra.plugin.aws.s3.Upload",
                "bucket": bucket,
                "key": "kestra/{{ execution.startDate | date('yyyy-MM-dd') }}",
                "from": f"{{{{ outputs.{FILE_TASK}.outputs.{FILE_EXPORTER}.uris }}}}",
            },
        ],
        "triggers": [{"id": "daily", "type": "io.kestra.plugin.core.trigger.Schedule", "cron": "@daily"}],
    }
