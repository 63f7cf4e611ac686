"""`make up` says whose emulator it uses, and `make down` ends those that were started from here, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools import up
from tools.emulator import answers, free_port
from tools.stack import STACK_NAME, Stack
from tools.up import ANOTHERS, DEFAULT_URL, Standing, main, summary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _nothing_is_deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "deploy_to", Stack)
    monkeypatch.setattr(up, "summary", lambda stack: f"{stack.name} is up")
    monkeypatch.setattr(Standing, "_write_down", lambda *_: None)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where emulators of one checkout are written down; they end with the test."""
    yield tmp_path
    Standing(folder=tmp_path).down()


def standing(folder: Path) -> Standing:
    return Standing(f"http://127.0.0.1:{free_port()}", folder)


def test_down_ends_each_emulator_that_was_started_from_here(folder: Path) -> None:
    one, other = standing(folder), standing(folder)
    one.up()
    other.up()
    assert (answers(one.url), answers(other.url)) == (True, True)
    assert (one.is_anothers, other.is_anothers) == (False, False)

    assert one.down()

    assert (answers(one.url), answers(other.url)) == (False, False)
    assert not other.down()
    assert list(folder.iterdir()) == []


def test_the_emulator_of_another_checkout_is_used_with_a_warning_and_stays(
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    theirs = standing(folder)
    theirs.up()
    here = tmp_path_factory.mktemp("here")
    monkeypatch.setenv("AWS_ENDPOINT_URL", theirs.url)
    monkeypatch.setattr(up, "Standing", lambda url: Standing(url, here))

    assert main(["up"]) == 0
    assert capsys.readouterr().err == ANOTHERS.format(stack=STACK_NAME, url=theirs.url) + "\n"
    assert main(["down"]) == 0
    assert answers(theirs.url)


def test_ones_own_emulator_is_used_again_without_a_word(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = standing(folder)
    monkeypatch.setenv("AWS_ENDPOINT_URL", ours.url)
    monkeypatch.setattr(up, "Standing", lambda url: Standing(url, folder))

    for _ in range(2):
        assert main(["up"]) == 0
        assert capsys.readouterr().err == ""


def test_what_is_proposed_first_needs_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stack, "outputs", {})
    proposed = [line.strip() for line in summary(Stack(DEFAULT_URL)).splitlines() if ".venv/bin/" in line]

    assert proposed == [
        ".venv/bin/waybill record events/demo/warehouse.jsonl",
        ".venv/bin/waybill ship --flow events/file_lineage.json",
        ".venv/bin/python -m demo.receiver 5000 &",
        ".venv/bin/waybill ship --flow build/flow.json",
    ]
