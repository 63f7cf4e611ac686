"""Whatever the pages, the hours and the numbers of shards: the reader skips nothing and gives nothing twice."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.support.stores_in_memory import LogInMemory
from waybill.ids import uuid7, uuid7_floor
from waybill.ship.reader import Reader, hour_of_key
from waybill.store.shards import Generation, generation_at, shard_of

if TYPE_CHECKING:
    from waybill.ship.position import Position

NINE = datetime(2026, 12, 1, 9, tzinfo=UTC)
HOURS = 6

jobs = st.integers(0, 11).map(lambda number: f"company/load.task_{number}")
moments = st.one_of(
    st.integers(0, HOURS * 3_600_000 - 1),
    st.integers(0, HOURS - 1).map(lambda hour: hour * 3_600_000),
    st.integers(1, HOURS).map(lambda hour: hour * 3_600_000 - 1),
).map(lambda millis: NINE + timedelta(milliseconds=millis))
events = st.lists(st.tuples(moments, jobs), max_size=40)
numbers = st.integers(1, 6)
changes = st.dictionaries(st.integers(1, HOURS - 1), numbers, max_size=3)
horizons = st.integers(0, HOURS * 3_600_000).map(lambda millis: uuid7_floor(NINE + timedelta(milliseconds=millis)))


def generations_of(first: int, later: dict[int, int]) -> list[Generation]:
    return [Generation("0000", first)] + [
        Generation(f"2026-12-01T{9 + hour:02}", shards) for hour, shards in sorted(later.items())
    ]


def filled(
    recorded: list[tuple[datetime, str]], generations: list[Generation], seed: int
) -> tuple[LogInMemory, dict[str, str]]:
    """Return a log, and the job of each key in it."""
    log = LogInMemory(random.Random(seed))  # noqa: S311 - to be the same again
    found = {}
    for moment, job in recorded:
        key = uuid7(moment)
        hour = hour_of_key(key)
        log.put(f"{hour}#{shard_of(job, generation_at(generations, hour).shards)}", key, job)
        found[key] = job
    return log, found


def read_on(reader: Reader, position: Position, *, ahead: bool) -> tuple[Position, list[tuple[str, str]]]:
    """Read from a position to the horizon, and return where that is and what came, each with its job."""
    came: list[tuple[str, str]] = []
    following: Position | None = position
    while following is not None:
        position = following
        for number, shard in position.shards.items():
            for items, border in _steps(reader, number, shard.key, reader.end_of(position), ahead=ahead):
                came += items
                shard.key = border or (items[-1][0] if items else shard.key)
        following = reader.next_generation(position)
    return position, came


def _steps(
    reader: Reader, number: int, after: str, end: str | None, *, ahead: bool
) -> list[tuple[list[tuple[str, str]], str | None]]:
    async def collected() -> list[tuple[list[tuple[str, str]], str | None]]:
        return [(_items(step), step.border) async for step in reader.steps(number, after, end)]

    if ahead:
        return asyncio.run(collected())
    return [(_items(step), step.border) for step in reader.read(number, after, end)]


def _items(step: object) -> list[tuple[str, str]]:
    return [(item.key, str(item.body)) for item in step.items]  # type: ignore[attr-defined]


@given(events, numbers, changes, horizons, horizons, st.integers(0, 9), st.booleans())
def test_everything_between_the_start_and_the_horizon_comes_once_and_in_order_of_each_job(
    recorded: list[tuple[datetime, str]],
    first: int,
    later: dict[int, int],
    since: str,
    horizon: str,
    seed: int,
    ahead: bool,
) -> None:
    generations = generations_of(first, later)
    log, written = filled(recorded, generations, seed)
    reader = Reader(log, generations, horizon)  # type: ignore[arg-type]

    _, came = read_on(reader, reader.start(since), ahead=ahead and len(recorded) < 12)

    assert sorted(key for key, _ in came) == sorted(key for key in written if since < key <= horizon)
    for job in set(written.values()):
        order = [key for key, of in came if of == job]
        assert order == sorted(order)


@given(events, numbers, changes, st.lists(horizons, min_size=1, max_size=4), st.integers(0, 9))
def test_run_after_run_nothing_is_skipped_or_doubled(
    recorded: list[tuple[datetime, str]], first: int, later: dict[int, int], stops: list[str], seed: int
) -> None:
    generations = generations_of(first, later)
    log, written = filled(recorded, generations, seed)
    start = uuid7_floor(NINE - timedelta(milliseconds=1))
    position = Reader(log, generations, start).start(start)  # type: ignore[arg-type]
    came: list[str] = []
    for horizon in sorted(stops):
        known = [generation for generation in generations if generation.start <= hour_of_key(horizon)]
        position, more = read_on(Reader(log, known, horizon), position, ahead=False)  # type: ignore[arg-type]
        came += [key for key, _ in more]

    assert sorted(came) == sorted(key for key in written if key <= max(stops))
