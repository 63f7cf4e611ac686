"""Kills runs of the engine at every point, over and over, and counts what came of it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.torture.clock import SharedClock
from tests.torture.episode import Bench, Episode
from tests.torture.judge import Figures
from tests.torture.receiver import Receiver
from tests.torture.runs import Forks
from tools.emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS_PER_EPISODE = 40
FILES_EVERY = 5
"""One episode in so many ships to files."""


def torture(
    runs: int, seed: int, tell: Callable[[str], None] = lambda _: None, per_episode: int = RUNS_PER_EPISODE
) -> tuple[Figures, dict[str, Any]]:
    """Torture the engine.

    Args:
        runs: at least so many, in episodes that start with an empty log.
        seed: decides what happens; what the machine does between remains its own.
        tell: told of each episode.

    Returns:
        The figures, and what `build/torture.json` holds.
    """
    figures = Figures()
    with (
        tempfile.TemporaryDirectory() as folder,
        Emulator() as emulator,
        Forks(emulator.url) as first,
        Forks(emulator.url) as second,
        Receiver() as receiver,
    ):
        bench = Bench(emulator.url, SharedClock(Path(folder) / "clock"), (first, second), receiver, Path(folder))
        number = 0
        while figures.runs < runs:
            files = number % FILES_EVERY == 1
            episode = Episode(bench, seed + number, files=files)
            figures.add(episode.play(min(per_episode, max(1, runs - figures.runs))))
            number += 1
            tell(f"episode {number} ({'files' if files else 'posts'}): {_short(figures)}")
    return figures, _report(figures, seed)


def _short(figures: Figures) -> str:
    return (
        f"{figures.runs} runs, {figures.kills} kills, {figures.events} events, {figures.lost} lost, "
        f"{figures.repeated_in_flight} repeated in flight, {figures.repeated_other} repeated otherwise, "
        f"{figures.out_of_order} out of order, {figures.late_commits} late commits, {len(figures.faults)} faults"
    )


def _report(figures: Figures, seed: int) -> dict[str, Any]:
    return {
        "runs": figures.runs,
        "kills": figures.kills,
        "events": figures.events,
        "lost": figures.lost,
        "repeatedInFlight": figures.repeated_in_flight,
        "repeatedOther": figures.repeated_other,
        "mostInFlight": figures.most_in_flight,
        "outOfOrder": figures.out_of_order,
        "lateCommits": figures.late_commits,
        "faults": len(figures.faults),
        "seed": seed,
    }
