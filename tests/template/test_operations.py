"""What watches the stack, and how new code gets into it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.template.conftest import Resources, expanded, of_type
from tests.template.intrinsics import Resolver
from tools.emulator import ROOT
from waybill.model.flow import parse_flow

FUNCTIONS = ("RecorderFunction", "ShipperFunction", "FileExporterFunction", "CatalogFunction")
OF_SHIPPING = {
    "LagAlarm": "LagSeconds",
    "HalfOfRetentionAlarm": "RetentionUsed",
    "ExporterStoppedAlarm": "ExporterStopped",
    "DeadLettersAlarm": "DeadLetters",
    "BreakerOpenedAlarm": "BreakerOpened",
    "LateCommitsAlarm": "LateCommits",
    "ParkedAlarm": "Parked",
}
TOPIC = "arn:aws:sns:us-east-1:000000000000:alarms"


def alarms(template: dict[str, Any], resources: Resources, **parameters: str) -> Resources:
    """The alarms by logical id, with some parameters."""
    resolver = Resolver(template, {"AWS::StackName": "waybill"} | parameters)
    return {name: resolver.resolve(one["Properties"]) for name, one in of_type(resources, ALARM).items()}


ALARM = "AWS::CloudWatch::Alarm"


def test_each_function_is_watched_for_errors_throttles_and_coming_near_its_timeout(
    template: dict[str, Any], resources: Resources
) -> None:
    found = alarms(template, resources)
    for function in FUNCTIONS:
        name = function.removesuffix("Function")
        watched = {metric: found[f"{name}{metric}Alarm"] for metric in ("Errors", "Throttles", "Duration")}
        for metric, alarm in watched.items():
            assert alarm["MetricName"] == metric
            assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": f"<{function}>"}]
        timeout = 1000 * resources[function]["Properties"]["Timeout"]
        assert 0.75 * timeout < watched["Duration"]["Threshold"] < timeout
        assert watched["Errors"]["Threshold"] == watched["Throttles"]["Threshold"] == 0


def test_shipping_is_watched_by_the_metrics_of_this_stack_alone(template: dict[str, Any], resources: Resources) -> None:
    found = alarms(template, resources)
    assert {name: alarm["MetricName"] for name, alarm in found.items() if alarm["Namespace"] == "Waybill"} == (
        OF_SHIPPING
    )
    for name in OF_SHIPPING:
        assert found[name]["Dimensions"] == [{"Name": "service", "Value": "waybill"}]
    services = {
        Resolver(template, {"AWS::StackName": "waybill"}).resolve(function["Properties"]["Environment"]["Variables"])[
            "POWERTOOLS_SERVICE_NAME"
        ]
        for function in of_type(resources, "AWS::Lambda::Function").values()
    }
    assert services == {"waybill"}


def test_the_lag_that_is_borne_and_the_half_of_retention_are_thresholds(
    template: dict[str, Any], resources: Resources
) -> None:
    found = alarms(template, resources, LagAlarmSeconds="7200")
    assert (found["LagAlarm"]["Threshold"], found["HalfOfRetentionAlarm"]["Threshold"]) == ("7200", 50)


def test_every_queue_of_failures_is_watched(template: dict[str, Any], resources: Resources) -> None:
    found = alarms(template, resources)
    watched = {name: alarm for name, alarm in found.items() if alarm["Namespace"] == "AWS/SQS"}
    assert {name: (alarm["MetricName"], alarm["Dimensions"][0]["Value"]) for name, alarm in watched.items()} == {
        "ReportsWaitAlarm": ("ApproximateAgeOfOldestMessage", "<ReportQueue.QueueName>"),
        "ReportDeadLettersAlarm": ("ApproximateNumberOfMessagesVisible", "<ReportDeadLetterQueue.QueueName>"),
        "FailuresAlarm": ("ApproximateNumberOfMessagesVisible", "<FailureQueue.QueueName>"),
    }


SILENT = {
    "ShipLineageSilentAlarm": ("ShipLineageState", "<ShipperFunctionShipLineage>"),
    "ExportLineageSilentAlarm": ("ExportLineageState", "<FileExporterFunctionExportLineage>"),
}


@pytest.mark.parametrize("name", SILENT)
def test_a_schedule_that_is_on_and_invokes_nothing_is_noticed(
    template: dict[str, Any], resources: Resources, name: str
) -> None:
    state, rule = SILENT[name]
    alarm = alarms(template, resources, **{state: "ENABLED"})[name]
    watched = (alarm["Namespace"], alarm["MetricName"], alarm["Dimensions"], alarm["TreatMissingData"])
    assert watched == ("AWS/Events", "Invocations", [{"Name": "RuleName", "Value": rule}], "breaching")
    assert not Resolver(template).holds(resources[name]["Condition"])


def treated_missing(name: str) -> str:
    """How an alarm takes it that there is no figure: runs tell of lag and stops, and in between nothing has changed."""
    if name in SILENT:
        return "breaching"
    return "ignore" if name in ("LagAlarm", "HalfOfRetentionAlarm", "ExporterStoppedAlarm") else "notBreaching"


def test_every_alarm_says_what_it_means_and_goes_to_the_topic(template: dict[str, Any], resources: Resources) -> None:
    for name, alarm in alarms(template, resources).items():
        assert alarm["AlarmDescription"].endswith(".")
        assert "AlarmActions" not in alarm
        assert alarm["TreatMissingData"] == treated_missing(name)
    for alarm in alarms(template, resources, AlarmTopicArn=TOPIC).values():
        assert alarm["AlarmActions"] == [TOPIC]


def test_the_dashboard_shows_the_lag_of_each_exporter_and_every_metric_that_is_watched(
    template: dict[str, Any], resources: Resources
) -> None:
    body = resources["Dashboard"]["Properties"]["DashboardBody"]
    dashboard = json.loads(Resolver(template, {"AWS::StackName": "waybill", "AWS::Region": "us-east-1"}).resolve(body))
    (lag, *_) = dashboard["widgets"]
    assert lag["properties"]["metrics"] == [
        [
            {
                "expression": 'SEARCH(\'{Waybill,service,flow,exporter} service="waybill" MetricName="LagSeconds"\', '
                "'Maximum', 300)"
            }
        ]
    ]
    text = json.dumps(dashboard)
    for alarm in alarms(template, resources).values():
        # Invocations and the age of a report are seen by what the other lines show.
        if alarm["MetricName"] not in ("Invocations", "ApproximateAgeOfOldestMessage"):
            assert f'"{alarm["MetricName"]}"' in text.replace('\\"', '"'), alarm["MetricName"]
    places = [(widget["x"], widget["y"]) for widget in dashboard["widgets"]]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_invokes_a_function_invokes_its_alias(resources: Resources, function: str) -> None:
    alias = {"Ref": f"{function}Aliaslive"}
    assert resources[f"{function}Aliaslive"]["Properties"]["Name"] == "live"
    rules = [
        target["Arn"]
        for rule in of_type(resources, "AWS::Events::Rule").values()
        for target in rule["Properties"]["Targets"]
        if function in json.dumps(target["Arn"])
    ]
    assert all(arn == alias for arn in rules)
    permissions = of_type(resources, "AWS::Lambda::Permission").values()
    allowed = [one["Properties"]["FunctionName"] for one in permissions]
    assert {json.dumps(one) for one in allowed if function in json.dumps(one)} == {json.dumps(alias)}


def test_code_moves_at_once_unless_asked_to_move_gradually(resources: Resources) -> None:
    assert not of_type(resources, "AWS::CodeDeploy::DeploymentGroup")
    gradual = expanded(GradualDeployment="true", DeploymentType="Linear10PercentEvery1Minute")
    groups = of_type(gradual, "AWS::CodeDeploy::DeploymentGroup")
    assert set(groups) == {f"{function}DeploymentGroup" for function in FUNCTIONS}
    for function in FUNCTIONS:
        group = groups[f"{function}DeploymentGroup"]["Properties"]
        alarm = f"{function.removesuffix('Function')}ErrorsAlarm"
        assert group["AlarmConfiguration"] == {"Enabled": True, "Alarms": [{"Name": {"Ref": alarm}}]}
        assert group["ServiceRoleArn"] == {"Fn::GetAtt": ["DeploymentRole", "Arn"]}
        assert "Linear10PercentEvery1Minute" in json.dumps(group["DeploymentConfigName"])


def test_a_layer_that_changes_makes_a_new_version() -> None:
    def versions(layer: str) -> set[str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tests.template.conftest.SOMEWHERE", f"s3://artifacts/{layer}")
            return set(of_type(expanded(), "AWS::Lambda::Version"))

    assert len(versions("old")) == len(FUNCTIONS)
    assert not versions("old") & versions("new")


@pytest.mark.parametrize("function", ["RecorderFunction", "ShipperFunction", "FileExporterFunction"])
def test_the_net_under_an_alias_is_under_the_bare_name_too(resources: Resources, function: str) -> None:
    alias = dict(resources[f"{function}EventInvokeConfig"]["Properties"])
    bare = dict(resources[f"{function.removesuffix('Function')}Unqualified"]["Properties"])
    assert (alias.pop("Qualifier"), bare.pop("Qualifier")) == ("live", "$LATEST")
    assert alias == bare


def test_only_the_shipper_runs_in_a_vpc_and_only_when_told_so(template: dict[str, Any], resources: Resources) -> None:
    inside = Resolver(template, {"SubnetIds": "subnet-0a1,subnet-0b2", "SecurityGroupIds": "sg-0c3"})
    for function in FUNCTIONS:
        properties = resources[function]["Properties"]
        assert "VpcConfig" not in Resolver(template).resolve(properties)
        assert inside.resolve(properties).get("VpcConfig") == (
            {"SubnetIds": ["subnet-0a1", "subnet-0b2"], "SecurityGroupIds": ["sg-0c3"]}
            if function == "ShipperFunction"
            else None
        )


@pytest.mark.parametrize("function", ["ShipperFunction", "FileExporterFunction"])
def test_rules_named_after_the_stack_may_run_flows(
    template: dict[str, Any], resources: Resources, function: str
) -> None:
    permission = resources[f"{function.removesuffix('Function')}Schedules"]["Properties"]
    resolver = Resolver(
        template,
        {"AWS::StackName": "waybill", "AWS::Partition": "aws", "AWS::Region": "r", "AWS::AccountId": "1"},
    )
    assert resolver.resolve(permission["SourceArn"]) == "arn:aws:events:r:1:rule/waybill-*"
    assert permission["Principal"] == "events.amazonaws.com"


def test_the_second_flow_of_the_documents_becomes_a_rule_beside_the_first() -> None:
    text = (ROOT / "docs" / "migrate-from-kestra.md").read_text()
    added = re.search(r"^```yaml-template\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert added is not None
    template = (ROOT / "template.yaml").read_text()
    first = "        ShipLineage:\n          Type: Schedule\n"
    assert template.count(first) == 1
    found = expanded(template.replace(first, added[1] + first))
    rule = found["ShipperFunctionShipToDataHub"]["Properties"]
    (target,) = rule["Targets"]
    assert rule["ScheduleExpression"] == "rate(2 hours)"
    assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": ["FailureQueue", "Arn"]}}
    assert parse_flow(json.loads(target["Input"])).id == "ship_lineage_to_datahub"
    assert "ShipperFunctionShipLineage" in found


@pytest.mark.parametrize(
    ("level", "passes"), [("DEBUG", "DEBUG"), ("INFO", "INFO"), ("WARN", "INFO"), ("ERROR", "INFO")]
)
def test_metrics_pass_whatever_the_level_of_the_logs(
    template: dict[str, Any], resources: Resources, level: str, passes: str
) -> None:
    """Lambda takes a line without a level, as metrics are, for INFO."""
    resolver = Resolver(template, {"LogLevel": level})
    functions = [resolver.resolve(one["Properties"]) for one in of_type(resources, "AWS::Lambda::Function").values()]
    assert {one["LoggingConfig"]["ApplicationLogLevel"] for one in functions} == {passes}
    assert {one["Environment"]["Variables"]["POWERTOOLS_LOG_LEVEL"] for one in functions} == {level}
