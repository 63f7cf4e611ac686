"""A lineage event as an OpenLineage run event, field by field (DESIGN 6)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.delivering import asset, delivery, exporter_config
from tests.support.openlineage_schema import check_event, facet_validators
from waybill import __version__
from waybill.errors import ExporterStopped
from waybill.export.openlineage.mapping import CannotBeSent, Mapper
from waybill.ids import derived_uuid7, uuid7_millis
from waybill.model.asset import TABLE

if TYPE_CHECKING:
    from waybill.export.ports import Delivery

PRODUCER = f"urn:waybill:{__version__}"
FACETS = "https://openlineage.io/spec/facets"


def mapped(one: Delivery, **properties: Any) -> list[dict[str, Any]]:
    """Return the run events of a delivery, each validated against the spec."""
    events = [
        json.loads(event.body) for event in Mapper(exporter_config("http://marquez:5000", **properties)).events(one)
    ]
    for event in events:
        check_event(event)
    return events


def only(one: Delivery, **properties: Any) -> dict[str, Any]:
    """Return the one run event of a delivery."""
    (event,) = mapped(one, **properties)
    return event


def said(facet: dict[str, Any]) -> dict[str, Any]:
    """Return a facet without what every facet says."""
    return {name: value for name, value in facet.items() if not name.startswith("_")}


def test_a_whole_event() -> None:
    one = delivery(inputs=[asset("raw.orders")], outputs=[asset("orders", namespace=None)])
    source = f"{FACETS}/1-0-1/DatasourceDatasetFacet.json#/$defs/DatasourceDatasetFacet"
    assert only(one) == {
        "eventType": "COMPLETE",
        "eventTime": "2026-07-01T09:01:00.000Z",
        "run": {
            "runId": one.event.task_run_id,
            "facets": {
                "processing_engine": {
                    "_producer": PRODUCER,
                    "_schemaURL": f"{FACETS}/1-1-1/ProcessingEngineRunFacet.json#/$defs/ProcessingEngineRunFacet",
                    "version": __version__,
                    "name": "Waybill",
                    "openlineageAdapterVersion": __version__,
                }
            },
        },
        "job": {
            "namespace": "company.data",
            "name": "orders.a",
            "facets": {
                "jobType": {
                    "_producer": PRODUCER,
                    "_schemaURL": f"{FACETS}/2-0-4/JobTypeJobFacet.json#/$defs/JobTypeJobFacet",
                    "processingType": "BATCH",
                    "integration": "WAYBILL",
                    "jobType": "TASK",
                }
            },
        },
        "inputs": [
            {
                "namespace": "company.data",
                "name": "raw.orders",
                "facets": {
                    "dataSource": {
                        "_producer": PRODUCER,
                        "_schemaURL": source,
                        "name": "company.data",
                        "uri": "urn:waybill:company.data",
                    },
                    "waybill_asset": {
                        "_producer": PRODUCER,
                        "_schemaURL": "urn:waybill:facet:asset:1-0-0",
                        "id": "raw.orders",
                        "type": TABLE,
                        "namespace": "company.data",
                    },
                },
            }
        ],
        "outputs": [
            {
                "namespace": "default",
                "name": "orders",
                "facets": {
                    "dataSource": {
                        "_producer": PRODUCER,
                        "_schemaURL": source,
                        "name": "default",
                        "uri": "urn:waybill:default",
                    },
                    "waybill_asset": {
                        "_producer": PRODUCER,
                        "_schemaURL": "urn:waybill:facet:asset:1-0-0",
                        "id": "orders",
                        "type": TABLE,
                    },
                },
            }
        ],
        "producer": PRODUCER,
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    }


@pytest.mark.parametrize(
    ("state", "event_type"),
    [
        ("SUCCESS", "COMPLETE"),
        ("WARNING", "COMPLETE"),
        ("FAILED", "FAIL"),
        ("KILLED", "ABORT"),
        ("CANCELLED", "ABORT"),
        ("PAUSED", "OTHER"),
    ],
)
def test_the_state_tells_the_event_type(state: str, event_type: str) -> None:
    assert only(delivery(state=state))["eventType"] == event_type


def test_start_events_go_before_the_final_one_with_the_full_datasets() -> None:
    one = delivery(inputs=[asset(metadata={"owner": "data"})])
    start, final = mapped(one, startEvents=True)
    assert (start["eventType"], start["eventTime"]) == ("START", "2026-07-01T09:00:00.000Z")
    assert (final["eventType"], final["eventTime"]) == ("COMPLETE", "2026-07-01T09:01:00.000Z")
    same = {"eventType": 0, "eventTime": 0}
    assert start | same == final | same


def test_a_failed_run_keeps_its_outputs() -> None:
    event = only(delivery(state="FAILED", outputs=[asset("orders")]))
    assert [dataset["name"] for dataset in event["outputs"]] == ["orders"]


class TestRunIds:
    def test_a_uuid_stays_in_lower_case(self) -> None:
        given = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"
        assert only(delivery(task_run_id=given))["run"]["runId"] == given.lower()

    def test_another_id_becomes_a_uuid7_of_the_start_date_and_stays_the_same(self) -> None:
        first = only(delivery(task_run_id="run 1"))["run"]["runId"]
        assert first == only(delivery(task_run_id="run 1"))["run"]["runId"]
        assert first[14] == "7"
        assert uuid7_millis(first) == int(datetime(2026, 7, 1, 9, tzinfo=UTC).timestamp()) * 1000

    def test_two_jobs_with_the_same_id_are_two_runs(self) -> None:
        ids = {only(delivery(job=job, task_run_id="1"))["run"]["runId"] for job in ("a", "b")}
        assert len(ids) == 2

    def test_uuid7_makes_every_id_one(self) -> None:
        given = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
        made = only(delivery(task_run_id=given), runIds="uuid7")["run"]["runId"]
        assert (made[14], made == given) == ("7", False)
        seven = derived_uuid7(datetime(2026, 7, 1, tzinfo=UTC), "x")
        assert only(delivery(task_run_id=seven), runIds="uuid7")["run"]["runId"] == seven

    def test_data_rentgen_gets_uuid7_by_its_preset(self) -> None:
        given = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
        assert only(delivery(task_run_id=given), backend="data-rentgen")["run"]["runId"][14] == "7"


class TestParent:
    def test_it_is_the_execution_as_a_run_of_the_flow(self) -> None:
        execution = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
        facet = only(delivery(execution_id=execution), backend="generic")["run"]["facets"]["parent"]
        assert said(facet) == {"run": {"runId": execution}, "job": {"namespace": "company.data", "name": "orders"}}

    def test_with_the_start_of_the_execution_its_id_is_a_uuid7(self) -> None:
        one = delivery(execution_start_date="2026-07-01T08:00:00.000Z")
        run = only(one, backend="generic")["run"]["facets"]["parent"]["run"]["runId"]
        assert run[14] == "7"
        assert uuid7_millis(run) == int(datetime(2026, 7, 1, 8, tzinfo=UTC).timestamp()) * 1000

    def test_without_it_is_a_uuid5_and_the_same_for_every_task(self) -> None:
        runs = {only(delivery(job=job), backend="generic")["run"]["facets"]["parent"]["run"]["runId"] for job in "ab"}
        assert len(runs) == 1
        assert runs.pop()[14] == "5"

    @pytest.mark.parametrize("backend", ["marquez", "data-rentgen"])
    def test_presets_that_it_harms_send_none_unless_asked(self, backend: str) -> None:
        one = delivery(execution_start_date="2026-07-01T08:00:00.000Z")
        assert "parent" not in only(one, backend=backend)["run"]["facets"]
        assert "parent" in only(one, backend=backend, parentRun=True)["run"]["facets"]

    def test_it_can_be_left_out(self) -> None:
        assert "parent" not in only(delivery(), backend="generic", parentRun=False)["run"]["facets"]


class TestRunAndJobFacets:
    def test_an_error_is_told_with_its_stack_trace(self) -> None:
        one = delivery(state="FAILED", error={"message": "no such table", "stackTrace": "at line 1"})
        assert said(only(one)["run"]["facets"]["errorMessage"]) == {
            "message": "no such table",
            "programmingLanguage": "unknown",
            "stackTrace": "at line 1",
        }

    def test_labels_are_tags(self) -> None:
        facet = only(delivery(labels={"team": "data"}))["run"]["facets"]["tags"]
        assert said(facet) == {"tags": [{"key": "team", "value": "data", "source": "WAYBILL"}]}

    def test_the_label_owner_owns_the_job(self) -> None:
        facet = only(delivery(labels={"owner": "data"}))["job"]["facets"]["ownership"]
        assert said(facet) == {"owners": [{"name": "data"}]}


class TestDatasetFacets:
    def facet(self, key: str, **properties: Any) -> dict[str, Any]:
        facets = only(delivery(inputs=[asset(**properties)], outputs=[]))["inputs"][0]["facets"]
        return said(facets[key])

    def test_description(self) -> None:
        assert self.facet("documentation", description="One row per order") == {"description": "One row per order"}

    @pytest.mark.parametrize(
        ("owner", "owners"),
        [
            ("data", [{"name": "data"}]),
            (["data", "ops"], [{"name": "data"}, {"name": "ops"}]),
            ({"name": "data", "type": "TEAM"}, [{"name": "data", "type": "TEAM"}]),
        ],
    )
    def test_owner(self, owner: Any, owners: list[dict[str, str]]) -> None:
        assert self.facet("ownership", metadata={"owner": owner}) == {"owners": owners}

    def test_data_source_of_a_uri_and_a_system(self) -> None:
        one = asset(metadata={"system": "postgres", "ns": "postgres://warehouse:5432"})
        mappings = {TABLE: {"namespace": "ns"}}
        event = only(delivery(inputs=[one], outputs=[]), mappings=mappings)
        facet = said(event["inputs"][0]["facets"]["dataSource"])
        assert facet == {"name": "postgres", "uri": "postgres://warehouse:5432"}

    @pytest.mark.parametrize("system", ["", "  ", 7, None])
    def test_a_data_source_never_has_a_blank_name(self, system: Any) -> None:
        metadata = {} if system is None else {"system": system}
        assert self.facet("dataSource", metadata=metadata)["name"] == "company.data"

    @pytest.mark.parametrize(
        ("columns", "fields"),
        [
            (["id", "name"], [{"name": "id"}, {"name": "name"}]),
            (
                {"id": "int", "name": {"type": "text"}},
                [{"name": "id", "type": "int"}, {"name": "name", "type": "text"}],
            ),
            (
                [{"name": "id", "type": "int", "description": "Key", "test": "unique"}],
                [{"name": "id", "type": "int", "description": "Key"}],
            ),
            (
                [{"name": "at", "type": "struct", "fields": [{"name": "day"}]}],
                [{"name": "at", "type": "struct", "fields": [{"name": "day"}]}],
            ),
        ],
    )
    def test_columns_are_the_schema(self, columns: Any, fields: list[dict[str, Any]]) -> None:
        assert self.facet("schema", metadata={"columns": columns}) == {"fields": fields}

    @pytest.mark.parametrize(
        ("tags", "expected"),
        [
            (["pii"], [{"key": "pii", "value": "true", "source": "WAYBILL"}]),
            ({"tier": 1}, [{"key": "tier", "value": "1", "source": "WAYBILL"}]),
            ([{"key": "tier", "value": "gold"}], [{"key": "tier", "value": "gold", "source": "WAYBILL"}]),
        ],
    )
    def test_tags(self, tags: Any, expected: list[dict[str, str]]) -> None:
        assert self.facet("tags", metadata={"tags": tags}) == {"tags": expected}

    @pytest.mark.parametrize("odd", [7, "x", {"a": 1}, [1, None], [[]], [{"no": "name"}], True, {"": ""}])
    def test_metadata_of_any_shape_makes_a_valid_event(self, odd: Any) -> None:
        metadata = dict.fromkeys(("owner", "columns", "tags", "system"), odd)
        only(delivery(inputs=[asset(metadata=metadata)]))

    def test_the_asset_as_it_is_now(self) -> None:
        moment = datetime(2026, 6, 1, tzinfo=UTC)
        facet = self.facet(
            "waybill_asset",
            display_name="Orders",
            description="Text",
            metadata={"owner": "data", "deep": {"list": [1, None]}},
            created=moment,
            updated=moment,
        )
        assert facet == {
            "id": "raw.orders",
            "type": TABLE,
            "namespace": "company.data",
            "displayName": "Orders",
            "description": "Text",
            "metadata": {"owner": "data", "deep": {"list": [1, None]}},
            "created": "2026-06-01T00:00:00.000Z",
            "updated": "2026-06-01T00:00:00.000Z",
        }

    def test_two_versions_of_an_asset_are_not_mixed_up(self) -> None:
        mapper = Mapper(exporter_config("http://marquez:5000"))
        owners = []
        for owner in ("old", "new", "old"):
            one = delivery(inputs=[asset(metadata={"owner": owner})], outputs=[])
            (event,) = mapper.events(one)
            owners.append(json.loads(event.body)["inputs"][0]["facets"]["ownership"]["owners"][0]["name"])
        assert owners == ["old", "new", "old"]


class TestMappings:
    MAPPINGS = {TABLE: {"namespace": "lineage_namespace", "name": "lineage_name"}}  # noqa: RUF012 - never changed

    def test_a_mapped_type_takes_both_names_from_its_metadata_and_keeps_its_own_as_a_symlink(self) -> None:
        metadata = {"lineage_namespace": "postgres://warehouse:5432", "lineage_name": "analytics.public.orders"}
        event = only(delivery(inputs=[asset(metadata=metadata)], outputs=[]), mappings=self.MAPPINGS)
        (dataset,) = event["inputs"]
        assert (dataset["namespace"], dataset["name"]) == ("postgres://warehouse:5432", "analytics.public.orders")
        assert said(dataset["facets"]["symlinks"]) == {
            "identifiers": [{"namespace": "company.data", "name": "raw.orders", "type": "ASSET"}]
        }

    def test_other_types_keep_the_defaults(self) -> None:
        event = only(delivery(inputs=[asset(type="Other")], outputs=[]), mappings=self.MAPPINGS)
        assert event["inputs"][0]["name"] == "raw.orders"
        assert "symlinks" not in event["inputs"][0]["facets"]

    @pytest.mark.parametrize("value", [None, "", "  ", ["x"], {"a": 1}, True])
    def test_a_mapped_asset_without_its_key_fails_the_export(self, value: Any) -> None:
        metadata = {"lineage_namespace": "postgres://warehouse:5432"} | (
            {} if value is None else {"lineage_name": value}
        )
        with pytest.raises(ExporterStopped) as caught:
            mapped(delivery(inputs=[asset(metadata=metadata)]), mappings=self.MAPPINGS)
        assert str(caught.value) == (
            f"asset raw.orders is of the mapped type {TABLE} and has no text under its metadata key 'lineage_name'; "
            "add the key where the asset is declared"
        )

    def test_a_namespace_is_rewritten_for_the_destination(self) -> None:
        rewrites = [{"pattern": r"company\.(\w+)", "replacement": r"lake://\1"}]
        event = only(delivery(inputs=[asset()], outputs=[asset("x", namespace="other")]), namespaceRewrites=rewrites)
        assert [event[side][0]["namespace"] for side in ("inputs", "outputs")] == ["lake://data", "other"]

    def test_global_assets_have_the_default_namespace(self) -> None:
        event = only(delivery(inputs=[asset(namespace=None)], outputs=[]), defaultNamespace="everywhere")
        assert event["inputs"][0]["namespace"] == "everywhere"


class TestSizes:
    def test_facets_are_dropped_in_order_until_the_event_fits_and_a_facet_says_so(self) -> None:
        metadata = {"owner": "data", "columns": [f"column_{n}" for n in range(400)]}
        big = asset(description="x" * 300, metadata=metadata)
        event = only(delivery(inputs=[big], outputs=[]), maxEventBytes=15_000)
        assert "waybill_asset" not in event["inputs"][0]["facets"]
        assert len(event["inputs"][0]["facets"]["schema"]["fields"]) == 400
        assert event["run"]["facets"]["waybill_trimmed"]["datasetFacets"] == ["waybill_asset"]
        event = only(delivery(inputs=[big], outputs=[]), maxEventBytes=3_000)
        assert sorted(event["inputs"][0]["facets"]) == ["dataSource", "documentation", "ownership"]
        assert event["run"]["facets"]["waybill_trimmed"]["datasetFacets"] == ["waybill_asset", "tags", "schema"]

    def test_an_event_that_does_not_fit_at_all_cannot_be_sent(self) -> None:
        inputs = [asset(f"table_{number}") for number in range(100)]
        with pytest.raises(
            CannotBeSent, match=r"larger than the 3000 bytes that marquez takes, even without the facets"
        ):
            mapped(delivery(inputs=inputs), maxEventBytes=3_000)

    def test_datazones_limit_holds(self) -> None:
        config = exporter_config(None, backend="datazone", domainId="dzd_1")
        inputs = [asset(f"table_{number}", description="d" * 500) for number in range(400)]
        (event,) = Mapper(config).events(delivery(inputs=inputs, outputs=[]))
        assert len(event.body) <= 300_000
        assert len(json.loads(event.body)["inputs"]) == 400


class TestWhatADestinationTakes:
    def test_event_types_filter(self) -> None:
        assert mapped(delivery(state="FAILED"), eventTypes=["COMPLETE"]) == []
        assert [event["eventType"] for event in mapped(delivery(), eventTypes=["START"], startEvents=True)] == ["START"]

    @pytest.mark.parametrize("backend", ["snowflake", "openmetadata"])
    def test_presets_take_complete_only(self, backend: str) -> None:
        assert mapped(delivery(state="FAILED"), backend=backend) == []
        assert len(mapped(delivery(), backend=backend)) == 1

    def test_openmetadata_gets_nothing_with_one_side_only(self) -> None:
        assert mapped(delivery(outputs=[]), backend="openmetadata") == []

    def test_times_that_data_rentgen_does_not_keep_cannot_be_sent(self) -> None:
        one = delivery(task_run_id="x", start_date="2019-01-01T00:00:00.000Z")
        with pytest.raises(CannotBeSent, match="its time is not from 5 years ago"):
            mapped(one, backend="data-rentgen")


def test_a_time_without_zone_is_utc() -> None:
    one = delivery()
    one = replace(one, event=replace(one.event, end_date="2026-07-01T09:01:00"))
    assert only(one)["eventTime"] == "2026-07-01T09:01:00Z"


def test_every_facet_of_the_spec_has_a_validator() -> None:
    assert {place for place, _ in facet_validators()} == {"run", "job", "dataset", "input", "output"}
    assert len(facet_validators()) == 40  # of 38 files: `lineage` and `subset` stand in two places each
