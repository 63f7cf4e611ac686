"""The deployed stack as commands see it: its names, its settings, its functions."""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waybill.errors import WaybillError
from waybill.settings import Settings, read_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

StackName = Annotated[str, typer.Option("--stack", envvar="WAYBILL_STACK", help="Name of the CloudFormation stack.")]
"""The option of every command that works on a stack: `def command(stack: StackName = DEFAULT_STACK)`."""

DEFAULT_STACK = "waybill"
LONGEST_INVOCATION = 15 * 60 + 5
RESOURCES = ("LineageTable", "CatalogTable", "KeyValueTable", "LineageBucket", "LineageBus")
PARAMETERS = ("SettleSeconds", "LineageRetentionDays", "ContinueRuns", "OffsetStore", "LogShards")


class StackNotFound(WaybillError):
    """There is no such stack, or it lacks a resource. The message says what to do."""


class FunctionFailed(WaybillError):
    """A function ended with an error.

    Attributes:
        error_type: the `errorType` of the answer, such as `InvalidReport`.
    """

    def __init__(self, error_type: str, message: str) -> None:
        self.error_type = error_type
        super().__init__(f"{error_type}\n{message}" if message else error_type)


class Stack:
    """A deployed stack. Its names are found by logical id, once.

    Args:
        name: the name of the CloudFormation stack.
    """

    def __init__(self, name: str = DEFAULT_STACK) -> None:
        self.name = name

    @cached_property
    def resources(self) -> dict[str, str]:
        """The physical id of each resource by its logical id.

        Raises:
            StackNotFound: no stack has the name.
        """
        pages = _client("cloudformation").get_paginator("list_stack_resources")
        with self._named():
            summaries = [
                each for page in pages.paginate(StackName=self.name) for each in page["StackResourceSummaries"]
            ]
        return {each["LogicalResourceId"]: each.get("PhysicalResourceId", "") for each in summaries}

    @cached_property
    def _description(self) -> dict[str, Any]:
        with self._named():
            return dict(_client("cloudformation").describe_stacks(StackName=self.name)["Stacks"][0])

    @cached_property
    def outputs(self) -> dict[str, str]:
        """The outputs of the stack."""
        return {each["OutputKey"]: each["OutputValue"] for each in self._description.get("Outputs", [])}

    @cached_property
    def parameters(self) -> dict[str, str]:
        """The parameters that the stack was deployed with."""
        return {
            each["ParameterKey"]: each.get("ParameterValue", "") for each in self._description.get("Parameters", [])
        }

    @cached_property
    def settings(self) -> Settings:
        """The names and settings that the stack's functions have, too."""
        environment = {_variable(name): self.physical_id(name) for name in RESOURCES}
        environment |= {_variable(name): self.parameters[name] for name in PARAMETERS if name in self.parameters}
        return read_settings({**environment, "STACK_NAME": self.name})

    def physical_id(self, logical_id: str) -> str:
        """Return the name of a resource.

        Raises:
            StackNotFound: the stack has no such resource.
        """
        try:
            return self.resources[logical_id]
        except KeyError:
            raise StackNotFound(f"stack {self.name} has no {logical_id}; is it a stack of Waybill?") from None

    def client(self, service: str) -> Any:
        """Return the client of an AWS service."""
        return _client(service)

    def invoke(self, logical_id: str, payload: Any) -> Any:
        """Invoke a function, wait for it, and return its answer.

        Args:
            logical_id: such as `RecorderFunction`.
            payload: anything that JSON can say.

        Raises:
            FunctionFailed: the function ended with an error.
        """
        answer = _patient_lambda().invoke(
            FunctionName=self.physical_id(logical_id), Payload=json.dumps(payload).encode()
        )
        content = json.loads(answer["Payload"].read() or b"null")
        if "FunctionError" in answer:
            said = content if isinstance(content, dict) else {}
            raise FunctionFailed(str(said.get("errorType", logical_id)), str(said.get("errorMessage", "")))
        return content

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Turn what CloudFormation says of a name that it does not know into advice."""
        from botocore.exceptions import ClientError

        try:
            yield
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationError":
                raise
            raise StackNotFound(
                f"there is no stack {self.name} here; deploy it, or name it with --stack or WAYBILL_STACK"
            ) from None


def _client(service: str) -> Any:
    from waybill.store.aws import client

    return client(service)


def _patient_lambda() -> Any:
    """Return a client that waits as long as a function may run, and never invokes twice."""
    from waybill.store.aws import single_try_client

    return single_try_client("lambda", LONGEST_INVOCATION)


def _variable(name: str) -> str:
    """Return the environment variable that carries a resource or parameter: `LINEAGE_TABLE` for `LineageTable`."""
    return "".join(f"_{letter}" if letter.isupper() else letter for letter in name).strip("_").upper()
