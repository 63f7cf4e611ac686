"""Where a task is: stored, reset by deleting, and refused when what stands there is no offset (DESIGN 7)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.shipping import NAMESPACE, NOON, STATE_KEY
from waybill.clock import from_millis
from waybill.errors import ExportFailed, InvalidDocument, InvalidFlow, StoreBusy
from waybill.ids import uuid7_millis
from waybill.ship.offsets import ExporterOffset, Offsets

if TYPE_CHECKING:
    from datetime import datetime

    from tests.support.shipping import World
    from waybill.export.ports import Delivery


def parameter(world: World) -> str:
    assert world.offsets is not None
    return world.offsets.name(NAMESPACE, STATE_KEY)


def parameter_value(world: World, parameters: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(parameters.get_parameter(Name=parameter(world))["Parameter"]["Value"])
    return value


def refuse(*_: Any) -> None:
    raise StoreBusy("throttled")


def test_deleting_the_state_starts_again_from_the_lookback_period(world: World) -> None:
    marquez = world.stream()
    keys = [world.event(ago=7 * 3_600), world.event(ago=3_600), world.event(ago=60)]
    world.ship(lookbackPeriod="P1D")
    assert marquez.keys == keys

    world.delete_state()
    answer = world.ship(lookbackPeriod="PT2H")

    assert marquez.keys == keys + keys[1:]
    assert answer["size"] == 2


def test_deleting_the_state_while_the_task_runs_is_a_reset_all_the_same(world: World) -> None:
    marquez = world.stream(in_flight=1)
    keys = [world.event(ago=60 - number) for number in range(3)]

    async def reset(_: Delivery) -> None:
        if not marquez.keys:
            world.delete_state()

    marquez.before = reset
    with pytest.raises(ExportFailed, match="the state was deleted"):
        world.ship()
    assert world.state() == {}
    marquez.before = None

    world.ship()

    assert marquez.keys == keys + keys


def test_deleting_the_parameter_starts_again_from_the_lookback_period(world: World, parameters: Any) -> None:
    marquez = world.stream()
    keys = [world.event(ago=90), world.event(ago=60)]
    first = world.ship()
    value = parameter_value(world, parameters)
    assert value == {"generation": world.state()["generation"], "endFetchedDate": first["endFetchedDate"]}
    assert world.ship() == first | {"size": 0, "outputs": {"marquez": {"delivered": 0}}}

    parameters.delete_parameter(Name=parameter(world))
    again = world.ship()

    assert marquez.keys == keys + keys
    assert again == first


def test_deleting_the_parameter_while_the_task_runs_is_a_reset_all_the_same(world: World, parameters: Any) -> None:
    marquez = world.stream(in_flight=1)
    keys = [world.event(ago=60 - number) for number in range(2)]

    async def reset(_: Delivery) -> None:
        if not marquez.keys:
            parameters.delete_parameter(Name=parameter(world))

    marquez.before = reset
    with pytest.raises(ExportFailed, match="the parameter was deleted or changed while the task ran"):
        world.ship()
    marquez.before = None

    world.ship()

    assert marquez.keys == keys + keys


@pytest.mark.parametrize("first_fails", [False, True])
def test_beside_a_parameter_deleting_the_state_is_a_reset_too(
    world: World, parameters: Any, monkeypatch: pytest.MonkeyPatch, *, first_fails: bool
) -> None:
    marquez = world.stream()
    keys = [world.event(ago=90), world.event(ago=60)]
    for _ in range(4):
        world.ship()
    old = parameter_value(world, parameters)["generation"]

    world.delete_state()
    if first_fails:
        with monkeypatch.context() as patch:
            patch.setattr(world.offsets, "begin", refuse)
            with pytest.raises(ExportFailed, match="ship_lineage: throttled"):
                world.ship()
    again, empty = world.ship(), world.ship()

    assert marquez.keys == keys + keys
    assert (again["size"], empty["size"]) == (2, 0)
    assert parameter_value(world, parameters)["generation"] == world.state()["generation"] != old


def test_a_reset_by_the_parameter_is_followed_although_the_run_that_saw_it_died(
    world: World, parameters: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    marquez = world.stream()
    key = world.event(ago=90)
    world.ship()
    parameters.delete_parameter(Name=parameter(world))
    services = world.fixed_services = world.services
    with monkeypatch.context() as patch:
        patch.setattr(services.key_values, "regenerate", refuse)
        with pytest.raises(ExportFailed):
            world.ship()
    begun = parameter_value(world, parameters)["generation"]

    world.ship()

    assert marquez.keys == [key, key]
    assert parameter_value(world, parameters)["generation"] == begun


@pytest.mark.parametrize(
    "value",
    [
        "2026-12-01T09:00:00Z",
        "[]",
        "17",
        '{"endFetchedDate": null}',
        '{"generation": null}',
        '{"generation": ""}',
        '{"generation": ["x"]}',
        '{"generation": "x", "endFetchedDate": 5}',
        '{"generation": "x", "endFetchedDate": "yesterday"}',
    ],
)
def test_a_parameter_that_is_no_offset_fails_the_task_and_stays_as_it_is(
    world: World, parameters: Any, value: str
) -> None:
    marquez = world.stream()
    world.event()
    parameters.put_parameter(Name=parameter(world), Value=value, Type="String")

    for _ in range(2):
        with pytest.raises(ExportFailed) as failure:
            world.ship()
        assert str(failure.value) == (
            f"ship_lineage: {parameter(world)}: holds no offset; "
            "delete the parameter to start again from lookbackPeriod"
        )

    assert marquez.keys == []
    assert parameters.get_parameter(Name=parameter(world))["Parameter"]["Value"] == value


@pytest.mark.parametrize(
    "damage",
    [
        {"fence": {"S": "one"}},
        {"fence": {"N": "1"}, "generation": {"S": "g"}, "until": {"S": "tomorrow"}},
        {"fence": {"N": "1"}, "generation": {"S": "g"}, "until": {"N": "17"}, "owner": {"S": "me"}},
    ],
)
def test_a_state_that_is_none_fails_the_task(world: World, damage: dict[str, Any]) -> None:
    world.stream()
    item = {"namespace": {"S": NAMESPACE}, "key": {"S": STATE_KEY}} | damage
    world.dynamodb.put_item(TableName=world.tables.key_values, Item=item)

    with pytest.raises(ExportFailed) as failure:
        world.ship()

    assert str(failure.value) == (
        f"ship_lineage: {NAMESPACE} {STATE_KEY}: holds no offset; delete it to start again from lookbackPeriod"
    )


def test_a_plain_value_under_the_key_is_left_alone_and_the_task_starts_at_the_lookback_period(world: World) -> None:
    marquez = world.stream()
    item = {"namespace": {"S": NAMESPACE}, "key": {"S": STATE_KEY}, "value": {"S": "2026-12-01T09:00:00Z"}}
    world.dynamodb.put_item(TableName=world.tables.key_values, Item=item)
    key = world.event()

    world.ship()

    assert marquez.keys == [key]


@pytest.mark.parametrize("body", ["2026-12-01T09:00:00Z", "{}", "[1]", '{"since": 1, "shards": {"a": {}}}'])
def test_a_position_that_is_none_fails_its_exporter_alone(world: World, body: str) -> None:
    broken, good = world.stream("broken"), world.stream("good")
    world.ship()
    key = world.event(ago=31)
    name = world.position_name("broken")
    world.put_position(name, {"S": body})

    with pytest.raises(ExportFailed) as failure:
        world.ship()

    assert str(failure.value) == (
        f"ship_lineage.broken: {name}: holds no position; delete it to start again from lookbackPeriod"
    )
    assert (broken.keys, good.keys) == ([], [key])


def test_without_access_to_every_namespace_a_filter_on_a_namespace_is_needed(world: World) -> None:
    marquez = world.stream()
    world.barred = ["company.secret"]
    world.event()

    with pytest.raises(InvalidFlow) as refusal:
        world.ship()
    assert str(refusal.value) == (
        f"tasks.ship_lineage: flows of {NAMESPACE} may not access company.secret; "
        "set flowNamespace or assetNamespace, or allow the namespace there"
    )
    assert (marquez.keys, world.values()) == ([], {})

    assert world.ship(flowNamespace=NAMESPACE)["size"] == 1


def shown(world: World, *, count: bool = True) -> tuple[ExporterOffset, ...]:
    (task,) = Offsets(world.services).all(count=count)
    assert (task.namespace, task.key) == (NAMESPACE, STATE_KEY)
    return task.exporters


def recorded(key: str) -> datetime:
    return from_millis(uuid7_millis(key))


def test_counting_what_waits_does_not_change_how_far_an_exporter_is(world: World) -> None:
    marquez = world.stream()
    marquez.down = True
    keys = [world.event(ago=3 * 3_600), world.event(ago=90), world.event(ago=60)]
    with pytest.raises(ExportFailed):
        world.ship()

    through = NOON - timedelta(hours=3)  # the hours before the first event are closed, and empty
    assert shown(world) == (ExporterOffset("marquez", through, 3, recorded(keys[0])),)
    assert shown(world, count=False) == (ExporterOffset("marquez", through, None, None),)


def test_when_all_is_shipped_nothing_waits_and_nothing_ages(world: World) -> None:
    world.stream()
    world.event(ago=90)
    world.ship()

    world.clock.turn(minutes=20)
    (exporter,) = shown(world)
    assert (exporter.waiting, exporter.oldest) == (0, None)

    key = world.event(ago=5)
    (exporter,) = shown(world)
    assert (exporter.waiting, exporter.oldest) == (1, recorded(key))


def test_what_waits_is_counted_in_each_generation_of_shards(world: World) -> None:
    world.stream()
    world.ship()
    world.shards.announce(2)
    keys = [world.event("load.a", ago=30)]
    world.clock.turn(hours=3)
    keys += [world.event(f"load.{name}", ago=60) for name in "abcdef"]

    (exporter,) = shown(world)

    assert (exporter.waiting, exporter.oldest) == (7, recorded(keys[0]))


def test_a_position_is_begun_for_a_task_that_has_not_run(world: World) -> None:
    marquez, other = world.stream(), world.stream("other")
    keys = [world.event(ago=3 * 3_600), world.event(ago=90), world.event(ago=60)]

    Offsets(world.services).set(NAMESPACE, STATE_KEY, NOON - timedelta(hours=1), world.flow())
    world.ship()

    assert (marquez.keys, other.keys) == (keys[1:], keys[1:])


def test_set_with_its_flow_a_task_that_has_run_ships_again_and_to_new_exporters(world: World) -> None:
    marquez = world.stream()
    key = world.event(ago=90)
    world.ship()
    other = world.stream("other")

    Offsets(world.services).set(NAMESPACE, STATE_KEY, NOON - timedelta(hours=1), world.flow())
    world.ship(lookbackPeriod="PT1S")

    assert (marquez.keys, other.keys) == ([key, key], [key])


def test_a_position_is_begun_in_parameter_store_too(world: World, parameters: Any) -> None:
    marquez = world.stream()
    keys = [world.event(ago=3 * 3_600), world.event(ago=60)]

    Offsets(world.services).set(NAMESPACE, STATE_KEY, NOON - timedelta(hours=1), world.flow())

    value = json.loads(parameters.get_parameter(Name=parameter(world))["Parameter"]["Value"])
    assert value == {"generation": world.state()["generation"], "endFetchedDate": None}
    world.ship()
    assert marquez.keys == keys[1:]


def test_a_key_that_no_task_has_is_refused_and_nothing_begun(world: World) -> None:
    world.stream()
    offsets = Offsets(world.services)

    with pytest.raises(InvalidDocument) as refusal:
        offsets.set(NAMESPACE, "AssetShipper-state_other", NOON, world.flow())
    assert refusal.value.faults == (
        f"{NAMESPACE} AssetShipper-state_other: is the key of no task of the flow; it has {NAMESPACE} {STATE_KEY}",
    )
    with pytest.raises(InvalidDocument) as refusal:
        offsets.set(NAMESPACE, STATE_KEY, NOON)
    assert str(refusal.value) == (
        f"{NAMESPACE} {STATE_KEY}: no task has shipped under this key; known are none; "
        "with --flow FILE a task that has not run yet is begun"
    )
    assert world.values() == {}


def test_the_offset_of_a_task_without_positions_is_not_set_without_its_flow(world: World) -> None:
    world.services.key_values.acquire(NAMESPACE, STATE_KEY, "ship", "ship_lineage", "run")

    with pytest.raises(InvalidDocument, match="no exporter of the task has a position yet; give --flow FILE"):
        Offsets(world.services).set(NAMESPACE, STATE_KEY, NOON)
