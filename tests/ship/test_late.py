"""Late commits: writes that land behind the position, after it had passed their place (`aws.md` 4.4)."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.support.shipping import NAMESPACE, Died
from waybill.errors import ExportFailed
from waybill.ids import uuid7
from waybill.ship import late
from waybill.store.shards import shard_of

if TYPE_CHECKING:
    from tests.support.shipping import World
    from waybill.export.ports import Delivery


@pytest.mark.parametrize("minutes", [1, 5, 10])
def test_a_late_commit_is_sent_once_and_counted(world: World, minutes: int) -> None:
    marquez = world.stream()
    place = uuid7(world.clock() - timedelta(seconds=60))
    on_time = [world.event(ago=70), world.event(ago=50)]
    world.ship()
    world.clock.turn(minutes=minutes)
    on_time.append(world.event(ago=31))
    world.ship()
    world.event(key=place)

    answer, after = world.ship(), world.ship()

    assert marquez.keys == [*on_time, place]
    assert (answer["size"], answer["outputs"]) == (1, {"marquez": {"delivered": 1, "lateCommits": 1}})
    assert (after["size"], after["outputs"]) == (0, {"marquez": {"delivered": 0}})


def test_many_events_in_the_same_seconds_hide_no_late_commit(world: World) -> None:
    marquez = world.stream()
    on_time = world.fill(["load.customers"] * 300, ago=60, apart=0.01)
    places = [uuid7(world.clock() - timedelta(seconds=60 - 0.01 * number)) for number in (3, 150, 299)]
    world.ship()
    for place in places:
        world.event(key=place)

    world.ship()
    world.ship()

    assert marquez.keys == on_time + sorted(places)


def test_a_late_commit_behind_an_hour_border_is_found(world: World) -> None:
    marquez = world.stream()
    world.clock.turn(seconds=90)
    place = uuid7(world.clock() - timedelta(seconds=95))
    early = world.event(ago=120)
    world.ship()
    world.event(key=place)

    world.ship()

    assert marquez.keys == [early, place]


def test_a_late_commit_behind_a_change_of_shards_is_sent_once(world: World) -> None:
    marquez = world.stream()
    world.clock.turn(hours=-2)
    world.shards.announce(7)
    world.clock.turn(hours=2)
    jobs = [f"load.task_{number}" for number in range(14)]
    moved = [job for job in jobs if shard_of(f"{NAMESPACE}/{job}", 4) != shard_of(f"{NAMESPACE}/{job}", 7)]
    world.clock.turn(seconds=60)
    on_time = [world.event(job, ago=70) for job in jobs] + [world.event(job, ago=40) for job in jobs]
    world.ship()
    late = [world.event(job, ago=65) for job in moved]

    answer = world.ship()

    assert sorted(marquez.keys) == sorted(on_time + late)
    assert answer["outputs"]["marquez"] == {"delivered": len(late), "lateCommits": len(late)}
    assert world.ship()["size"] == 0


def test_nothing_before_the_lookback_period_counts_as_late(world: World) -> None:
    marquez = world.stream()
    world.ship(lookbackPeriod="PT5M")
    world.event(ago=301)

    world.ship(lookbackPeriod="PT5M")

    assert marquez.keys == []


def test_late_commits_are_filtered_like_others(world: World) -> None:
    marquez = world.stream()
    world.event("load.customers", ago=40)
    world.ship(flowId="load")
    world.event("clean.customers", ago=50)
    late = world.event("load.customers", ago=50)

    answer = world.ship(flowId="load")
    world.ship(flowId="load")

    assert marquez.keys[1:] == [late]
    assert answer["size"] == 1


def test_a_late_commit_that_was_found_and_not_answered_is_not_lost_however_far_the_position_goes(world: World) -> None:
    marquez = world.stream(in_flight=4)
    world.event("load.slow", ago=31)
    world.ship()
    late = world.event("load.slow", ago=60)
    world.clock.turn(minutes=40)
    others = [world.event(f"load.task_{number}", ago=1_200 - number) for number in range(20)]

    async def kill_when_others_are_stored(delivery: Delivery) -> None:
        while delivery.key == late and not world.process.dead:
            await asyncio.sleep(0.05)
            stored = [item.get("body", "") for key, item in world.values().items() if "#position#" in key]
            world.process.dead = others[-1] in stored[0] and late in stored[0]
        if world.process.dead:
            raise Died

    marquez.before = kill_when_others_are_stored
    world.ship_and_die()
    marquez.before = None
    answer = world.ship()

    assert marquez.keys[-1] == late
    assert answer["outputs"]["marquez"] == {"delivered": 1, "lateCommits": 1}
    assert world.ship()["size"] == 0


def test_a_clock_that_goes_back_a_second_from_run_to_run_repeats_nothing(world: World) -> None:
    marquez = world.stream()
    world.clock.turn(minutes=20)
    keys = [world.event(ago=690), world.event(ago=300)]
    for seconds in (30.5, -1.5, 0.1, 0.1):
        world.clock.turn(seconds=seconds)
        world.ship()

    assert marquez.keys == keys


def test_an_exporter_that_is_down_gets_late_commits_afterwards_once(world: World) -> None:
    marquez = world.stream()
    first = world.event(ago=40)
    world.ship()
    late = world.event(ago=50)
    marquez.down = True
    for _ in range(2):
        with pytest.raises(ExportFailed):
            world.ship()
        world.clock.turn(minutes=30)
    marquez.down = False

    world.ship()
    world.ship()

    assert marquez.keys == [first, late]


def test_a_sweep_of_a_log_at_rest_reads_nothing_again(world: World) -> None:
    world.stream()
    world.fill((f"load.task_{number}" for number in range(100)), ago=100)
    world.ship()
    world.clock.turn(minutes=12)
    world.ship()
    listed: list[str] = []
    keys = world.services.log.keys
    services = world.services

    def listing(bucket: str, after: str, until: str) -> object:
        listed.append(bucket)
        return keys(bucket, after, until)

    services.log.keys = listing  # type: ignore[method-assign, assignment]
    world.fixed_services = services
    world.clock.turn(minutes=1)
    world.ship()

    assert listed == []


def test_more_late_commits_than_a_position_can_name_are_each_sent_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late, "MOST_OWED", 25)
    marquez = world.stream(in_flight=8)
    first = world.fill((f"load.task_{number}" for number in range(20)), ago=100, apart=0.01)
    world.ship()
    behind = world.fill((f"load.task_{number % 20}" for number in range(300)), ago=200, apart=0.1)

    assert [world.ship()["size"], world.ship()["size"]] == [300, 0]
    assert sorted(marquez.keys) == sorted(first + behind)


def test_late_commits_that_cannot_be_told_are_repeated_at_most_once(world: World) -> None:
    """A cell so full of them that no combination can be tried is sent again whole, and is known from then on."""
    marquez = world.stream(in_flight=8)
    first = world.fill((f"load.task_{number}" for number in range(600)), ago=100, apart=0.001)
    world.ship()
    behind = world.fill((f"load.task_{number}" for number in range(600)), ago=100.0005, apart=0.001)

    sizes = [world.ship()["size"] for _ in range(3)]

    assert sizes[1:] == [0, 0]
    assert set(marquez.keys) == {*first, *behind}
    assert max(Counter(marquez.keys).values()) <= 2


def test_late_commits_that_time_does_not_suffice_for_are_counted_when_they_are_sent(world: World) -> None:
    marquez = world.stream(in_flight=1)
    world.fill((f"load.task_{number}" for number in range(20)), ago=100, apart=0.01)
    world.ship()
    world.fill((f"load.task_{number}" for number in range(60)), ago=200, apart=0.1)
    marquez.before = lambda _: asyncio.sleep(0.02)

    answers = [world.ship(seconds=5.5 + 0.3)]
    while not answers[-1]["complete"]:
        answers.append(world.ship())

    assert answers[0]["size"] < 60
    assert [answer["outputs"]["marquez"]["lateCommits"] for answer in answers] == [answer["size"] for answer in answers]
    assert sum(answer["size"] for answer in answers) == 60
