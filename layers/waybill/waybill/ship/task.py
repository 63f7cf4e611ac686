"""Runs one AssetShipper task: takes the lease, ships to each exporter from its own position, answers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from waybill.clock import from_millis
from waybill.errors import InvalidFlow, InvalidOffset, LeaseLost, WaybillError
from waybill.export.ports import BatchExporter, Deadline, Run, StreamExporter
from waybill.ids import uuid7_floor, uuid7_millis
from waybill.ship.answer import Figures, TaskAnswer, delivered_before
from waybill.ship.batch import Batch
from waybill.ship.delete import Deletion, lowest_of_others, require_nobody_behind
from waybill.ship.ends import Ends
from waybill.ship.filters import Filters
from waybill.ship.lease import HeldLease
from waybill.ship.ledger import Ledger, Tally
from waybill.ship.position import Position
from waybill.ship.reader import Reader
from waybill.ship.resolve import Prepared, Resolver
from waybill.ship.stream import Stream
from waybill.ship.together import together
from waybill.store.keyvalue import Busy, position_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from waybill.model.flow import AnyExporter, AssetShipper, Flow
    from waybill.ship.services import Services


Way = Stream | Batch
"""One exporter's way through the log."""


def state_key(flow: Flow, task: AssetShipper) -> str:
    """Return the key of a task's state in the key-value store of the flow's namespace."""
    return f"{task.offset_key}_{flow.id}_{task.id}"


async def ship(services: Services, flow: Flow, task: AssetShipper, deadline: Deadline, owner: str) -> TaskAnswer:
    """Run a task.

    Args:
        services: the stores, the exporters and the clock.
        flow: the flow that the task belongs to.
        task: what to ship, and where.
        deadline: when the task must have ended.
        owner: names this invocation to others that want the lease.

    Raises:
        InvalidFlow: the flow may not read every namespace, or its key is another task's.
        LeaseLost: another invocation took over, or the state was deleted while the task ran.
    """
    _check_access(services, flow, task)
    key = state_key(flow, task)
    lease = services.key_values.acquire(flow.namespace, key, flow.id, task.id, owner)
    if isinstance(lease, Busy):
        return TaskAnswer(busy=lease)
    held = HeldLease(services.key_values, lease, services.clock, services.offsets)
    run = Run(flow.namespace, flow.id, task.id, key, services.clock(), deadline)
    return await _TaskRun(services, task, run, held).ship()


def _check_access(services: Services, flow: Flow, task: AssetShipper) -> None:
    if task.flow_namespace is not None or task.asset_namespace is not None:
        return
    barred = services.barred(flow.namespace)
    if barred:
        fault = f"tasks.{task.id}: flows of {flow.namespace} may not access {', '.join(barred)}; "
        raise InvalidFlow([fault + "set flowNamespace or assetNamespace, or allow the namespace there"])


