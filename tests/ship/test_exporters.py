"""Several exporters of one task: each has its own position, and one that is down holds back only itself."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.shipping import Died
from waybill.errors import ExportFailed
from waybill.export.ports import Outcome

if TYPE_CHECKING:
    from tests.support.shipping import World
    from waybill.export.ports import Delivery


def test_an_exporter_that_is_down_for_three_runs_gets_everything_afterwards_and_the_other_each_event_once(
    world: World,
) -> None:
    up, down = world.stream("up"), world.stream("down", down=True)
    keys: list[str] = []
    for _ in range(3):
        keys += [world.event(f"load.task_{number}", ago=40) for number in range(5)]
        with pytest.raises(ExportFailed) as failure:
            world.ship()
        assert str(failure.value) == ("ship_lineage.down: 503; before that: nothing delivered; its position is kept")
        world.clock.turn(minutes=20)
    assert (sorted(up.keys), down.keys) == (sorted(keys), [])

    down.down = False
    answer = world.ship()

    assert sorted(up.keys) == sorted(down.keys) == sorted(keys)
    assert (answer["size"], answer["complete"]) == (15, True)


def test_a_failure_says_what_was_delivered_before(world: World) -> None:
    marquez = world.stream(in_flight=1)
    for number in range(5):
        world.event(ago=100 - number)

    async def stop_after_three(_: Delivery) -> None:
        marquez.down = len(marquez.keys) == 2

    marquez.before = stop_after_three
    with pytest.raises(ExportFailed) as failure:
        world.ship()

    assert str(failure.value) == ("ship_lineage.marquez: 503; before that: 3 delivered; its position is kept")


def test_an_event_counts_once_whatever_the_number_of_exporters(world: World) -> None:
    world.stream("one")
    world.stream("two")
    world.batches("files")
    for number in range(7):
        world.event(f"load.task_{number}")

    assert world.ship()["size"] == 7


def test_files_do_not_take_all_the_time_from_the_others(world: World) -> None:
    files, marquez = world.batches("files"), world.stream("marquez")
    keys = world.fill((f"load.task_{number % 9}" for number in range(150)), ago=600)
    write = files.write

    def slowly(delivery: Delivery) -> None:
        time.sleep(0.03)
        write(delivery)

    files.write = slowly  # type: ignore[method-assign]
    answer = world.ship(seconds=17)

    assert sorted(marquez.keys) == keys
    assert (answer["complete"], 0 < len(files.keys) < 150) == (False, True)


def test_a_new_exporter_starts_at_the_lookback_period(world: World) -> None:
    old = world.stream("old")
    keys = [world.event(ago=7 * 3_600), world.event(ago=3_600)]
    world.ship(lookbackPeriod="P1D")
    new = world.stream("new")

    world.ship(lookbackPeriod="PT2H")

    assert (old.keys, new.keys) == (keys, keys[1:])


def test_an_exporter_that_left_the_document_does_not_count(world: World) -> None:
    world.stream("left", down=True)
    world.stream("stays")
    key = world.event()
    with pytest.raises(ExportFailed):
        world.ship()
    del world.exporters["left"]
    later = world.event(ago=35)

    answer = world.ship()

    assert world.exporters["stays"].keys == [key, later]
    assert answer["complete"]


def test_a_fault_of_an_exporter_ends_the_run_without_losing_what_was_answered(world: World) -> None:
    marquez = world.stream(in_flight=1)
    keys = [world.event(ago=100 - number) for number in range(4)]

    async def fault_at_third(_: Delivery) -> None:
        if len(marquez.keys) == 2:
            raise RuntimeError("a fault of ours")

    marquez.before = fault_at_third
    with pytest.raises(RuntimeError, match="a fault of ours"):
        world.ship()
    marquez.before = None

    world.ship()

    assert marquez.keys == keys


def test_what_is_answered_above_a_job_that_waits_is_not_repeated_after_a_kill(world: World) -> None:
    marquez = world.stream(in_flight=4)
    slow = world.event("load.slow", ago=200)
    others = [world.event(f"load.task_{number % 3}", ago=150 - number) for number in range(30)]

    async def kill_when_others_are_stored(delivery: Delivery) -> None:
        while delivery.key == slow and not world.process.dead:
            await asyncio.sleep(0.05)
            stored = [item.get("body", "") for key, item in world.values().items() if "#position#" in key]
            world.process.dead = len(marquez.keys) == 30 and '"last":"' + others[-1] in stored[0]
        if world.process.dead:
            raise Died

    marquez.before = kill_when_others_are_stored
    world.ship_and_die()
    marquez.before = None
    assert sorted(marquez.keys) == others

    world.ship()

    assert sorted(marquez.keys) == [slow, *others]


def test_a_job_that_waits_does_not_let_the_stored_position_grow_without_bound(world: World) -> None:
    marquez = world.stream(in_flight=8)
    world.event("load.slow", ago=3_000)
    world.fill((f"load.task_{number % 50}" for number in range(4_000)), ago=2_900)
    open_at_once = 0

    async def hold_the_slow_one(delivery: Delivery) -> None:
        nonlocal open_at_once
        before = -1
        while delivery.event.task_id == "slow" and before < len(marquez.keys):
            before = len(marquez.keys)
            await asyncio.sleep(0.7)
            open_at_once = before

    marquez.before = hold_the_slow_one
    answer = world.ship()

    assert (len(marquez.keys), answer["size"]) == (4_001, 4_001)
    largest = max(len(item.get("body", "")) for item in world.values().values())
    assert 0 < open_at_once < 4_000
    assert largest < 400_000


def test_the_outcome_of_an_event_counts_whatever_it_is(world: World) -> None:
    world.stream(outcome=Outcome.REJECTED)
    world.event()

    assert (world.ship()["size"], world.ship()["size"]) == (1, 0)
