"""What stands where an offset should and is none is named, stays for others to see, and can be deleted (DESIGN 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.support.shipping import NAMESPACE, STATE_KEY
from waybill.errors import ExportFailed, InvalidOffset
from waybill.ship.offsets import Offsets
from waybill.ship.position import Position

if TYPE_CHECKING:
    from tests.support.shipping import World

OTHER = "AssetShipper-state_other_ship_lineage"
DAMAGES = [
    {"generation": {"N": "5"}},
    {"generation": {"S": "g"}, "fence": {"S": "one"}},
    {"generation": {"S": "g"}, "until": {"S": "tomorrow"}},
    {"generation": {"S": "g"}, "until": {"S": "2026-12-01T12:00:00"}},
    {"generation": {"S": "g"}, "until": {"N": "17"}},
]


def put_state(world: World, key: str, damage: dict[str, Any]) -> None:
    item = {"namespace": {"S": NAMESPACE}, "key": {"S": key}} | damage
    world.dynamodb.put_item(TableName=world.tables.key_values, Item=item)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_state_that_is_none_is_told_among_the_others_and_can_be_reset(world: World, damage: dict[str, Any]) -> None:
    put_state(world, OTHER, damage)
    marquez = world.stream()
    key = world.event()
    world.ship(delete=True)

    faults = {task.key: task.faults for task in Offsets(world.services).all(count=True)}
    Offsets(world.services).reset(NAMESPACE, OTHER)

    assert marquez.keys == [key]
    assert faults == {
        STATE_KEY: (),
        OTHER: (f"{NAMESPACE} {OTHER}: holds no offset; delete it to start again from lookbackPeriod",),
    }
    assert [state.key for state in world.services.states.all()] == [STATE_KEY]


@pytest.mark.parametrize("damage", [{"generation": {"N": "5"}}, {"generation": {"NULL": True}}])
def test_a_state_that_is_none_is_named_by_every_run_and_keeps_no_lease(world: World, damage: dict[str, Any]) -> None:
    world.stream()
    put_state(world, STATE_KEY, damage)
    before = world.state()

    for _ in range(2):
        with pytest.raises(ExportFailed, match=f"{STATE_KEY}: holds no offset; delete it"):
            world.ship()

    assert world.state() == before


@pytest.mark.parametrize(
    "changes",
    [
        {"shards": {}},
        {"since": 5},
        {"since": "garbage"},
        {"since": ""},
        {"since": "ffffffff-ffff-7000-8000-000000000000"},
        {"generation": "zzz"},
        {"generation": 5},
        {"last": None},
        {"last": "2026-12-01T09:00:00Z"},
        {"swept": "x"},
        {"deleted": {"0": "x"}},
        {"deleting": ["x"]},
        {"before": {"0": {"key": "x", "answered": [], "recent": [10_000, 16, {}]}}},
    ],
)
def test_a_position_with_a_wrong_value_is_none(world: World, changes: dict[str, Any]) -> None:
    world.stream()
    world.event()
    world.ship()
    name = world.position_name("marquez")
    good = orjson.loads(world.values()[name]["body"])

    with pytest.raises(InvalidOffset) as refusal:
        Position.from_json(orjson.dumps(good | changes).decode(), name)

    assert str(refusal.value) == f"{name}: holds no position; delete it to start again from lookbackPeriod"


@pytest.mark.parametrize("changes", [{"key": ""}, {"key": "2026-12-01T09:00:00Z"}, {"owed": ["x"]}, {"answered": [1]}])
def test_a_shard_with_a_wrong_value_is_none(world: World, changes: dict[str, Any]) -> None:
    world.stream()
    world.ship()
    good = orjson.loads(world.values()[world.position_name("marquez")]["body"])
    good["shards"]["0"] |= changes

    with pytest.raises(InvalidOffset):
        Position.from_json(orjson.dumps(good).decode(), "the position")


def test_beside_a_position_that_is_none_all_others_are_shown(world: World) -> None:
    world.stream("broken")
    world.stream("good")
    world.ship()
    world.put_position(world.position_name("broken"), {"S": "{}"})

    (task,) = Offsets(world.services).all(count=True)

    assert [exporter.id for exporter in task.exporters] == ["good"]
    assert task.faults == (
        f"{NAMESPACE} {STATE_KEY} of broken: holds no position; delete it to start again from lookbackPeriod",
    )


def test_a_position_that_is_no_text_fails_its_exporter_alone(world: World) -> None:
    broken, good = world.stream("broken"), world.stream("good")
    world.ship()
    key = world.event(ago=31)
    name = world.position_name("broken")
    world.put_position(name, {"N": "5"})

    with pytest.raises(ExportFailed) as failure:
        world.ship()

    assert str(failure.value) == (
        f"ship_lineage.broken: {name}: holds no position; delete it to start again from lookbackPeriod"
    )
    assert (broken.keys, good.keys) == ([], [key])
