"""Dead letters: kept whole, looked at, sent again, dropped, by hand."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from tests.support.pipeline import Pipeline
from tests.support.receivers import Receiver, Reply
from waybill import cli
from waybill.cli.stack import Stack
from waybill.model import report
from waybill.store.aws import client
from waybill.store.dead_letters import FAILED_LATER, DeadLetter, DeadLetters

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    from tests.support.stack_in_memory import StackInMemory

STATE_KEY = "AssetShipper-state_ship_ship_lineage"
EXPORTER = {"id": "backend", "type": "OpenLineageAssetExporter"}
FLOW = {"id": "ship", "namespace": "company.platform"}


def letter(number: int = 1, **changes: Any) -> DeadLetter:
    """Make a letter of the flow of these tests."""
    said: dict[str, Any] = {
        "namespace": "company.platform",
        "state_key": STATE_KEY,
        "exporter_id": "backend",
        "event_key": f"01a23000-0000-7000-8000-{number:012}",
        "job": "company.sales/load.customers",
        "reason": "HTTP 422: it refuses the event",
        "kind": "refused",
        "status": 422,
        "answer": '{"errors": []}',
        "attempts": 1,
        "first": "2026-12-01T09:00:00.000Z",
        "last": "2026-12-01T09:00:01.000Z",
        "event": {"id": f"event-{number}"},
        "run_events": [{"eventType": "COMPLETE"}],
    }
    return DeadLetter(**said | changes)


@pytest.fixture
def letters(stack: StackInMemory) -> DeadLetters:
    """The dead letters of a stack, none yet."""
    return DeadLetters.of(stack.settings)


class TestStore:
    def test_a_letter_comes_back_as_it_was_put(self, letters: DeadLetters) -> None:
        letters.put(letter())
        assert [letters.whole(found) for found in letters.all()] == [letter()]

    def test_a_letter_too_large_for_an_item_comes_back_whole(self, letters: DeadLetters) -> None:
        large = letter(run_events=[{"facets": "☃" * 300_000}])
        letters.put(large)
        assert letters.whole(letter()) == large

    def test_a_letter_whose_object_is_gone_is_gone(self, letters: DeadLetters, stack: StackInMemory) -> None:
        letters.put(letter(run_events=[{"facets": "☃" * 300_000}]))
        bucket = stack.settings.lineage_bucket
        for found in client("s3").list_objects_v2(Bucket=bucket)["Contents"]:
            client("s3").delete_object(Bucket=bucket, Key=found["Key"])
        assert letters.whole(letter()) is None

    def test_listing_reads_no_event(self, letters: DeadLetters) -> None:
        letters.put(letter())
        assert list(letters.all()) == [letter(event={}, run_events=[])]

    def test_a_letter_about_the_same_event_replaces_the_one_before(self, letters: DeadLetters) -> None:
        letters.put(letter())
        letters.put(letter(reason="another"))
        assert [found.reason for found in letters.all()] == ["another"]

    def test_letters_of_two_exporters_are_apart(self, letters: DeadLetters) -> None:
        letters.put(letter())
        letters.put(letter(exporter_id="other"))
        letters.drop(letter())
        assert [found.exporter_id for found in letters.all()] == ["other"]
        assert letters.whole(letter()) is None

    def test_what_a_backend_goes_on_reporting_does_not_come_back_once_dropped(self, letters: DeadLetters) -> None:
        late = letter(kind=FAILED_LATER, event_key="later-x")
        assert letters.put_once(late)
        assert not letters.put_once(late)
        letters.drop(late)
        assert list(letters.all()) == []
        assert letters.whole(late) is None
        assert not letters.put_once(late)


@pytest.fixture
def waybill(stack: StackInMemory, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command on the stack in memory."""
    monkeypatch.setattr(Stack, "settings", stack.settings)
    return lambda *arguments: CliRunner().invoke(cli.app, ["dead-letters", *arguments], terminal_width=200)


def nested(levels: int) -> dict[str, Any]:
    """Return so many objects, each in the one before."""
    innermost: dict[str, Any] = {}
    for _ in range(levels - 1):
        innermost = {"in": innermost}
    return innermost