class _TaskRun:
    def __init__(self, services: Services, task: AssetShipper, run: Run, held: HeldLease) -> None:
        self._services = services
        self._task = task
        self._run = run
        self._held = held
        self._tally = Tally()
        self._answer = TaskAnswer(complete=True)
        self._ends = Ends(held.lease.end_fetched_date)
        self._positions: dict[str, Position] = {}

    async def ship(self) -> TaskAnswer:
        """Ship to every exporter, and give the lease back whatever happens."""
        try:
            self._held.follow_offset()
            self._ends = Ends(self._held.lease.end_fetched_date)
            async with self._held.kept():
                await self._ship_to_all()
        except BaseException:
            with suppress(LeaseLost):
                self._held.release(self._held.lease.end_fetched_date)
            raise
        self._answer.size, self._answer.end_fetched_date = self._tally.size, self._ends.least
        self._held.release(self._answer.end_fetched_date)
        return self._answer

    async def _ship_to_all(self) -> None:
        """Ship to the exporters: batches one after the other, then the others side by side; then delete if asked."""
        reader = self._reader()
        configs = self._claimed(reader)
        deletable = self._task.delete and len(configs) == len(self._task.asset_exporters)
        deletion = self._deletion(reader) if deletable else None
        exporters = [(config, self._services.exporter(config, self._run)) for config in configs]
        streams = [(config, exporter) for config, exporter in exporters if isinstance(exporter, StreamExporter)]
        batches = [(config, exporter) for config, exporter in exporters if not isinstance(exporter, StreamExporter)]
        for left, (config, exporter) in zip(range(len(batches), 0, -1), batches, strict=True):
            share = self._run.deadline.share(left + bool(streams))
            await self._noting_failure(config, self._batch(config, exporter, reader, share), exporter)
        await together(
            self._noting_failure(config, self._stream(config, stream, reader), stream) for config, stream in streams
        )
        if deletion is not None:
            await asyncio.to_thread(deletion.run, self._run.deadline)

    def _claimed(self, reader: Reader) -> list[AnyExporter]:
        """Claim the position of every exporter, and return those that have one."""
        for config in self._task.asset_exporters:
            try:
                self._positions[config.id] = self._position(config, reader)
            except InvalidOffset as error:
                self._fail(config, str(error))
                self._ends.unknown(config.id)
        return [config for config in self._task.asset_exporters if config.id in self._positions]

    def _deletion(self, reader: Reader) -> Deletion:
        """Make the deletion ready, and finish one that was cut short.

        Raises:
            InvalidFlow: the position of another key is behind.
        """
        store, lease = self._services.key_values, self._held.lease
        limit = None
        if not self._task.force:
            states = self._services.states
            require_nobody_behind(states, lease, self._positions.values(), f"tasks.{self._task.id}.delete")
            limit = lowest_of_others(states, lease)
        deletion = Deletion(
            self._services.log,
            reader,
            self._resolver(),
            self._positions,
            lambda exporter_id, position: store.put_position(self._held.lease, exporter_id, position.to_json()),
            limit,
        )
        deletion.finish()
        return deletion

    def _reader(self) -> Reader:
        services = self._services
        horizon = uuid7_floor(services.clock() - services.settle)
        return Reader(services.log, services.shards.generations(), horizon)

    async def _noting_failure(
        self, config: AnyExporter, shipping: Awaitable[Way], exporter: StreamExporter | BatchExporter
    ) -> None:
        """Ship to one exporter; what stops it does not stop the others."""
        try:
            way = await shipping
        except LeaseLost:
            raise
        except (WaybillError, BotoCoreError, ClientError) as error:
            self._fail(config, f"{error}{delivered_before(exporter.outputs())}")
            # One that could not even be opened lags, too.
            position = self._positions[config.id]
            if config.id not in self._answer.figures:
                self._answer.figures[config.id] = Figures(self._age(position.lowest), exporter.outputs())
                self._ends.stopped(config.id, position, position.lowest, new=not position.swept)
        else:
            self._answer.outputs[config.id] = exporter.outputs() | way.counts.as_json()

    def _fail(self, config: AnyExporter, reason: str) -> None:
        self._answer.failures[config.id] = reason
        self._answer.complete = False

    async def _stream(self, config: AnyExporter, exporter: StreamExporter, reader: Reader) -> Way:
        stream = Stream(
            exporter,
            reader,
            self._resolver(),
            self._positions[config.id],
            self._run.deadline,
            self._ledger(config, self._held.check),
        )
        try:
            await exporter.open()
            return await self._shipped(config, stream, exporter)
        finally:
            await exporter.close()

    async def _batch(self, config: AnyExporter, exporter: BatchExporter, reader: Reader, deadline: Deadline) -> Way:
        batch = Batch(
            exporter,
            reader,
            self._resolver(),
            self._held.lease.generation,
            self._positions[config.id],
            deadline,
            self._ledger(config, self._held.renew),
        )
        return await self._shipped(config, batch, exporter)

    async def _shipped(self, config: AnyExporter, way: Way, exporter: StreamExporter | BatchExporter) -> Way:
        """Run a way to its end; note how far it came also when it was stopped."""
        before, new = way.position.progress, not way.position.swept
        complete = False
        try:
            complete = await way.run()
        finally:
            position = self._positions[config.id] = way.position
            if complete:
                self._ends.complete(config.id, position)
            else:
                self._ends.stopped(config.id, position, way.reached, new=new)
            self._answer.complete &= complete
            counts = exporter.outputs() | way.counts.as_json()
            self._answer.figures[config.id] = Figures(0.0 if complete else self._age(way.reached), counts)
        self._answer.again |= not complete and way.position.progress != before
        return way

    def _age(self, key: str) -> float:
        return (self._services.clock() - from_millis(uuid7_millis(key))).total_seconds()

    def _resolver(self) -> Resolver:
        return Resolver(self._services.assets, Filters.of(self._task))

    def _position(self, config: AnyExporter, reader: Reader) -> Position:
        """Return where an exporter is; one that is new starts at the look-back, and that start is stored at once."""
        store, lease = self._services.key_values, self._held.lease
        body = store.claim_position(lease, config.id)
        if body is not None:
            return Position.from_json(body, position_key(lease, config.id))
        position = reader.start(uuid7_floor(self._run.started - self._task.lookback_period))
        store.put_position(lease, config.id, position.to_json())
        return position

    def _ledger(self, config: AnyExporter, hold: Callable[[], None]) -> Ledger:
        return Ledger(
            save=lambda body: self._services.key_values.put_position(self._held.lease, config.id, body),
            hold=hold,
            park=lambda prepared: self._park(config, prepared),
            tally=self._tally,
        )

    def _park(self, config: AnyExporter, prepared: Prepared) -> None:
        self._services.key_values.park(self._held.lease, config.id, prepared.key, prepared.fault or "")
