"""What CloudFormation makes of a template's intrinsic functions: as much of them as ours uses."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

_PLACEHOLDER = re.compile(r"\$\{([^!}][^}]*)}")
NO_VALUE = object()


class Resolver:
    """Resolves values of one template.

    Args:
        template: with intrinsic functions in their long form.
        parameters: values that differ from the defaults. A reference to a resource gives `<logical id>`.
    """

    def __init__(self, template: dict[str, Any], parameters: dict[str, str] | None = None) -> None:
        declared = {name: str(one.get("Default", "")) for name, one in template["Parameters"].items()}
        values = declared | (parameters or {})
        lists = {name for name, one in template["Parameters"].items() if one["Type"] == "CommaDelimitedList"}
        self._values = {name: value.split(",") if name in lists else value for name, value in values.items()}
        self._conditions = template.get("Conditions", {})
        self._mappings = template.get("Mappings", {})

    def resolve(self, value: Any) -> Any:
        """Return a value with every intrinsic function in it replaced by its result."""
        if isinstance(value, list):
            return [item for one in value if (item := self.resolve(one)) is not NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            if name in ("Ref", "Condition") or name.startswith("Fn::"):
                return self._call(name, argument)
        resolved = {key: self.resolve(one) for key, one in value.items()}
        return {key: one for key, one in resolved.items() if one is not NO_VALUE}

    def holds(self, condition: str) -> bool:
        """Tell whether a condition of the template holds."""
        return bool(self.resolve(self._conditions[condition]))

    def _call(self, name: str, argument: Any) -> Any:
        match name:
            case "Ref":
                return NO_VALUE if argument == "AWS::NoValue" else self._values.get(argument, f"<{argument}>")
            case "Fn::GetAtt":
                return f"<{argument if isinstance(argument, str) else '.'.join(argument)}>"
            case "Fn::If":
                condition, then, otherwise = argument
                return self.resolve(then if self.holds(condition) else otherwise)
            case "Fn::Sub" | "Fn::Join" | "Fn::Base64":
                return self._text(name, argument)
            case "Fn::Select" | "Fn::FindInMap":
                return self._picked(name, self.resolve(argument))
            case "Fn::Equals":
                first, second = self.resolve(argument)
                return str(first) == str(second)
            case "Fn::Not":
                return not self.resolve(argument)[0]
            case "Fn::And":
                return all(self.resolve(argument))
            case "Condition":
                return self.holds(argument)
        raise AssertionError(f"{name} is not known here; add it")

    def _picked(self, name: str, argument: Any) -> Any:
        if name == "Fn::Select":
            position, values = argument
            return values[int(position)]
        mapping, key, entry = argument
        return self._mappings[mapping][key][entry]

    def _text(self, name: str, argument: Any) -> str:
        if name == "Fn::Base64":
            return b64encode(self.resolve(argument).encode()).decode()
        if name == "Fn::Join":
            separator, parts = argument
            return str(separator.join(self.resolve(parts)))
        text, own = (argument, {}) if isinstance(argument, str) else argument
        known = {key: self.resolve(one) for key, one in own.items()}
        found = _PLACEHOLDER.sub(lambda match: known.get(match[1]) or self._call("Ref", match[1]), text)
        return found.replace("${!", "${")