@pytest.mark.parametrize(("levels", "rejected"), [(200, 0), (250, 1)])
def test_metadata_nested_deeper_than_is_recorded_today_holds_nothing_up(
    stack: StackInMemory, monkeypatch: pytest.MonkeyPatch, levels: int, rejected: int
) -> None:
    monkeypatch.setattr(report, "unstorable", lambda _: [])
    stack.write("deep", metadata=nested(levels))
    stack.write("other")

    async def run() -> dict[str, Any]:
        receiver = Receiver()
        async with receiver.listening():
            return await asyncio.to_thread(Pipeline(stack, {"uri": receiver.url}).ship)

    answer = asyncio.run(run())
    assert answer["outputs"]["backend"] == {"delivered": 2 - rejected, "rejected": rejected, "skipped": 0, "retried": 0}
    assert [one.reason for one in DeadLetters.of(stack.settings).all()] == [
        "asset deep: its metadata is nested too deeply to be sent"
    ] * rejected


class TestCommands:
    def test_list_shows_what_and_why(self, letters: DeadLetters, waybill: Callable[..., Result]) -> None:
        assert waybill("list").output == "There are no dead letters.\n"
        letters.put(letter())
        letters.put(letter(2, exporter_id="other"))
        lines = [json.loads(line) for line in waybill("list", "--json").output.splitlines()]
        assert [(line["exporter"], line["reason"]) for line in lines] == [
            ("backend", "HTTP 422: it refuses the event"),
            ("other", "HTTP 422: it refuses the event"),
        ]
        assert "event" not in lines[0]
        only = waybill("list", "--json", "--exporter", "other").output
        assert json.loads(only)["eventKey"] == letter(2).event_key

    def test_list_is_a_table_for_people(self, letters: DeadLetters, waybill: Callable[..., Result]) -> None:
        letters.put(letter(reason="x" * 200))
        output = waybill("list").output
        assert "reason" in output
        assert "backend" in output

    def test_show_prints_a_letter_whole(self, letters: DeadLetters, waybill: Callable[..., Result]) -> None:
        letters.put(letter())
        assert json.loads(waybill("show", letter().event_key).output) == letter().as_json()

    def test_drop_forgets_those_that_are_named(self, letters: DeadLetters, waybill: Callable[..., Result]) -> None:
        for number in (1, 2, 3):
            letters.put(letter(number))
        assert waybill("drop", letter(1).event_key, letter(3).event_key).output == (
            f"{letter(1).event_key} backend: dropped\n{letter(3).event_key} backend: dropped\n"
        )
        assert [found.event_key for found in letters.all()] == [letter(2).event_key]
        waybill("drop", "all")
        assert list(letters.all()) == []

    def test_an_event_that_is_no_dead_letter_is_named(self, waybill: Callable[..., Result]) -> None:
        result = waybill("show", "nothing")
        assert result.exit_code == 1
        assert result.stderr == "nothing: is no dead letter; `waybill dead-letters list` shows them\n"


