"""`endFetchedDate` is the recording time up to which every exporter has everything; it never goes back (DESIGN 4)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.shipping import NAMESPACE, STATE_KEY, Died
from waybill.clock import from_millis, iso
from waybill.errors import ExporterStopped, ExportFailed
from waybill.ids import uuid7_millis
from waybill.ship.offsets import Offsets

if TYPE_CHECKING:
    from tests.support.shipping import World
    from waybill.export.ports import Delivery


def recorded(key: str) -> str:
    return iso(from_millis(uuid7_millis(key)))


def stored(world: World) -> str | None:
    return world.state().get("endFetchedDate")


async def refuse(*_: Any) -> None:
    raise ExporterStopped("no credentials")


async def slowly(_: Delivery) -> None:
    await asyncio.sleep(0.03)


def test_one_exporter_that_fails_does_not_take_back_what_every_one_has(world: World) -> None:
    world.stream("good")
    failing = world.stream("failing")
    world.clock.turn(minutes=50)
    key = world.event(ago=100)
    world.ship()
    world.clock.turn(minutes=2)
    failing.down = True
    world.event(ago=60)

    with pytest.raises(ExportFailed):
        world.ship()

    assert stored(world) == recorded(key)


def test_runs_that_end_in_time_do_not_take_it_back_either(world: World) -> None:
    marquez = world.stream(in_flight=1)
    world.clock.turn(minutes=50)
    key = world.event("load.a", ago=100)
    world.ship()
    world.clock.turn(minutes=2)
    # The shards of other jobs have been without an event since noon.
    world.fill(["load.a"] * 60, ago=90)
    marquez.before = slowly

    without_time, with_little = world.ship(seconds=5), world.ship(seconds=6.5)

    assert (without_time["complete"], without_time["endFetchedDate"]) == (False, recorded(key))
    assert (with_little["complete"], with_little["endFetchedDate"]) == (False, recorded(marquez.keys[-1]))


def test_an_exporter_that_cannot_even_be_opened_leaves_it_as_it_is(
    world: World, parameters: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.stream("good")
    failing = world.stream("failing")
    key = world.event(ago=90)
    world.ship()
    world.event(ago=60)
    monkeypatch.setattr(failing, "open", refuse)

    with pytest.raises(ExportFailed):
        world.ship()

    assert world.offsets is not None
    value = parameters.get_parameter(Name=world.offsets.name(NAMESPACE, STATE_KEY))["Parameter"]["Value"]
    assert json.loads(value)["endFetchedDate"] == recorded(key)


def test_a_run_after_one_that_was_killed_before_it_gave_its_lease_back_knows_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    marquez = world.stream()
    keys = [world.event(ago=100 - number) for number in range(3)]
    world.fixed_services = world.services

    def die(*_: Any) -> None:
        world.process.dead = True
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(world.fixed_services.key_values, "release", die)
        world.ship_and_die()
    answer = world.ship()

    assert marquez.keys == keys
    assert (answer["size"], answer["endFetchedDate"]) == (0, recorded(keys[-1]))


def test_a_batch_that_is_taken_over_from_a_run_that_died_moves_the_end(world: World) -> None:
    files = world.batches()
    keys = [world.event(ago=100 - number) for number in range(3)]
    files.dies_after_commit = True
    with pytest.raises(Died):
        world.ship()
    files.dies_after_commit = False
    world.clock.turn(seconds=61)

    answer = world.ship()

    assert (answer["size"], answer["endFetchedDate"]) == (0, recorded(keys[-1]))


def test_a_new_exporter_takes_it_back_to_where_it_is_itself(world: World) -> None:
    world.stream("old")
    keys = [world.event(ago=100), world.event(ago=90)]
    world.ship()
    new = world.stream("new", in_flight=1)
    new.down = True
    with pytest.raises(ExportFailed):
        world.ship()
    nothing = stored(world)

    async def fail_at_second(_: Delivery) -> None:
        if new.keys:
            raise ExporterStopped("503")

    new.down, new.before = False, fail_at_second
    with pytest.raises(ExportFailed):
        world.ship()
    first = stored(world)
    new.before = None

    # One shard still stands at the hour before the first event.
    assert nothing is None
    assert first is not None
    assert first <= recorded(keys[0])
    assert world.ship()["endFetchedDate"] == recorded(keys[1])


def test_a_new_exporter_that_nothing_is_for_does_not_count(world: World) -> None:
    world.stream("old")
    key = world.event(ago=7_200)
    world.ship()
    world.stream("new")

    assert world.ship(lookbackPeriod="PT1H")["endFetchedDate"] == recorded(key)


def test_setting_the_offset_back_takes_it_back(world: World) -> None:
    world.stream()
    keys = [world.event(ago=100), world.event(ago=50)]
    world.ship()

    Offsets(world.services).set(NAMESPACE, STATE_KEY, from_millis(uuid7_millis(keys[0])))

    assert stored(world) is None
    assert world.ship()["endFetchedDate"] == recorded(keys[1])


def test_a_stored_end_that_is_none_counts_as_none(world: World) -> None:
    world.stream()
    key = world.event()
    item = {"namespace": {"S": NAMESPACE}, "key": {"S": STATE_KEY}, "endFetchedDate": {"S": "yesterday"}}
    world.dynamodb.put_item(TableName=world.tables.key_values, Item=item)

    assert world.ship()["endFetchedDate"] == recorded(key)
