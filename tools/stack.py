"""A stack on an emulator: put there from the real template, and used by the logical ids of its resources.

stack = deploy(emulator)
stack.names["LineageTable"]                    # its physical name
stack.invoke("ShipperFunction", flow)          # the function's answer
stack.client("dynamodb").scan(TableName=stack.names["LineageTable"])
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from tools.build import build, sam
from tools.emulator import REGION, ROOT, client_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.emulator import Emulator

STACK_NAME = "waybill"
LONGEST_INVOCATION_SECONDS = 960
_UNNAMED = "Runtime.HandlerError"


class FunctionFailed(Exception):
    """A function ended with an error.

    Attributes:
        error_type: `errorType` of the answer, such as `InvalidReport`.
        error_message: `errorMessage` of the answer, one line per fault.
    """

    def __init__(self, function: str, answer: Mapping[str, Any]) -> None:
        self.error_type = str(answer.get("errorType", ""))
        self.error_message = str(answer.get("errorMessage", ""))
        self.stack_trace: list[str] = list(answer.get("stackTrace") or [])
        super().__init__(f"{function}: {self.error_type}: {self.error_message}\n{''.join(self.stack_trace)}")


@dataclass(frozen=True)
class Stack:
    """A deployed stack, found through CloudFormation.

    Attributes:
        url: the address of the emulator that it is on.
        name: its name there.
    """

    url: str
    name: str = STACK_NAME

    def client(self, service: str) -> Any:
        """Return a boto3 client of a service, such as `lambda`. The same one each time; it may be shared by threads."""
        return _client(self.url, service)

    @cached_property
    def names(self) -> dict[str, str]:
        """The physical name of each resource by its logical id."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=self.name)
        return {
            resource["LogicalResourceId"]: resource["PhysicalResourceId"]
            for page in pages
            for resource in page["StackResourceSummaries"]
        }

    @cached_property
    def outputs(self) -> dict[str, str]:
        """The value of each output by its key."""
        (stack,) = self.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}

    @property
    def catalog_url(self) -> str:
        """The address of the catalog's API by path, for names below `localhost` are not known everywhere."""
        return f"{self.url}/_aws/execute-api/{self.names['CatalogApi']}/$default"

    def invoke(self, function: str, payload: Any) -> Any:
        """Invoke a function, named by its logical id, and return its answer.

        Raises:
            FunctionFailed: it ended with an error.
        """
        answer = self.client("lambda").invoke(
            FunctionName=self.names[function], LogType="Tail", Payload=json.dumps(payload).encode()
        )
        body = json.loads(answer["Payload"].read() or b"null")
        if answer.get("FunctionError"):
            log = base64.b64decode(answer.get("LogResult", "")).decode(errors="replace")
            raise FunctionFailed(function, _with_error_type(body, log))
        return body


def deploy(emulator: Emulator, *, name: str = STACK_NAME, parameters: Mapping[str, str] | None = None) -> Stack:
    """Build the application for this machine, unless that is done, and deploy it with the environment `local`.

    Args:
        emulator: where to; or whatever else has a `url`.
        name: of the stack.
        parameters: values for the template's parameters, besides those of the environment `local`.

    Raises:
        EmulatorError: the build or the deployment failed; its output is in the message.
    """
    return deploy_to(emulator.url, name=name, parameters=parameters)


def deploy_to(url: str, *, name: str = STACK_NAME, parameters: Mapping[str, str] | None = None) -> Stack:
    """Do the same as `deploy` with an emulator that somebody else has started."""
    values = {"Stage": "local", "SettleSeconds": "2", "EmulatorUrl": url} | dict(parameters or {})
    template = build("host")
    sam(
        *("deploy", "--config-file", str(ROOT / "samconfig.toml"), "--config-env", "local"),
        *("--template-file", str(template), "--stack-name", name),
        *("--parameter-overrides", *(f"{key}={json.dumps(value)}" for key, value in values.items())),
        environment=client_environment(url),
    )
    stack = Stack(url, name)
    _route(stack)
    return stack


def _with_error_type(body: dict[str, Any], log: str) -> dict[str, Any]:
    """Put in the name of the exception, as Lambda does; the emulator gives it only in the traceback of its log."""
    if body.get("errorType") != _UNNAMED:
        return body
    first_line = str(body.get("errorMessage", "")).split("\n", 1)[0]
    raised = re.findall(rf"^(?:\w+\.)*(\w+): {re.escape(first_line)}$", log, re.MULTILINE)
    return body | {"errorType": raised[-1] if raised else _UNNAMED, "stackTrace": [log]}


def _route(stack: Stack) -> None:
    """Give the catalog's API the route of its template: ministack reads no routes from the body of an HTTP API."""
    gateway, api = stack.client("apigatewayv2"), stack.names["CatalogApi"]
    if gateway.get_routes(ApiId=api)["Items"]:
        return
    name = stack.outputs["CatalogFunctionName"]
    function = stack.client("lambda").get_function(FunctionName=name)["Configuration"]["FunctionArn"]
    integration = gateway.create_integration(
        ApiId=api, IntegrationType="AWS_PROXY", IntegrationUri=function, PayloadFormatVersion="2.0"
    )
    target = f"integrations/{integration['IntegrationId']}"
    gateway.create_route(ApiId=api, RouteKey="$default", AuthorizationType="AWS_IAM", Target=target)


@cache
def _client(url: str, service: str) -> Any:
    import boto3
    from botocore.config import Config

    environment = client_environment(url)
    return boto3.Session().client(
        service,  # type: ignore[call-overload]
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        config=Config(
            read_timeout=LONGEST_INVOCATION_SECONDS, retries={"total_max_attempts": 1}, max_pool_connections=64
        ),
    )
