"""A flow of several tasks: one that fails does not stop the others, and the error names all (DESIGN 4)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.shipping import NAMESPACE
from waybill.errors import ExporterStopped, ExportFailed, InvalidFlow
from waybill.model.flow import Flow, parse_flow
from waybill.ship.flow import run_flow

if TYPE_CHECKING:
    from tests.support.shipping import World
    from waybill.export.ports import Delivery


def flow_of(tasks: dict[str, list[str]], flow_id: str = "ship", **properties: Any) -> Flow:
    """Return a flow of tasks with the exporters of each."""
    return parse_flow(
        {
            "id": flow_id,
            "namespace": NAMESPACE,
            "tasks": [
                {
                    "id": task,
                    "type": "AssetShipper",
                    "lookbackPeriod": "PT2H",
                    "assetExporters": [
                        {"id": name, "type": "OpenLineageAssetExporter", "uri": "http://127.0.0.1:1"}
                        for name in exporters
                    ],
                }
                | properties
                for task, exporters in tasks.items()
            ],
        }
    )


def run(world: World, flow: Flow) -> dict[str, Any]:
    outputs: dict[str, Any] = asyncio.run(run_flow(world.services, flow, 60, "run"))[0]["outputs"]
    return outputs


def test_each_task_has_its_own_position_and_its_own_part_of_the_answer(world: World) -> None:
    first, second = world.stream("first"), world.stream("second")
    key = world.event()

    outputs = run(world, flow_of({"one": ["first"], "two": ["second"]}))

    assert (first.keys, second.keys) == ([key], [key])
    assert {task: answer["size"] for task, answer in outputs.items()} == {"one": 1, "two": 1}


def test_a_task_that_fails_does_not_stop_the_others_and_the_error_names_all(world: World) -> None:
    world.stream("down", down=True)
    world.stream("broken", down=True)
    good = world.stream("good")
    key = world.event()

    with pytest.raises(ExportFailed) as failure:
        run(world, flow_of({"one": ["down"], "two": ["good"], "three": ["broken", "good"]}))

    assert good.keys == [key, key]
    assert [line.split(":")[0] for line in str(failure.value).splitlines()] == ["one.down", "three.broken"]


def test_a_key_of_another_flow_is_refused_and_the_other_tasks_run(world: World) -> None:
    exporter = world.stream("marquez")
    key = world.event()
    run(world, flow_of({"b_c": ["marquez"]}, flow_id="a"))

    with pytest.raises(InvalidFlow) as refusal:
        run(world, flow_of({"c": ["marquez"], "d": ["marquez"]}, flow_id="a_b"))

    assert exporter.keys == [key, key]
    assert refusal.value.faults == (
        "tasks.c.offsetKey: AssetShipper-state_a_b_c is the state of task b_c of flow a; use another offsetKey",
    )


def test_an_exporter_that_is_down_does_not_keep_the_others_from_going_on(world: World) -> None:
    slow, down = world.stream("slow", in_flight=1), world.stream("down")
    down.down = True
    for number in range(30):
        world.event(ago=90 - number)
    slow.before = lambda _: asyncio.sleep(0.1)

    with pytest.raises(ExportFailed) as failure:
        world.ship(seconds=6.5)

    assert failure.value.again
    assert 0 < len(slow.keys) < 30


def test_a_run_that_trouble_ended_is_not_continued(world: World) -> None:
    marquez = world.stream()
    world.fill(["load.customers"] * 3, ago=60)

    async def refuse_the_second(_: Delivery) -> None:
        if marquez.keys:
            raise ExporterStopped("503")

    marquez.before = refuse_the_second
    with pytest.raises(ExportFailed) as failure:
        world.ship()

    assert (failure.value.again, len(marquez.keys)) == (False, 1)
