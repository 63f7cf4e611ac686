"""Answers may come in any order: the position never moves over an event that is not answered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from waybill.ids import uuid7, uuid7_floor
from waybill.ship.position import Position, ShardPosition
from waybill.ship.recent import Recent
from waybill.ship.tracker import Entry, Tracker

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
START = uuid7_floor(NOON)

moments = st.integers(0, 500_000).map(lambda millis: NOON + timedelta(milliseconds=millis))
keys = moments.map(uuid7)
steps = st.lists(st.sampled_from(("event", "passed", "border")), max_size=30)


def in_order(kinds: list[str]) -> list[tuple[str, str]]:
    """Return the steps of a shard, each with its key."""
    return [(kind, uuid7(NOON + timedelta(milliseconds=number + 1))) for number, kind in enumerate(kinds)]


@given(steps, st.data())
def test_the_position_stands_before_the_first_unanswered_event_whatever_the_order(
    kinds: list[str], data: st.DataObject
) -> None:
    position = ShardPosition(START)
    tracker = Tracker(position)
    plan = in_order(kinds)
    entries: list[tuple[int, Entry]] = []
    for number, (kind, key) in enumerate(plan):
        if kind == "border":
            tracker.border(key)
        else:
            entry = tracker.add(key, passed=kind == "passed")
            entries += [(number, entry)] if kind == "event" else []
    open_steps = dict(entries)
    for number, entry in data.draw(st.permutations(entries)):
        first_open = min(open_steps)
        assert position.key == (plan[first_open - 1][1] if first_open else START)
        assert position.answered == {
            key for n, (kind, key) in enumerate(plan) if kind == "event" and n > first_open
        } - {plan[n][1] for n in open_steps}
        tracker.done(entry)
        del open_steps[number]

    assert position.key == (plan[-1][1] if plan else START)
    assert (position.answered, tracker.open) == (set(), 0)
    assert position.recent.missing(key for kind, key in plan if kind != "border") == []


@given(steps, st.data())
def test_a_run_knows_what_it_answered_and_no_more(kinds: list[str], data: st.DataObject) -> None:
    plan = [(kind, key) for kind, key in in_order(kinds) if kind == "event"]
    before = {key for _, key in plan if data.draw(st.booleans())}
    tracker = Tracker(ShardPosition(START, answered=set(before)))
    entries = [tracker.add(key, passed=key in before) for _, key in plan]
    answered = [entry for entry in entries if entry.key not in before and data.draw(st.booleans())]
    for entry in answered:
        tracker.done(entry)

    assert {key for _, key in plan if tracker.covers(key)} == {entry.key for entry in answered}


shard_positions = st.builds(
    lambda key, answered, owed, passed: ShardPosition(key, answered, owed, _recent(passed)),
    keys,
    st.sets(keys, max_size=4),
    st.sets(keys, max_size=2),
    st.lists(keys, max_size=20),
)
shards = st.dictionaries(st.integers(0, 255), shard_positions, min_size=1, max_size=5)


def _recent(passed: list[str]) -> Recent:
    recent = Recent()
    for key in passed:
        recent.add(key)
    return recent


@given(
    st.builds(
        Position,
        keys,
        st.sampled_from(("0000", "2026-12-01T12")),
        shards,
        st.one_of(st.just(""), keys),
        st.one_of(st.just({}), shards),
        st.one_of(st.just(""), keys),
        st.dictionaries(st.integers(0, 255), keys, max_size=3),
        st.lists(keys.map(lambda key: f"3/{key}"), max_size=3),
    )
)
def test_a_position_is_the_same_word_after_a_round_through_json(position: Position) -> None:
    text = position.to_json()

    assert Position.from_json(text, "here").to_json() == text


@given(st.lists(keys, min_size=1, max_size=6, unique=True), st.sampled_from((0, 700, 1_500)))
def test_forgetting_keeps_what_a_sweep_may_ask_for(passed: list[str], swept_after: int) -> None:
    position = Position.start(START, "0000", [0])
    shard = position.shards[0]
    for key in sorted(passed):
        shard.recent.add(key)
        shard.key = key
    position.swept = uuid7_floor(NOON + timedelta(seconds=swept_after))
    position.forget()
    oldest = position.oldest_late

    assert shard.recent.missing(key for key in passed if key > oldest) == []
