"""Turns what a dbt run left in its target folder into task run reports, one a line.

    python docs/examples/dbt_reports.py target company.analytics dbt_build owner=analytics | waybill record -

Arguments: the folder with `run_results.json` and `manifest.json`, the namespace and id of the flow, and metadata that
every asset gets. A model, seed or snapshot that ran is one task run: its inputs are what it depends on, its output is
its relation. Tests write nothing, and nodes that were skipped did not run; neither is reported.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

STATES = {"success": "SUCCESS", "partial success": "WARNING", "error": "FAILED"}
WRITES = ("model", "seed", "snapshot")


def reports(target: Path, namespace: str, flow: str, metadata: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the report of each node that ran."""
    run = json.loads((target / "run_results.json").read_text())
    manifest = json.loads((target / "manifest.json").read_text())
    nodes = manifest["nodes"] | manifest["sources"]
    system = manifest["metadata"]["adapter_type"]
    execution = run["metadata"]["invocation_id"]
    for result in run["results"]:
        node = nodes[result["unique_id"]]
        if node["resource_type"] not in WRITES or result["status"] not in STATES:
            continue
        time = {timing["name"]: timing for timing in result["timing"]}
        took = time.get("execute") or time.get("compile") or {}
        error = {} if STATES[result["status"]] != "FAILED" else {"error": {"message": result["message"] or "failed"}}
        yield {
            "namespace": namespace,
            "flowId": flow,
            "flowRevision": 1,
            "executionId": execution,
            "taskId": node["name"],
            "taskRunId": f"{execution}.{node['unique_id']}",
            "state": STATES[result["status"]],
            "startDate": took.get("started_at", run["metadata"]["generated_at"]),
            "endDate": took.get("completed_at", run["metadata"]["generated_at"]),
            **error,
            "assets": {
                "inputs": list(_inputs(node, nodes)),
                "outputs": [_output(node, namespace, system, metadata)],
                "assetFailureBehavior": "WARN",
            },
        }


def _inputs(node: dict[str, Any], nodes: dict[str, Any]) -> Iterator[dict[str, str]]:
    """What a node reads: the file of a seed, the relations of the others, through models that are not materialized."""
    if node["resource_type"] == "seed":
        file = re.sub(r"[^A-Za-z0-9._-]", ".", node["original_file_path"])
        yield {"id": f"file.{file}", "type": "io.kestra.plugin.ee.assets.File"}
    for name in node["depends_on"].get("nodes", ()):
        if nodes[name].get("config", {}).get("materialized") == "ephemeral":
            yield from _inputs(nodes[name], nodes)
        else:
            yield {"id": _asset_id(nodes[name])}


def _output(node: dict[str, Any], namespace: str, system: str, metadata: dict[str, str]) -> dict[str, Any]:
    described = {"description": node["description"]} if node["description"] else {}
    return {
        "id": _asset_id(node),
        "type": "io.kestra.plugin.ee.assets.Table",
        "namespace": namespace,
        "displayName": node["name"],
        **described,
        "metadata": {
            "system": system,
            "database": node["database"],
            "schema": node["schema"],
            "name": node["alias"],
            **metadata,
        },
    }


def _asset_id(node: dict[str, Any]) -> str:
    names = (node["database"], node["schema"], node.get("alias") or node["identifier"])
    return ".".join(re.sub(r"[^A-Za-z0-9._:-]", "_", name) for name in names if name)


def main(arguments: list[str]) -> int:
    """Print the reports of a target folder; what is wrong is said in a line."""
    positional, pairs = arguments[:3], arguments[3:]
    if len(positional) < len(("TARGET", "NAMESPACE", "FLOW")) or not all("=" in pair for pair in pairs):
        print("usage: dbt_reports.py TARGET NAMESPACE FLOW [NAME=VALUE ...]", file=sys.stderr)
        return 2
    folder, namespace, flow = positional
    try:
        for report in reports(Path(folder), namespace, flow, dict(pair.split("=", 1) for pair in pairs)):
            print(json.dumps(report))
    except (FileNotFoundError, NotADirectoryError) as error:
        print(f"{error.filename} is not there; TARGET is the folder that dbt writes to", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
