"""The torture of the engine, small; `make torture` is the large one."""

from __future__ import annotations

from tests.torture.torture import torture

RUNS = 44


def test_nothing_is_lost_and_only_what_was_in_flight_is_repeated_whatever_dies_when() -> None:
    figures, report = torture(RUNS, seed=5, per_episode=20)

    assert figures.faults == []
    assert {name: report[name] for name in ("lost", "repeatedOther", "outOfOrder")} == {
        "lost": 0,
        "repeatedOther": 0,
        "outOfOrder": 0,
    }
    assert figures.runs >= RUNS
    assert figures.kills >= RUNS // 5
    assert figures.events >= 100
