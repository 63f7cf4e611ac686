"""The backends that Waybill knows: where each listens, what it takes, and what its answers mean (`docs/backends.md`).

Source of the figures: `openlineage.md` 3, measured for Marquez and Data.Rentgen, read for the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from waybill.export.openlineage.names import ANY_NAMES, DATA_RENTGEN_NAMES, MARQUEZ_NAMES, NameRules
from waybill.export.openlineage.outcomes import ATLAN, DATAZONE, MARQUEZ, OPENMETADATA, Rule

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """What is special about one kind of backend.

    Attributes:
        endpoint: path under the exporter's `uri`.
        outcomes: rules that come before the common ones.
        event_types: what it takes; None is all.
        both_sides: it looks only at events that have inputs and outputs.
        parent_run: whether the `parent` facet does no harm there.
        run_ids: `keep` a run id that is a UUID, or make every one a `uuid7`.
        max_bytes: the largest event it takes, in bytes.
        can_be_asked: whether it has Marquez's API for reading back.
        run_years: a run's time may lie so many years back, and up to the end of so many years ahead.
        recovery: seconds after an outage in which it may still answer 5xx to good events.
        batch_endpoint: where it takes several events at once.
        batch_key: the property that holds them; None where they are an array.
    """

    name: str
    endpoint: str = "api/v1/lineage"
    outcomes: tuple[Rule, ...] = ()
    event_types: frozenset[str] | None = None
    both_sides: bool = False
    parent_run: bool = True
    run_ids: str = "keep"
    max_bytes: int | None = None
    names: NameRules = ANY_NAMES
    recovery: float = 0.0
    can_be_asked: bool = False
    run_years: tuple[int, int] | None = None
    batch_endpoint: str | None = None
    batch_key: str | None = None


_ALL = (
    Backend(
        name="marquez",
        outcomes=MARQUEZ,
        parent_run=False,
        max_bytes=19_000_000,
        names=MARQUEZ_NAMES,
        recovery=30.0,
        can_be_asked=True,
    ),
    Backend(
        name="data-rentgen",
        endpoint="v1/openlineage",
        parent_run=False,
        run_ids="uuid7",
        max_bytes=5 * MEBIBYTE,
        names=DATA_RENTGEN_NAMES,
        run_years=(5, 1),
    ),
    Backend(
        name="datahub",
        endpoint="openapi/openlineage/api/v1/lineage",
        batch_endpoint="openapi/openlineage/api/v1/lineage/batch",
    ),
    Backend(
        name="openmetadata",
        endpoint="api/v1/openlineage/lineage",
        outcomes=OPENMETADATA,
        event_types=frozenset({"COMPLETE"}),
        both_sides=True,
        batch_endpoint="api/v1/openlineage/lineage/batch",
        batch_key="events",
    ),
    Backend(name="datazone", outcomes=DATAZONE, max_bytes=300_000),
    Backend(name="snowflake", endpoint="api/v2/lineage/external-lineage", event_types=frozenset({"COMPLETE"})),
    Backend(name="atlan", endpoint="events/openlineage/generic-openlineage/api/v1/lineage", outcomes=ATLAN),
    Backend(name="generic"),
)

BACKENDS = {backend.name: backend for backend in _ALL}
