"""One shipper at a time: leases, and the fence that holds back who was overtaken."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.shipping import NAMESPACE, STATE_KEY
from waybill.clock import iso
from waybill.errors import ExportFailed, InvalidFlow, LeaseLost
from waybill.store.keyvalue import LEASE, Busy, Lease

if TYPE_CHECKING:
    from datetime import timedelta

    from tests.support.shipping import World
    from waybill.export.ports import Delivery


def acquired(world: World, owner: str) -> Lease:
    lease = world.services.key_values.acquire(NAMESPACE, STATE_KEY, "ship", "ship_lineage", owner)
    assert isinstance(lease, Lease)
    return lease


def test_while_another_invocation_holds_the_lease_nothing_is_shipped(world: World) -> None:
    marquez = world.stream()
    world.event()
    lease = acquired(world, "request-1")

    answer = world.ship(owner="request-2")

    assert marquez.keys == []
    assert answer == {
        "size": 0,
        "endFetchedDate": None,
        "complete": False,
        "outputs": {},
        "busy": {"owner": "request-1", "until": iso(lease.until)},
    }


def test_a_lease_that_ran_out_is_taken_over_with_a_greater_fence(world: World) -> None:
    first = acquired(world, "request-1")
    world.clock.turn(seconds=LEASE.total_seconds() + 0.001)

    second = acquired(world, "request-2")

    assert (second.fence, second.generation) == (first.fence + 1, first.generation)


def test_a_lease_is_given_back_after_a_run_and_after_a_failure(world: World) -> None:
    marquez = world.stream()
    world.event()
    world.ship(owner="request-1")
    marquez.down = True
    world.event(ago=35)
    with pytest.raises(ExportFailed):
        world.ship(owner="request-2")

    assert {"until", "owner"} & world.state().keys() == set()


def test_a_run_that_was_frozen_sends_nothing_more_and_moves_nothing(world: World) -> None:
    marquez = world.stream(in_flight=1)
    keys = [world.event(ago=300 - number) for number in range(6)]
    runs = 0

    async def freeze_at_third(_: Delivery) -> None:
        nonlocal runs
        if len(marquez.keys) == 2 and not runs:
            runs = 1
            world.clock.turn(seconds=LEASE.total_seconds() + 1)
            await asyncio.to_thread(world.ship, owner="request-2")

    marquez.before = freeze_at_third
    with pytest.raises(ExportFailed, match=r"lease ran out|newer run"):
        world.ship(owner="request-1")
    stored = {key: item for key, item in world.values().items() if "#position#" in key}

    # The third was on its way when the process froze; those two answered were not stored yet.
    assert marquez.keys == [*keys[:2], *keys, keys[2]]
    assert world.ship()["size"] == 0
    assert [item["fence"] for item in stored.values()] == ["2"]
    assert keys[-1] in next(iter(stored.values()))["body"]


@pytest.mark.parametrize("late_by", [LEASE * 2])
def test_an_overtaken_lease_can_neither_be_renewed_nor_given_back_nor_store(world: World, late_by: timedelta) -> None:
    store = world.services.key_values
    frozen = acquired(world, "request-1")
    store.claim_position(frozen, "marquez")
    world.clock.turn(seconds=late_by.total_seconds())
    newer = acquired(world, "request-2")
    store.claim_position(newer, "marquez")
    store.put_position(newer, "marquez", "newer")
    before = world.values()

    for write in (
        lambda: store.renew(frozen),
        lambda: store.release(frozen, "2026-12-01T00:00:00.000Z"),
        lambda: store.regenerate(frozen, "other"),
        lambda: store.put_position(frozen, "marquez", "older"),
        lambda: store.claim_position(frozen, "marquez"),
    ):
        with pytest.raises(LeaseLost):
            write()

    assert world.values() == before


def test_a_lease_of_before_a_reset_does_not_hold_after_it(world: World) -> None:
    store = world.services.key_values
    old = acquired(world, "request-1")
    world.delete_state()
    new = acquired(world, "request-2")
    assert old.fence == new.fence

    with pytest.raises(LeaseLost):
        store.renew(old)
    with pytest.raises(LeaseLost):
        store.release(old, None)
    assert store.acquire(NAMESPACE, STATE_KEY, "ship", "ship_lineage", "request-3") == Busy("request-2", new.until)


def test_a_key_belongs_to_one_task(world: World) -> None:
    world.stream()
    world.ship(world.flow("ship", "hourly", offsetKey="ours"))
    key = "ours_ship_hourly"

    with pytest.raises(InvalidFlow) as refusal:
        world.services.key_values.acquire(NAMESPACE, key, "other", "daily", "request-2")

    assert refusal.value.faults == (
        f"tasks.daily.offsetKey: {key} is the state of task hourly of flow ship; use another offsetKey",
    )
