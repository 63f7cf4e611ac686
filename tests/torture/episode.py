"""One episode of torture: a log that is written and shipped at once, runs that die, and a quiet end."""

from __future__ import annotations

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.support.tables import aws_client, make_tables
from tests.torture.judge import Figures, Judge
from tests.torture.passing import LEASE_SECONDS, Passing
from tests.torture.points import KINDS, POST, POSTED
from tests.torture.recorders import Recorders
from tests.torture.runs import IN_FLIGHT, Order
from tests.torture.store import Store, fence_of
from waybill.store.shards import Shards

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.torture.clock import SharedClock
    from tests.torture.receiver import Receiver
    from tests.torture.runs import End, Forks

QUIET_RUNS = 8


@dataclass(frozen=True, slots=True)
class Bench:
    """What episodes share: an emulator, a clock, two ways to start runs, a receiver, a folder."""

    url: str
    clock: SharedClock
    forks: tuple[Forks, Forks]
    receiver: Receiver
    folder: Path


class Episode:
    """One log and one task, from the first event to the quiet end.

    Args:
        files: whether it ships to files rather than to a receiver.
    """

    def __init__(self, bench: Bench, seed: int, *, files: bool) -> None:
        self._bench = bench
        self._rng = random.Random(seed)  # noqa: S311 - to be the same again, not to be secret
        self._files = files
        tables = make_tables(bench.url)
        first_shards = self._rng.choice((1, 2, 4))
        shards = Shards(aws_client(bench.url, "dynamodb"), tables.lineage, first_shards, bench.clock)
        shards.generations()
        self._recorders = Recorders(tables, bench.clock, first_shards, self._rng)
        self._store = Store(tables)
        self._time = Passing(bench.clock, self._recorders.writer, shards, self._rng)
        self.figures = Figures()
        self._judge = Judge(self._recorders.writer.recorded, self.figures)
        self._judged = len(bench.receiver.received)
        self._number = 0
        self._usual = dict.fromkeys(KINDS, 30)
        self._order = Order(
            0, seed, tables, str(bench.folder / "clock"), str(bench.folder / "end"),
            "" if files else bench.receiver.uri, first_shards, checkpoint=self._rng.choice((2, 7, 25, 200)),
        )  # fmt: skip

    def play(self, runs: int) -> Figures:
        """Torture, then come to rest, then count."""
        self._time.leap_to_border()
        while self.figures.runs < runs:
            self._rng.choices(
                (self._killed, self._undisturbed, self._frozen, self._doubled, self._overslept, self._turned_away),
                (16, 1, 2, 1, 1, 1),
            )[0]()
            self._time.pause()
        self._come_to_rest()
        self._compare_log()
        if self._files:
            self._judge.take_files(self._store.filed())
        self._judge.finish()
        return self.figures

    def _killed(self) -> None:
        self._note(self._run(self._struck(signal.SIGKILL)))

    def _undisturbed(self) -> None:
        self._note(self._run(self._next()))

    def _frozen(self) -> None:
        """Freeze a run, let another one take over, and thaw it: it must move nothing."""
        end = self._run(self._struck(signal.SIGSTOP))
        if not end.stopped:
            self._note(end)
            return
        self._take()
        self._judge.struck(self._store.position())
        frozen = self._store.values()
        self._bench.clock.turn(LEASE_SECONDS)
        order = self._struck(signal.SIGKILL) if self._rng.random() < 0.5 else self._next()
        self._note(self._bench.forks[1].run(_second(order)))
        self._thaw(end.pid, frozen)

    def _thaw(self, pid: int, frozen: Mapping[str, str]) -> None:
        """Thaw a run: what it had on its way may arrive, but it moves nothing that a newer one has fenced."""
        before = self._store.values()
        os.kill(pid, signal.SIGCONT)
        self._expect_no_crash(self._bench.forks[0].end())
        with self._judge.lenient(IN_FLIGHT):
            self._take()
        now = self._store.values()
        fenced = [key for key, item in before.items() if fence_of(item) > fence_of(frozen.get(key))]
        moved = [key for key in fenced if now[key] != before[key] and fence_of(now[key]) == fence_of(before[key])]
        if moved:
            self.figures.faults.append(f"a thawed run moved what a newer one had stored: {moved}")
        self._judge.struck(self._store.position())

    def _doubled(self) -> None:
        """Start two runs at once."""
        first, second = self._bench.forks
        first.start(self._next())
        second.start(_second(self._next()))
        for end in (first.end(), second.end()):
            self._expect_no_crash(end)
        self._take()
        self._judge.ended(self._store.position())

    def _overslept(self) -> None:
        """Let a lease run out while its run is at work."""
        first, _ = self._bench.forks
        first.start(self._next())
        time.sleep(self._rng.uniform(0, 0.08))
        self._bench.clock.turn(LEASE_SECONDS)
        self._note(first.end())

    def _turned_away(self) -> None:
        """Let the receiver take nothing."""
        self._bench.receiver.down = True
        try:
            self._note(self._run(self._next()))
        finally:
            self._bench.receiver.down = False

    def _next(self) -> Order:
        self._number += 1
        self.figures.runs += 1
        return replace(
            self._order,
            run=self._number,
            seed=self._rng.randrange(1 << 30),
            throttled=self._rng.choice((0.0, 0.0, 0.01)),
            odd_pages=self._rng.choice((0.0, 0.3, 0.9)),
            seconds=self._rng.choice((60.0, 60.0, 60.0, 5.7, 6.0)),
        )

    def _struck(self, signal_number: int) -> Order:
        """Return a run that is struck at a point, each kind as likely as the others and each point of a kind."""
        kind = self._rng.choice([kind for kind in KINDS if not (self._files and kind in (POST, POSTED))])
        number = self._rng.randint(1, self._usual[kind])
        return replace(self._next(), kind=kind, number=number, signal_number=signal_number)

    def _run(self, order: Order) -> End:
        """Run, while recorders are at work."""
        with ThreadPoolExecutor(1) as pool:
            work = pool.submit(self._recorders.work, self._rng.randrange(1, 12))
            end = self._bench.forks[0].run(order)
            work.result()
        return end

    def _note(self, end: End) -> None:
        """Judge a run that was killed or came to its end."""
        self._expect_no_crash(end)
        self._take()
        position = self._store.position()
        if end.killed:
            self.figures.kills += 1
            in_flight = self._judge.struck(position)
            self.figures.most_in_flight = max(self.figures.most_in_flight, in_flight)
            if in_flight > 2 * self._order.checkpoint + IN_FLIGHT:
                self.figures.faults.append(f"{in_flight} events were in flight at once")
        elif not end.busy:
            self._judge.ended(position)
        for kind, count in (end.counts or {}).items():
            self._usual[kind] = max(5, (self._usual[kind] + count) // 2)

    def _expect_no_crash(self, end: End) -> None:
        if end.crash:
            self.figures.faults.append(end.crash)

    def _take(self) -> None:
        self._bench.receiver.settle()
        received = self._bench.receiver.received
        self._judge.take(received[self._judged :])
        self._judged = len(received)

    def _come_to_rest(self) -> None:
        """Carry out what is delayed, and ship what is left without any trouble: twice, the second time nothing."""
        self._time.settle()
        for _ in range(2):
            self._time.leap(LEASE_SECONDS)
            ends: list[End] = []
            while len(ends) < QUIET_RUNS and not (ends and ends[-1].complete):
                order = replace(self._next(), throttled=0.0, odd_pages=0.0, seconds=60.0)
                ends.append(self._bench.forks[0].run(order))
                self._note(ends[-1])
            if not ends[-1].complete:
                self.figures.faults.append(f"the quiet end was never complete: {ends[-1]}")

    def _compare_log(self) -> None:
        """See that the log holds what the recorders' requests put there, and nothing was set aside."""
        if self._store.log_keys() != {event.key for event in self._recorders.writer.recorded.values()}:
            self.figures.faults.append("the harness has lost count of the log")
        aside = [key for key in self._store.values() if "#dead#" in key or "#parked#" in key]
        if aside:
            self.figures.faults.append(f"set aside: {aside[:3]}")


def _second(order: Order) -> Order:
    return replace(order, result=f"{order.result}-second")
