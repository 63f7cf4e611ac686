"""Who calls the API, and what the settings of namespaces let that caller do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waybill.model.lock import user_owner
from waybill.store.catalog import Writer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from waybill.store.namespaces import NamespaceRules


class Caller:
    """One caller, for one request. A namespace of None is Global, which is open to everybody."""

    def __init__(self, arn: str, rules: NamespaceRules) -> None:
        self.arn = arn
        self._rules = rules

    def prepare(self, namespaces: Iterable[str | None]) -> None:
        """Read the settings of namespaces that will be asked for, in one call."""
        self._rules.load(namespaces)

    def reads(self, namespace: str | None) -> bool:
        """Tell whether the caller may read there."""
        return self._rules.readable(namespace, self.arn)

    def check_writes(self, *namespaces: str | None) -> None:
        """Check that the caller may write in each.

        Raises:
            NamespaceForbidden: one of them does not let it.
        """
        self._rules.check_writer(self.arn, *namespaces)

    @property
    def writer(self) -> Writer:
        """The caller as one that writes assets."""
        return Writer(user_owner(self.arn))
