"""The settings of a namespace: whose flows may write in it, and who may use the API on it (DESIGN 3, "Namespaces")."""

from __future__ import annotations

from fnmatch import fnmatchcase

from waybill.model.fields import Document, Namespace, Text


class NamespaceSettings(Document):
    """What a namespace restricts; None leaves it open, or as its parent has it.

    Attributes:
        allowed_namespaces: namespaces whose flows, and whose children's flows, may write here.
        readers: patterns of the ARNs of callers that may read here; `*` stands for any text.
        writers: the same for callers that may write here.
    """

    allowed_namespaces: tuple[Namespace, ...] | None = None
    readers: tuple[Text, ...] | None = None
    writers: tuple[Text, ...] | None = None

    def over(self, parent: NamespaceSettings) -> NamespaceSettings:
        """Return these settings, with those of the parent where these have none."""
        return parent.model_copy(update={name: value for name, value in self if value is not None})


def with_parents(namespace: str) -> list[str]:
    """Return a namespace and those above it, nearest first: `a.b.c`, `a.b`, `a`."""
    parts = namespace.split(".")
    return [".".join(parts[:length]) for length in range(len(parts), 0, -1)]


def covers(namespace: str, other: str) -> bool:
    """Tell whether another namespace is this one or a child of it by dot."""
    return other == namespace or other.startswith(f"{namespace}.")


def matches_any(patterns: tuple[str, ...] | None, arn: str) -> bool:
    """Tell whether patterns admit a caller; None admits everybody."""
    return patterns is None or any(fnmatchcase(arn, pattern) for pattern in patterns)
