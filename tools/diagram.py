"""Draws the template: `python -m tools.diagram` writes the pictures of docs/architecture.md anew.

What invokes what, what goes where when it fails, and which role may read or write what: all of it is read from
template.yaml, so that a picture cannot say what the stack does not do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from samtranslator.yaml_helper import yaml_parse

from tools.emulator import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT = ROOT / "docs" / "architecture.md"
_SHAPES = {
    "AWS::Serverless::Function": "[{}]",
    "AWS::DynamoDB::Table": "[({})]",
    "AWS::S3::Bucket": "[({})]",
    "AWS::SQS::Queue": "[/{}/]",
    "AWS::Events::EventBus": "([{}])",
    "AWS::Serverless::HttpApi": "([{}])",
}
_READS = re.compile(r":(Get|BatchGet|Query|Scan|List|ConditionCheck|Receive)")
_OF_LAMBDA = ("PutAsideFailures", "TakeQueuedReports", "WriteLog")
"""Statements that Lambda uses in a function's name; the other picture shows them."""


def main() -> None:
    """Write the pictures into the page."""
    DOCUMENT.write_text(drawn(DOCUMENT.read_text()))


def drawn(text: str) -> str:
    """Return a page with each picture between its comments drawn anew."""
    resources = yaml_parse((ROOT / "template.yaml").read_text())["Resources"]
    pictures = {"invocations": list(_invocations(resources)), "permissions": list(_permissions(resources))}
    for name, edges in pictures.items():
        picture = f"```mermaid\n{_flowchart(resources, edges)}```\n"
        text = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda match, picture=picture: f"{match[1]}{picture}{match[2]}",  # type: ignore[misc]
            text,
            flags=re.DOTALL,
        )
    return text


def _flowchart(resources: dict[str, Any], edges: list[tuple[str, str, str]]) -> str:
    used = {name for start, end, _ in edges for name in (start, end)}
    nodes = [
        f"  {name}{_SHAPES[resource['Type']].format(name)}"
        for name, resource in resources.items()
        if name in used and resource["Type"] in _SHAPES
    ]
    return "\n".join(("flowchart LR", *nodes, *(f"  {start} {arrow} {end}" for start, end, arrow in edges))) + "\n"


def _invocations(resources: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield what starts a function, and where goes what fails."""
    for name, resource in resources.items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::SQS::Queue" and "RedrivePolicy" in properties:
            tries = properties["RedrivePolicy"]["maxReceiveCount"]
            (target,) = _named(properties["RedrivePolicy"]["deadLetterTargetArn"])
            yield name, target, f'-. "after {tries} tries" .->'
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        for event, source in properties.get("Events", {}).items():
            yield from _started(name, event, source)
        for queue in _named(properties["EventInvokeConfig"]["DestinationConfig"]["OnFailure"]["Destination"]):
            yield name, queue, "-. failed .->"


def _started(function: str, event: str, source: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    if source["Type"] == "Schedule":
        yield f"{event}{{{{{event}}}}}", function, "-->"
        return
    for key in ("EventBusName", "Queue", "ApiId"):
        for start in _named(source["Properties"].get(key, "")):
            yield start, function, "-->"


def _permissions(resources: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield what each function may read and write of what holds data."""
    for name, resource in resources.items():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        rights: dict[str, set[str]] = {}
        for statement in _statements(resources[f"{name}Role"]["Properties"]["Policies"]):
            if statement["Sid"] in _OF_LAMBDA:
                continue
            actions = [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
            kinds = {"reads" if _READS.search(action) else "writes" for action in actions}
            for target in _named(statement["Resource"]):
                if resources.get(target, {}).get("Type") in _SHAPES:
                    rights.setdefault(target, set()).update(kinds)
        for target, kinds in rights.items():
            yield name, target, {"reads": "-. reads .->", "writes": "-->"}.get("".join(kinds), "<-->")


def _statements(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the statements of policies, those of a condition too."""
    if isinstance(value, dict):
        if "Sid" in value:
            yield value
        else:
            for inner in value.values():
                yield from _statements(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _statements(inner)


def _named(value: Any) -> list[str]:
    """Return the logical ids that a value refers to."""
    if isinstance(value, dict):
        ((kind, argument),) = value.items()
        if kind == "Ref":
            return [argument]
        if kind == "Fn::GetAtt":
            return [argument[0]]
        if kind == "Fn::Sub" and isinstance(argument, str):
            return re.findall(r"\$\{(\w+)(?:\.\w+)?}", argument)
        return _named(argument)
    return list(dict.fromkeys(name for one in value for name in _named(one))) if isinstance(value, list) else []


if __name__ == "__main__":
    main()
