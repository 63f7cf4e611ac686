"""What a run ships, and what it leaves (DESIGN 4 and 5)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.shipping import NAMESPACE, NOON
from waybill.clock import from_millis, iso
from waybill.ids import uuid7, uuid7_millis
from waybill.model.asset import AssetRef

if TYPE_CHECKING:
    from tests.support.shipping import World


def recorded(key: str) -> str:
    return iso(from_millis(uuid7_millis(key)))


def test_a_run_ships_all_and_the_next_one_nothing(world: World) -> None:
    marquez = world.stream()
    keys = [world.event(f"load.task_{number}", ago=300 - number) for number in range(40)]

    first, second = world.ship(), world.ship()

    assert sorted(marquez.keys) == keys
    assert first == {
        "size": 40,
        "endFetchedDate": recorded(keys[-1]),
        "complete": True,
        "outputs": {"marquez": {"delivered": 40}},
    }
    assert second == first | {"size": 0, "outputs": {"marquez": {"delivered": 0}}}


def test_before_the_first_event_there_is_no_end(world: World) -> None:
    world.stream()

    assert world.ship() == {
        "size": 0,
        "endFetchedDate": None,
        "complete": True,
        "outputs": {"marquez": {"delivered": 0}},
    }


def test_a_run_starts_at_the_lookback_period(world: World) -> None:
    marquez = world.stream()
    world.event(ago=2 * 86_400 + 1)
    within = [world.event(ago=2 * 86_400 - 1), world.event(ago=3_600)]

    world.ship(lookbackPeriod="P2D")

    assert marquez.keys == within


def test_nothing_within_the_settle_window_is_read(world: World) -> None:
    marquez = world.stream()
    settled, young = world.event(ago=31), world.event(ago=29)

    world.ship()
    assert marquez.keys == [settled]

    world.clock.turn(seconds=2)
    world.ship()
    assert marquez.keys == [settled, young]


def test_equal_timestamps_are_all_shipped_once_wherever_a_run_ends(world: World) -> None:
    marquez = world.stream()
    moment = NOON - timedelta(seconds=60)
    keys = sorted(world.event(f"load.task_{number % 3}", key=uuid7(moment)) for number in range(30))

    world.ship()
    more = sorted(world.event(f"load.task_{number % 3}", key=uuid7(moment)) for number in range(5))
    world.ship()

    assert sorted(marquez.keys) == keys + more


def test_hour_borders_lose_nothing(world: World) -> None:
    marquez = world.stream()
    borders = [NOON - timedelta(hours=hours) for hours in (5, 4, 1)]
    keys = [
        world.event("load.customers", key=uuid7(border + timedelta(milliseconds=millis)))
        for border in borders
        for millis in (-1, 0, 1)
    ]

    world.ship()

    assert marquez.keys == keys


def test_events_of_a_job_go_in_the_order_of_the_log_and_jobs_side_by_side(world: World) -> None:
    marquez = world.stream(in_flight=8)
    expected: dict[str, list[str]] = {}
    for number in range(60):
        job = f"load.task_{number % 6}"
        expected.setdefault(f"{NAMESPACE}/{job}", []).append(world.event(job, ago=600 - number))

    world.ship()

    assert marquez.by_job() == expected


def test_a_changed_number_of_shards_keeps_the_order_of_each_job(world: World) -> None:
    marquez = world.stream()
    world.clock.turn(hours=-3)
    world.shards.announce(7)
    world.clock.turn(hours=3)
    assert [generation.shards for generation in world.shards.generations()] == [4, 7]
    expected: dict[str, list[str]] = {}
    for number in range(40):
        job = f"load.task_{number % 5}"
        key = world.event(job, ago=3_600 - 20 + 2 * (20 - number))
        expected.setdefault(f"{NAMESPACE}/{job}", []).append(key)

    first = world.ship()
    second = world.ship()

    assert marquez.by_job() == expected
    assert (first["size"], second["size"]) == (40, 0)


@pytest.mark.parametrize(
    ("filters", "shipped"),
    [
        ({"flowNamespace": NAMESPACE}, {"load.customers", "load.orders", "clean.customers"}),
        ({"flowNamespace": "company"}, set()),
        ({"flowId": "load"}, {"load.customers", "load.orders"}),
        ({"taskId": "customers"}, {"load.customers", "clean.customers"}),
        ({"flowId": "load", "taskId": "orders"}, {"load.orders"}),
    ],
)
def test_filters_on_the_event_match_exactly(world: World, filters: dict[str, Any], shipped: set[str]) -> None:
    marquez = world.stream()
    for job in ("load.customers", "load.orders", "clean.customers"):
        world.event(job)

    answer = world.ship(**filters)

    assert {delivery.event.job.partition("/")[2] for delivery in marquez.deliveries} == shipped
    assert answer["size"] == len(shipped)
    assert world.ship(**filters)["size"] == 0


def test_filters_on_assets_look_at_each_asset_as_it_is_now(world: World) -> None:
    marquez = world.stream()
    world.catalog.put("raw", type="file", namespace="company.lake")
    world.catalog.put("clean", type="table", namespace="company.lake")
    world.catalog.put("elsewhere", type="table", namespace="company.sales")
    both = world.event(inputs=(AssetRef("raw", "table"),), outputs=(AssetRef("clean"), AssetRef("elsewhere")))
    world.event(inputs=(AssetRef("raw"),), outputs=(AssetRef("elsewhere"),))

    answer = world.ship(assetNamespace="company.lake", assetTypes=["table"])

    (delivery,) = marquez.deliveries
    assert delivery.key == both
    assert (delivery.inputs, [asset.id for asset in delivery.outputs]) == ((), ["clean"])
    assert answer["size"] == 1


def test_a_deleted_asset_leaves_its_event_and_an_unwritten_one_stays(world: World) -> None:
    marquez = world.stream()
    world.catalog.put("gone", type="table", deleted=True)
    refs = (AssetRef("gone", "table"), AssetRef("to-come", "table", "company.lake"), AssetRef("bare"))
    world.event("load.good", inputs=refs, outputs=refs)
    world.event("load.failed", state="FAILED", inputs=refs, outputs=refs)
    world.event("load.empty", inputs=(AssetRef("gone"),), outputs=())

    world.ship()

    sides = {
        delivery.event.task_id: [
            [(asset.id, asset.type, asset.namespace) for asset in side] for side in (delivery.inputs, delivery.outputs)
        ]
        for delivery in marquez.deliveries
    }
    external = "io.kestra.core.models.assets.External"
    inputs = [("to-come", "table", "company.lake"), ("bare", external, NAMESPACE)]
    outputs = [("to-come", "table", "company.lake"), ("bare", external, None)]
    assert sides == {"good": [inputs, outputs], "failed": [inputs, []], "empty": [[], []]}


def test_a_page_of_events_asks_the_catalog_once(world: World) -> None:
    world.stream()
    for number in range(50):
        world.event(outputs=(AssetRef(f"asset-{number % 10}"),))

    world.ship()

    assert world.catalog.asked == [{"raw", *(f"asset-{number}" for number in range(10))}]


def test_a_body_kept_in_s3_is_read_like_any_other(world: World) -> None:
    marquez = world.stream()
    key = uuid7(NOON - timedelta(seconds=60))
    world.event(key=key)
    items = world.dynamodb.scan(TableName=world.tables.lineage)["Items"]
    (item,) = (item for item in items if item["id"]["S"] == key)
    world.objects.put("events/large.json", item.pop("body")["S"].encode())
    world.dynamodb.put_item(TableName=world.tables.lineage, Item=item | {"object": {"S": "events/large.json"}})

    world.ship()

    assert marquez.keys == [key]