class TestReplay:
    """A letter is sent again with its assets as they are now, from the machine of the one who asks."""

    def replayed(
        self, stack: StackInMemory, receiver: Receiver, tmp_path: Path, *events: str, **exporter: Any
    ) -> Result:
        """Run `waybill dead-letters replay` against a receiver that listens meanwhile."""

        async def run() -> Result:
            async with receiver.listening():
                properties = {**EXPORTER, "uri": receiver.url, **exporter}
                task = {"id": "ship_lineage", "type": "AssetShipper", "assetExporters": [properties]}
                (tmp_path / "flow.json").write_text(json.dumps({**FLOW, "tasks": [task]}))
                arguments = ["dead-letters", "replay", *events, "--flow", str(tmp_path / "flow.json")]
                return await asyncio.to_thread(CliRunner().invoke, cli.app, arguments)

        del stack
        return asyncio.run(run())

    def put(self, stack: StackInMemory, letters: DeadLetters) -> DeadLetter:
        """Record a run, and put its event aside."""
        stack.record(assets={"outputs": [{"id": "orders", "type": "table", "description": "now"}]})
        (event,) = stack.events()
        one = letter(event_key="01a23000-0000-7000-8000-000000000001", event=event.as_json())
        letters.put(one)
        return one

    @pytest.mark.usefixtures("waybill")
    def test_what_is_delivered_is_dropped(self, stack: StackInMemory, letters: DeadLetters, tmp_path: Path) -> None:
        one = self.put(stack, letters)
        receiver = Receiver()
        result = self.replayed(stack, receiver, tmp_path, one.event_key)
        assert (result.output, result.exit_code) == (f"{one.event_key} backend: delivered\n", 0)
        (event,) = receiver.received
        assert event["outputs"][0]["facets"]["documentation"]["description"] == "now"
        assert list(letters.all()) == []

    @pytest.mark.usefixtures("waybill")
    def test_what_is_refused_again_stays_with_the_new_reason(
        self, stack: StackInMemory, letters: DeadLetters, tmp_path: Path
    ) -> None:
        one = self.put(stack, letters)
        result = self.replayed(stack, Receiver(lambda _: Reply(400)), tmp_path, "all")
        assert (result.output, result.exit_code) == (f"{one.event_key} backend: HTTP 400: it refuses the event\n", 1)
        assert [found.reason for found in letters.all()] == ["HTTP 400: it refuses the event"]

    @pytest.mark.usefixtures("waybill")
    def test_a_backend_that_is_in_trouble_leaves_the_letter(
        self, stack: StackInMemory, letters: DeadLetters, tmp_path: Path
    ) -> None:
        one = self.put(stack, letters)
        result = self.replayed(stack, Receiver(lambda _: Reply(401)), tmp_path, "all")
        assert result.output == f"{one.event_key} backend: HTTP 401: it does not accept the credentials; look at auth\n"
        assert [letters.whole(found) for found in letters.all()] == [one]

    @pytest.mark.usefixtures("waybill")
    def test_what_could_not_be_processed_later_is_sent_as_it_was(
        self, stack: StackInMemory, letters: DeadLetters, tmp_path: Path
    ) -> None:
        self.put(stack, letters)
        receiver = Receiver()
        self.replayed(stack, receiver, tmp_path, "all")
        late = letter(kind=FAILED_LATER, event_key="later-x", event={}, run_events=list(receiver.received))
        letters.put(late)
        result = self.replayed(stack, receiver, tmp_path, "later-x")
        assert result.output == "later-x backend: delivered\n"
        assert receiver.received == [receiver.received[0]] * 2

    @pytest.mark.usefixtures("waybill")
    def test_a_flow_without_the_exporter_is_refused(
        self, stack: StackInMemory, letters: DeadLetters, tmp_path: Path
    ) -> None:
        one = self.put(stack, letters)
        receiver = Receiver()
        result = self.replayed(stack, receiver, tmp_path, "all", id="other")
        assert result.exit_code == 1
        assert result.stderr == (
            f"flow: has no exporter backend under {STATE_KEY} of company.platform, which put {one.event_key} aside\n"
        )
        assert receiver.requests == []

    @pytest.mark.usefixtures("waybill")
    def test_letters_of_two_tasks_with_exporters_of_one_id_go_each_to_its_own(
        self, stack: StackInMemory, letters: DeadLetters, tmp_path: Path
    ) -> None:
        stack.record(assets={"outputs": [{"id": "orders", "type": "table"}]})
        (event,) = stack.events()
        keys = [f"AssetShipper-state_ship_{task}" for task in ("first", "second")]
        for number, key in enumerate(keys):
            letters.put(letter(number, state_key=key, event={**event.as_json(), "taskRunId": f"run-{number}"}))
        first, second = Receiver(lambda _: Reply(400)), Receiver()

        async def run() -> Result:
            async with first.listening(), second.listening():
                tasks = [
                    {"id": name, "type": "AssetShipper", "assetExporters": [{**EXPORTER, "uri": receiver.url}]}
                    for name, receiver in (("first", first), ("second", second))
                ]
                (tmp_path / "flow.json").write_text(json.dumps({**FLOW, "tasks": tasks}))
                arguments = ["dead-letters", "replay", "all", "--flow", str(tmp_path / "flow.json")]
                return await asyncio.to_thread(CliRunner().invoke, cli.app, arguments)

        assert asyncio.run(run()).exit_code == 1
        assert (len(first.requests), len(second.requests)) == (1, 1)
        assert [found.state_key for found in letters.all()] == keys[:1]
