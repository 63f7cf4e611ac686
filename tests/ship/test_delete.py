"""`delete: true`: what every exporter is done with leaves the log, and nothing else (DESIGN 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.shipping import Died
from waybill.errors import ExportFailed, InvalidFlow

if TYPE_CHECKING:
    from tests.support.shipping import World


def test_what_was_delivered_is_deleted_and_what_the_filters_dropped_stays(world: World) -> None:
    world.stream()
    world.fill(["load.customers"] * 30, ago=9_000, apart=200)
    kept = [world.event("clean.customers", ago=500)]

    world.ship(flowId="load", delete=True)

    assert world.log_keys() == set(kept)


def test_what_one_exporter_has_not_delivered_stays(world: World) -> None:
    world.stream("up")
    down = world.stream("down")
    world.event(ago=300)
    world.ship()
    down.down = True
    waiting = world.event(ago=60)
    with pytest.raises(ExportFailed):
        world.ship(delete=True)
    assert world.log_keys() == {waiting}

    down.down = False
    world.ship(delete=True)

    assert (world.log_keys(), down.keys[-1]) == (set(), waiting)


def test_a_late_commit_among_deleted_events_is_shipped_and_then_deleted(world: World) -> None:
    marquez = world.stream()
    on_time = world.fill(["load.customers"] * 50, ago=60, apart=0.02)
    world.ship(delete=True)
    late = world.event(ago=59.5)

    answer = world.ship(delete=True)

    assert marquez.keys == [*on_time, late]
    assert answer["outputs"]["marquez"] == {"delivered": 1, "lateCommits": 1}
    assert world.log_keys() == set()


def test_an_event_that_lands_behind_the_position_during_the_run_is_not_deleted_unshipped(world: World) -> None:
    marquez = world.stream()
    world.fill(["load.customers"] * 20, ago=60, apart=0.02)
    services = world.services
    delete = services.log.delete
    landed: list[str] = []

    def page(bucket: str, after: str, until: str, limit: int = 400) -> object:
        if len(marquez.keys) == 20 and not landed:
            landed.append(world.event(ago=59.9))
        return read(bucket, after, until, limit)

    read = services.log.page
    services.log.page = page  # type: ignore[method-assign, assignment]
    world.fixed_services = services
    world.ship(delete=True)
    assert world.log_keys() == set(landed)
    assert services.log.delete == delete

    world.ship(delete=True)

    assert (marquez.keys[-1], world.log_keys()) == (landed[0], set())


def test_shards_of_earlier_generations_are_deleted_too(world: World) -> None:
    world.stream()
    world.clock.turn(hours=-3)
    world.shards.announce(2)
    world.clock.turn(hours=3)
    world.fill((f"load.task_{number}" for number in range(40)), ago=7_000, apart=170)

    answer = world.ship(delete=True)

    assert (answer["size"], world.log_keys()) == (40, set())


def test_a_deletion_that_was_cut_short_is_finished_and_hides_no_late_commit(world: World) -> None:
    marquez = world.stream()
    on_time = world.fill(["load.customers"] * 50, ago=60, apart=0.02)
    services = world.services
    world.fixed_services = services
    delete = services.log.delete

    def die_in_the_middle(keys: list[tuple[str, str]]) -> None:
        delete(keys[:20])
        raise Died

    services.log.delete = die_in_the_middle  # type: ignore[method-assign, assignment]
    with pytest.raises(Died):
        world.ship(delete=True)
    services.log.delete = delete  # type: ignore[method-assign]
    world.clock.turn(seconds=61)
    late = world.event(ago=120.5)

    world.ship(delete=True)

    assert marquez.keys == [*on_time, late]
    assert world.log_keys() == set()


def test_deleting_is_refused_while_another_key_is_behind_unless_forced(world: World) -> None:
    marquez = world.stream()
    world.event(ago=600)
    world.ship(world.flow("other", "hourly"))
    world.clock.turn(minutes=5)
    world.event(ago=100)
    world.ship()

    with pytest.raises(InvalidFlow, match="AssetShipper-state_other_hourly would lose what it has not shipped yet"):
        world.ship(delete=True)
    assert len(world.log_keys()) == 2

    world.ship(delete=True, force=True)

    assert (len(marquez.keys), world.log_keys()) == (3, set())


def test_nothing_is_deleted_while_the_position_of_an_exporter_cannot_be_read(world: World) -> None:
    world.stream("good")
    world.stream("broken")
    world.event(ago=300)
    world.ship()
    waiting = world.event(ago=60)
    world.put_position(world.position_name("broken"), {"S": "{}"})

    with pytest.raises(ExportFailed, match=r"ship_lineage\.broken: .* holds no position"):
        world.ship(delete=True)

    assert waiting in world.log_keys()
