"""The answer of a task, the time it has, and log items that nobody can read (DESIGN 4 and 5)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.shipping import RETENTION, STATE_KEY
from waybill.clock import from_millis, iso
from waybill.errors import ExportFailed
from waybill.ids import uuid7, uuid7_millis
from waybill.ship.flow import run_flow

if TYPE_CHECKING:
    from tests.support.shipping import World
    from waybill.export.ports import Delivery


def recorded(key: str) -> str:
    return iso(from_millis(uuid7_millis(key)))


async def slowly(_: Delivery) -> None:
    await asyncio.sleep(0.03)


def test_a_run_ends_in_time_says_so_and_the_next_one_goes_on(world: World) -> None:
    marquez = world.stream(in_flight=1, before=slowly)
    keys = world.fill(["load.customers"] * 60, ago=100)

    first = world.ship(seconds=6.5)
    sent = len(marquez.keys)
    marquez.before = None
    second = world.ship()

    assert 0 < sent < 60
    assert first == {
        "size": sent,
        "endFetchedDate": recorded(keys[sent - 1]),
        "complete": False,
        "outputs": {"marquez": {"delivered": sent}},
    }
    assert (second["size"], second["complete"]) == (60 - sent, True)
    assert marquez.keys == keys


def test_a_run_without_time_does_nothing_and_is_not_continued(world: World) -> None:
    marquez = world.stream()
    world.event()

    answer, again = asyncio.run(run_flow(world.services, world.flow(), 5.0, "run"))

    task = answer["outputs"]["ship_lineage"]
    assert (marquez.keys, task["size"], task["complete"], again) == ([], 0, False, False)


@pytest.mark.parametrize(("seconds", "continued"), [(6.5, True), (60, False)])
def test_a_run_is_continued_when_it_moved_a_position_and_did_not_reach_the_end(
    world: World, seconds: float, continued: bool
) -> None:
    world.stream(in_flight=1, before=slowly)
    world.fill(["load.customers"] * 40, ago=100)

    _, again = asyncio.run(run_flow(world.services, world.flow(), seconds, "run"))

    assert again is continued


def test_the_end_is_where_every_exporter_has_everything(world: World) -> None:
    world.stream("quick")
    slow = world.stream("slow", in_flight=1, before=slowly)
    keys = world.fill(["load.customers"] * 60, ago=100)

    answer = world.ship(seconds=6.5)

    assert (answer["size"], answer["complete"]) == (60, False)
    assert answer["endFetchedDate"] == recorded(keys[len(slow.keys) - 1])


def test_an_empty_run_leaves_the_end_unchanged_and_so_does_one_whose_filters_drop_everything(world: World) -> None:
    world.stream()
    key = world.event(ago=40)
    world.ship(flowId="load")
    world.event("clean.customers", ago=31)

    answer = world.ship(flowId="load")

    assert (answer["size"], answer["endFetchedDate"]) == (0, recorded(key))


def test_the_end_that_is_stored_outlasts_a_failure(world: World) -> None:
    marquez = world.stream()
    key = world.event(ago=60)
    world.ship()
    world.event(ago=31)
    marquez.down = True
    with pytest.raises(ExportFailed):
        world.ship()

    assert world.state()["endFetchedDate"] == recorded(key)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("{", "JSONDecodeError: unexpected end of data: line 1 column 2 (char 1)"),
        ("{}", "KeyError: 'inputs'"),
        ("[]", "TypeError: list indices must be integers or slices, not str"),
        ("null", "TypeError: 'NoneType' object is not subscriptable"),
    ],
)
def test_a_log_item_that_cannot_be_read_is_parked_with_its_reason_and_the_rest_goes_on(
    world: World, body: str, fault: str
) -> None:
    marquez = world.stream()
    before, broken, after = world.event(ago=60), world.event(ago=50), world.event(ago=40)
    world.put_body(broken, "load.customers", body)

    answer, following = world.ship(), world.ship()

    assert marquez.keys == [before, after]
    assert (answer["size"], answer["outputs"]) == (2, {"marquez": {"delivered": 2, "parked": 1}})
    parked = world.values()[f"{STATE_KEY}#parked#marquez#{broken}"]
    assert parked["reason"] == f"the log item holds no lineage event: {fault}"
    assert following["size"] == 0


@pytest.mark.parametrize(
    "changes",
    [
        '"inputs":"raw"',
        '"inputs":[{"id":1}]',
        '"inputs":[7]',
        '"inputs":[{"id":"a","color":"red"}]',
        '"outputs":[{"id":"a","type":7}]',
        '"outputs":[{"id":"a","namespace":["b"]}]',
        '"state":7',
        '"namespace":null',
        '"labels":["a"]',
        '"labels":{"a":1}',
        '"error":"boom"',
        '"startDate":"yesterday"',
        '"endDate":17',
        '"executionStartDate":"yesterday"',
    ],
)
def test_a_body_of_wrong_types_is_parked_too(world: World, changes: str) -> None:
    marquez = world.stream()
    key = world.event(ago=50)
    (item,) = (item for item in world.dynamodb.scan(TableName=world.tables.lineage)["Items"] if item["id"]["S"] == key)
    world.put_body(key, "load.customers", item["body"]["S"][:-1] + f",{changes}}}")

    answer = world.ship()

    assert (marquez.keys, answer["outputs"]["marquez"]["parked"]) == ([], 1)


def test_a_body_that_left_s3_is_parked_and_the_rest_goes_on(world: World) -> None:
    marquez = world.stream()
    key, other = world.event(ago=50), world.event(ago=40)
    (item,) = (item for item in world.dynamodb.scan(TableName=world.tables.lineage)["Items"] if item["id"]["S"] == key)
    del item["body"]
    gone = item | {"object": {"S": "events/gone.json"}}
    world.dynamodb.put_item(TableName=world.tables.lineage, Item=gone)

    answer = world.ship()

    assert (marquez.keys, answer["outputs"]["marquez"]["parked"]) == ([other], 1)


@pytest.mark.parametrize(
    "attributes",
    [
        {"body": {"B": b"x"}},
        {"body": {"N": "1"}},
        {"body": {"NULL": True}},
        {"object": {"N": "1"}},
        {"object": {"S": ""}},
        {},
    ],
)
def test_an_item_of_other_types_is_parked_and_the_rest_goes_on(world: World, attributes: dict[str, Any]) -> None:
    marquez = world.stream()
    keys = [world.event(ago=100), world.event(ago=60)]
    bucket = next(i["bucket"] for i in world.dynamodb.scan(TableName=world.tables.lineage)["Items"] if "body" in i)
    odd = uuid7(world.clock() - timedelta(seconds=80))
    world.dynamodb.put_item(TableName=world.tables.lineage, Item={"bucket": bucket, "id": {"S": odd}} | attributes)

    answer = world.ship()

    assert (marquez.keys, answer["outputs"]["marquez"]["parked"]) == (keys, 1)


def test_a_position_outlives_every_event_that_it_owes(world: World) -> None:
    world.stream()
    world.event(ago=60)
    world.ship()

    (position,) = (item for name, item in world.values().items() if "#position#" in name)
    assert float(position["expires"]) >= (world.clock() + 2 * RETENTION).timestamp() - 1
