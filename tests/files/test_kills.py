"""The process dies at any call, before or after it is carried out: each event ends up in one file that counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.filing import FilingWorld, Mortal
from tests.support.shipping import Died
from tests.support.tables import make_tables
from waybill.export.files import series, upload

if TYPE_CHECKING:
    from tools.emulator import Emulator

EVENTS = 7
MOST_STEPS = 40
STORE_WRITES = ("put_item", "update_item", "delete_item", "transact_write_items")


def run_until_death(world: FilingWorld, process: Mortal) -> bool:
    """Run the flow in a process; tell whether it died."""
    world.s3_of = lambda client: process.client(client, lambda name: name != "get_paginator")
    world.process = process.client(world.dynamodb, lambda name: name in STORE_WRITES)
    try:
        world.ship(world.filing(maxLinesPerFile=3, compression="none"))
    except Died:
        return True
    return False


def filled_world(emulator: Emulator) -> FilingWorld:
    world = FilingWorld(make_tables(emulator.url))
    world.fill((f"load.task_{number}" for number in range(EVENTS)), ago=600, apart=60)
    return world


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two lines fill a part, so that every way of writing is on the path."""
    for module in (series, upload):
        monkeypatch.setattr(module, "PART_BYTES", 1_000)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("carried_out", [False, True], ids=["before", "after"])
def test_each_event_stands_in_one_file_that_counts(emulator: Emulator, carried_out: bool) -> None:
    steps: list[str] = []
    for step in range(1, MOST_STEPS):
        world = filled_world(emulator)
        process = Mortal(step, carried_out=carried_out)
        died = run_until_death(world, process)
        world.clock.turn(minutes=3)
        world.event("load.later", ago=31)

        run_until_death(world, Mortal())

        counted = [document["id"] for document in world.documents(world.counted_uris())]
        assert sorted(counted) == sorted(world.event_ids()), f"killed at call {step}: {process.calls[-1]}"
        if not died:
            break
        steps.append(process.calls[-1])
    assert {"upload_part", "complete_multipart_upload", "put_object", "delete_object_tagging"} <= set(steps)
    assert "update_item" in steps
