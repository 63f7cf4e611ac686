"""The functions, what invokes them, and what happens to an invocation that fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.template.conftest import Resources, of_type
from tests.template.intrinsics import Resolver
from waybill.model.flow import parse_flow

FUNCTIONS = ("RecorderFunction", "ShipperFunction", "FileExporterFunction", "CatalogFunction")


def test_the_functions_are_those_of_the_design(functions: Resources) -> None:
    assert set(functions) == set(FUNCTIONS)


def test_every_function_runs_on_python_3_13_on_arm_unless_told_otherwise(
    template: dict[str, Any], functions: Resources
) -> None:
    for function in functions.values():
        assert function["Properties"]["Runtime"] == "python3.13"
        assert function["Properties"]["Handler"] == "app.handle"
        assert Resolver(template).resolve(function["Properties"]["Architectures"]) == ["arm64"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_logs_to_a_group_of_its_own_that_forgets(resources: Resources, name: str) -> None:
    group = name.replace("Function", "Log")
    assert resources[name]["Properties"]["LoggingConfig"]["LogGroup"] == {"Ref": group}
    assert resources[group]["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_asynchronous_invocation_that_fails_for_good_is_kept(resources: Resources, name: str) -> None:
    destination = resources[f"{name}EventInvokeConfig"]["Properties"]["DestinationConfig"]["OnFailure"]["Destination"]
    assert destination == {"Fn::GetAtt": ["FailureQueue", "Arn"]}


@pytest.mark.parametrize("name", ["ShipperFunction", "FileExporterFunction"])
def test_the_next_run_is_the_retry_of_a_shipment(resources: Resources, name: str) -> None:
    assert resources[f"{name}EventInvokeConfig"]["Properties"]["MaximumRetryAttempts"] == 0


def test_a_queued_batch_fails_report_by_report_and_not_before_the_recorder_is_done(resources: Resources) -> None:
    mapping = resources["RecorderFunctionQueuedReport"]["Properties"]
    assert mapping["EventSourceArn"] == {"Fn::GetAtt": ["ReportQueue", "Arn"]}
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    queue = resources["ReportQueue"]["Properties"]
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {"Fn::GetAtt": ["ReportDeadLetterQueue", "Arn"]}
    assert queue["VisibilityTimeout"] >= 6 * resources["RecorderFunction"]["Properties"]["Timeout"]


def test_reports_on_the_bus_reach_the_recorder_whatever_their_source(resources: Resources) -> None:
    rule = resources["RecorderFunctionTaskRunReport"]["Properties"]
    assert rule["EventBusName"] == {"Ref": "LineageBus"}
    assert rule["EventPattern"] == {"detail-type": ["Task Run Report"]}


def test_every_rule_keeps_what_it_cannot_deliver(resources: Resources) -> None:
    for rule in of_type(resources, "AWS::Events::Rule").values():
        (target,) = rule["Properties"]["Targets"]
        assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": ["FailureQueue", "Arn"]}}


@pytest.mark.parametrize(
    ("rule", "state", "schedule"),
    [
        ("ShipperFunctionShipLineage", "ShipLineageState", "rate(1 hour)"),
        ("FileExporterFunctionExportLineage", "ExportLineageState", "rate(1 day)"),
    ],
)
def test_a_schedule_is_off_until_its_parameter_turns_it_on(
    template: dict[str, Any], resources: Resources, rule: str, state: str, schedule: str
) -> None:
    properties = resources[rule]["Properties"]
    assert Resolver(template).resolve(properties["ScheduleExpression"]) == schedule
    assert Resolver(template).resolve(properties["State"]) == "DISABLED"
    assert Resolver(template, {state: "ENABLED"}).resolve(properties["State"]) == "ENABLED"


def scheduled(template: dict[str, Any], resources: Resources, rule: str, **parameters: str) -> Any:
    """The document that a schedule hands its function, with some parameters."""
    (target,) = resources[rule]["Properties"]["Targets"]
    return json.loads(Resolver(template, parameters).resolve(target["Input"]))


def test_the_hourly_flow_is_the_guides_with_the_parameters_in_it(
    template: dict[str, Any], resources: Resources
) -> None:
    document = scheduled(template, resources, "ShipperFunctionShipLineage", OpenLineageUri="http://marquez:5000")
    assert document == {
        "id": "ship_lineage_to_marquez",
        "namespace": "company.platform",
        "tasks": [
            {
                "id": "ship_lineage",
                "type": "AssetShipper",
                "lookbackPeriod": "P7D",
                "assetExporters": [
                    {
                        "id": "marquez",
                        "type": "OpenLineageAssetExporter",
                        "backend": "marquez",
                        "uri": "http://marquez:5000",
                    }
                ],
            }
        ],
    }
    assert parse_flow(document).id == "ship_lineage_to_marquez"


def test_datazone_gets_its_domain_in_place_of_an_address(template: dict[str, Any], resources: Resources) -> None:
    document = scheduled(
        template,
        resources,
        "ShipperFunctionShipLineage",
        OpenLineageBackend="datazone",
        DataZoneDomainId="dzd_4ki2yxample",
    )
    assert document["tasks"][0]["assetExporters"] == [
        {
            "id": "datazone",
            "type": "OpenLineageAssetExporter",
            "backend": "datazone",
            "domainId": "dzd_4ki2yxample",
        }
    ]
    assert parse_flow(document).id == "ship_lineage_to_datazone"


@pytest.mark.parametrize(
    ("parameters", "bucket", "key"),
    [({}, "<LineageBucket>", "lineage/"), ({"ExportBucket": "company-lineage"}, "company-lineage", "kestra/")],
)
def test_the_daily_flow_files_json_in_the_stacks_bucket_or_the_users(
    template: dict[str, Any], resources: Resources, parameters: dict[str, str], bucket: str, key: str
) -> None:
    document = scheduled(template, resources, "FileExporterFunctionExportLineage", **parameters)
    assert document == {
        "id": "ship_lineage_to_s3",
        "namespace": "company.platform",
        "tasks": [
            {
                "id": "export_lineage",
                "type": "AssetShipper",
                "lookbackPeriod": "P7D",
                "assetExporters": [
                    {
                        "id": "file",
                        "type": "FileAssetExporter",
                        "format": "JSON",
                        "partitioning": "day",
                        "bucket": bucket,
                        "key": key,
                    }
                ],
            }
        ],
    }


@pytest.mark.parametrize(
    ("rule", "parameter"),
    [("ShipperFunctionShipLineage", "ShipFlow"), ("FileExporterFunctionExportLineage", "ExportFlow")],
)
def test_a_pointer_to_a_flow_goes_as_it_is(
    template: dict[str, Any], resources: Resources, rule: str, parameter: str
) -> None:
    document = scheduled(template, resources, rule, **{parameter: "ssm:/waybill/flows/nightly"})
    assert document == {"flow": "ssm:/waybill/flows/nightly"}


@pytest.mark.parametrize(("stage", "declared"), [("local", True), ("dev", False), ("prod", False)])
def test_the_address_of_an_emulator_is_declared_for_local_alone(
    template: dict[str, Any], functions: Resources, stage: str, declared: bool
) -> None:
    for function in functions.values():
        variables = Resolver(template, {"Stage": stage}).resolve(function["Properties"]["Environment"]["Variables"])
        assert ("AWS_ENDPOINT_URL" in variables) is declared


def test_the_catalog_is_asked_with_iam_credentials_only(resources: Resources) -> None:
    body = resources["CatalogApi"]["Properties"]["Body"]
    (operation,) = body["paths"]["$default"].values()
    assert operation["security"] == [{"AWS_IAM": []}]
    assert operation["x-amazon-apigateway-integration"]["payloadFormatVersion"] == "2.0"
    assert resources["CatalogApiApiGatewayDefaultStage"]["Properties"]["StageName"] == "$default"
