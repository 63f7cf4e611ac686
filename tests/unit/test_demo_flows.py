"""The demo runs the guide's flows, against the backend that OpenLineage's own clients would use."""

from __future__ import annotations

from demo.flows import Backend, backend_of, file_flow, ship_flow
from waybill.export.files.config import FileAssetExporter
from waybill.model.flow import parse_flow


def test_without_a_url_there_is_no_backend_of_the_users() -> None:
    assert backend_of({}) is None
    assert backend_of({"OPENLINEAGE_URL": "", "OPENLINEAGE_API_KEY": "key"}) is None


def test_the_backend_comes_from_the_variables_of_openlineage() -> None:
    environment = {
        "OPENLINEAGE_URL": "http://127.0.0.1:5011",
        "OPENLINEAGE_ENDPOINT": "v1/openlineage",
        "OPENLINEAGE_API_KEY": "key",
        "OPENLINEAGE_BACKEND": "data-rentgen",
    }

    assert backend_of(environment) == Backend("http://127.0.0.1:5011", "v1/openlineage", "key", "data-rentgen")


def test_a_key_is_never_shown() -> None:
    assert "secret-value" not in repr(Backend("http://127.0.0.1:5000", api_key="secret-value"))


def test_the_flow_that_ships_is_the_guides() -> None:
    flow = parse_flow(ship_flow(Backend("http://127.0.0.1:5000").exporter()))

    assert (flow.id, flow.namespace) == ("ship_lineage_to_marquez", "company.platform")
    assert [(task.id, task.lookback_period.days) for task in flow.shippers] == [("ship_lineage", 7)]


def test_an_exporter_names_the_key_and_does_not_hold_it() -> None:
    backend = Backend("http://127.0.0.1:5011", "v1/openlineage", "secret-value", "data-rentgen")

    assert backend.exporter("/waybill/secrets/key") == {
        "id": "data-rentgen",
        "type": "io.kestra.plugin.ee.openlineage.OpenLineageAssetExporter",
        "uri": "http://127.0.0.1:5011",
        "endpoint": "v1/openlineage",
        "backend": "data-rentgen",
        "auth": {"type": "apiKey", "apiKey": {"parameter": "/waybill/secrets/key"}},
    }


def test_the_flow_that_files_is_the_guides() -> None:
    flow = parse_flow(file_flow("lineage-bucket"))
    (task,) = flow.shippers
    (exporter,) = task.asset_exporters

    assert (flow.id, flow.namespace, task.id) == ("ship_lineage_to_s3", "company.platform", "export_lineage")
    assert isinstance(exporter, FileAssetExporter)
    assert (exporter.format, exporter.bucket) == ("JSON", "lineage-bucket")
    assert exporter.key == "kestra/{{ execution.startDate | date('yyyy-MM-dd') }}"
