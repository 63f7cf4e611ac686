"""Shipping to an exporter of batches: a batch counts once, whatever dies when."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.shipping import Died

if TYPE_CHECKING:
    from tests.support.shipping import World


def test_shards_are_merged_into_one_order(world: World) -> None:
    files = world.batches()
    keys = world.fill((f"load.task_{number % 9}" for number in range(100)), ago=5_000, apart=40)

    answer = world.ship()

    assert [written for _, written in files.committed.values()] == [keys]
    assert (answer["size"], answer["complete"], answer["outputs"]) == (100, True, {"files": {"batches": 1}})


def test_nothing_new_makes_no_batch(world: World) -> None:
    files = world.batches()
    world.event()
    world.ship()

    answer = world.ship()

    assert (answer["size"], len(files.committed)) == (0, 1)


def test_a_run_that_dies_before_its_commit_is_repeated_whole(world: World) -> None:
    files = world.batches()
    keys = world.fill(["load.customers"] * 10, ago=60)
    files.dies = 7
    with pytest.raises(Died):
        world.ship()
    files.dies = None

    world.ship()

    assert files.keys == keys


def test_a_run_that_dies_after_its_commit_is_taken_over(world: World) -> None:
    files = world.batches()
    keys = world.fill(["load.customers"] * 10, ago=60)
    files.dies_after_commit = True
    with pytest.raises(Died):
        world.ship()
    files.dies_after_commit = False
    world.clock.turn(minutes=3)
    later = world.event(ago=31)

    answer = world.ship()

    assert files.keys == [*keys, later]
    assert answer["size"] == 1


def test_after_a_reset_a_batch_of_before_is_not_taken_over(world: World) -> None:
    files = world.batches()
    key = world.event()
    world.ship()
    world.delete_state()

    world.ship()

    assert files.keys == [key, key]


def test_late_commits_come_first_and_once(world: World) -> None:
    files = world.batches()
    early = world.event(ago=60)
    world.ship()
    late, later = world.event(ago=70), world.event(ago=31)

    answer = world.ship()
    world.ship()

    assert files.keys == [early, late, later]
    assert answer["outputs"]["files"]["lateCommits"] == 1


def test_a_change_of_shards_begins_another_batch(world: World) -> None:
    files = world.batches()
    world.clock.turn(hours=-2)
    world.shards.announce(3)
    world.clock.turn(hours=2, seconds=90)
    keys = world.fill((f"load.task_{number}" for number in range(20)), ago=110, apart=4)

    world.ship()

    assert files.keys == keys
    assert len(files.committed) == 2
    assert world.ship()["size"] == 0


def test_a_batch_ends_in_time_for_the_deadline_and_the_next_run_goes_on(world: World) -> None:
    files = world.batches()
    keys = world.fill((f"load.task_{number % 9}" for number in range(300)), ago=600, apart=1)

    first = world.ship(seconds=9.9)
    second = world.ship()

    assert (first["complete"], 0 < first["size"] < 300) == (False, True)
    assert (second["complete"], first["size"] + second["size"]) == (True, 300)
    assert files.keys == keys


def test_a_full_batch_is_committed_and_the_run_goes_on_with_the_next(world: World) -> None:
    files = world.batches()
    files.most = 10
    keys = world.fill((f"load.task_{number % 9}" for number in range(300)), ago=600, apart=1)

    answer = world.ship()

    assert (answer["size"], answer["complete"], files.keys) == (300, True, keys)
    assert len(files.committed) > 3
    assert max(len(written) for _, written in files.committed.values()) < 10 + 64, "it is asked now and then"


def test_a_batch_ends_in_time_in_hours_that_hold_no_event_too(world: World) -> None:
    world.batches()
    services = world.services
    page = services.log.page

    def slow(*asked: Any) -> Any:
        time.sleep(0.01)
        return page(*asked)

    services.log.page = slow  # type: ignore[assignment,method-assign]
    world.fixed_services = services
    began = time.monotonic()
    answers = [world.ship(seconds=6, lookbackPeriod="P28D")]
    assert time.monotonic() - began < 5

    services.log.page = page  # type: ignore[method-assign]
    answers.append(world.ship(lookbackPeriod="P28D"))
    assert [answer["complete"] for answer in answers] == [False, True]
