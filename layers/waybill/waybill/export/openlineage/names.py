"""What a destination allows in a name, checked before anything is sent.

Some backends take an event with a bad name and then answer no list to anybody until their database is repaired
(`openlineage.md` 3.1); others take it and lose the batch it is in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

_NEVER = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class NameRules:
    """What a destination allows.

    Attributes:
        namespace_other: finds the first character that a dataset namespace must not hold.
        longest_namespace, longest_column: in characters.
        longest_name: in bytes of UTF-8.
        longest_dataset: in characters: a dataset's name, where those that share so many break each other.
        parses: whether the destination's URL parser takes a namespace.
    """

    namespace_other: re.Pattern[str] = _NEVER
    longest_namespace: int = 100_000
    longest_name: int = 100_000
    longest_column: int = 100_000
    longest_dataset: int = 100_000
    parses: Callable[[str], bool] | None = None

    def namespace_fault(self, namespace: str) -> str | None:
        """Say what is wrong with a dataset's namespace, or None."""
        if fault := _fault(namespace, self.namespace_other):
            return fault
        if len(namespace) > self.longest_namespace:
            return f"is {len(namespace)} characters long; it takes {self.longest_namespace}"
        if self.parses and not self.parses(namespace):
            return "is no URL that it can read"
        return None

    def name_fault(self, name: str) -> str | None:
        """Say what is wrong with a name, or None."""
        if fault := _fault(name, _NEVER):
            return fault
        length = len(name.encode())
        return f"is {length} bytes long; it takes {self.longest_name}" if length > self.longest_name else None

    def dataset_fault(self, name: str) -> str | None:
        """Say what is wrong with the name of a dataset, or None."""
        if fault := self.name_fault(name):
            return fault
        length = len(name)
        return (
            f"is {length} characters long; it takes {self.longest_dataset}" if length > self.longest_dataset else None
        )

    def column_fault(self, name: str) -> str | None:
        """Say what is wrong with the name of a column, or None."""
        if fault := _fault(name, _NEVER):
            return fault
        return (
            f"is {len(name)} characters long; it takes {self.longest_column}"
            if len(name) > self.longest_column
            else None
        )


def _fault(text: str, forbidden: re.Pattern[str]) -> str | None:
    if not text.strip():
        return "is blank"
    match = forbidden.search(text)
    return f"holds {named(match[0])} at position {match.start()}, which it does not take" if match else None


def named(character: str) -> str:
    """Write a character so that it can be read in a log: `'%'` or `U+0000`."""
    code = ord(character)
    plain = f"U+{code:04X}"
    return f"{character!r} ({plain})" if character.isprintable() and character.strip() else plain


def _parses(namespace: str) -> bool:
    try:
        urlsplit(namespace).port  # noqa: B018 - the port is only looked at when asked for
    except ValueError:
        return False
    return True


ANY_NAMES = NameRules()
MARQUEZ_NAMES = NameRules(
    namespace_other=re.compile(r"[^A-Za-z0-9:;=/_\-.@+]"),
    longest_namespace=1024,
    longest_name=2000,
    longest_column=255,
    longest_dataset=255,
)
DATA_RENTGEN_NAMES = NameRules(parses=_parses)
