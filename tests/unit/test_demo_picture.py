"""The demo draws its steps, its counts and the lineage."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from demo.lineage import Node, lineage_of
from demo.picture import Steps, counts_table, lineage_tree


def event(task: str, inputs: list[str], outputs: list[str], state: str = "SUCCESS") -> dict[str, Any]:
    return {
        "flowId": "build",
        "taskId": task,
        "state": state,
        "inputs": [{"id": asset} for asset in inputs],
        "outputs": [{"id": asset} for asset in outputs],
    }


EVENTS = [
    event("stage", ["app.orders"], ["stg_orders"]),
    event("orders", ["stg_orders", "app.rates"], ["orders"]),
    event("revenue", ["orders", "stg_orders"], ["revenue"]),
    event("orders", ["stg_orders", "app.rates"], ["orders"], "FAILED"),
]


def drawn(thing: object) -> list[str]:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(thing)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_an_asset_has_all_that_it_was_ever_made_of_and_its_last_run() -> None:
    lineage = lineage_of(EVENTS)

    assert lineage.products == ("revenue",)
    assert lineage.nodes == {
        "app.orders": Node(),
        "stg_orders": Node(["app.orders"], "build.stage", "SUCCESS"),
        "app.rates": Node(),
        "orders": Node(["stg_orders", "app.rates"], "build.orders", "FAILED"),
        "revenue": Node(["orders", "stg_orders"], "build.revenue", "SUCCESS"),
    }


def test_an_asset_made_of_itself_is_not_its_own_upstream() -> None:
    assert lineage_of([event("upsert", ["orders", "changes"], ["orders"])]).nodes["orders"].upstream == ["changes"]


def test_the_tree_shows_each_product_above_what_it_is_made_of_and_nothing_twice() -> None:
    assert drawn(lineage_tree(lineage_of(EVENTS))) == [
        "lineage (each asset above what it is made of)",
        "└── revenue build.revenue",
        "    ├── orders build.orders FAILED",
        "    │   ├── stg_orders build.stage",
        "    │   │   └── app.orders",
        "    │   └── app.rates",
        "    └── stg_orders build.stage … as above",
    ]


def test_assets_made_of_each_other_are_drawn_once() -> None:
    events = [event("there", ["a"], ["b"]), event("back", ["b"], ["a"])]

    assert drawn(lineage_tree(lineage_of(events))) == [
        "lineage (each asset above what it is made of)",
        "└── a build.back",
        "    └── b build.there",
        "        └── a build.back … as above",
    ]


def test_the_table_shows_what_how_many_and_where() -> None:
    assert drawn(counts_table([("recorded", 8, "lineage events"), ("filed", 10, "s3://[bucket]/key")])) == [
        "recorded   8  lineage events",
        "filed     10  s3://[bucket]/key",
    ]


def test_a_step_that_ends_leaves_a_line_with_what_it_said_last_and_its_time() -> None:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    steps = Steps(console)
    with steps.step("record", "task run reports") as say:
        say("8 lineage events")

    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().startswith("✓ record   8 lineage events ")
    assert list(steps.seconds) == ["record"]


def test_a_step_that_fails_says_where_it_was() -> None:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    with pytest.raises(ValueError, match="no"), Steps(console).step("ship", "3 of 8"):
        raise ValueError("no")

    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "✗ ship     3 of 8\n"
