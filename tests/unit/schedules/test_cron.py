"""From cron to EventBridge: the same instants, or a reason."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill.schedules.cron import checked_rate, eventbridge_expression

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = {name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"), 1)}


@pytest.mark.parametrize(
    ("cron", "expression"),
    [
        ("@hourly", "cron(0 * * * ? *)"),
        ("@daily", "cron(0 0 * * ? *)"),
        ("@midnight", "cron(0 0 * * ? *)"),
        ("@weekly", "cron(0 0 ? * SUN *)"),
        ("@monthly", "cron(0 0 1 * ? *)"),
        ("@yearly", "cron(0 0 1 1 ? *)"),
        ("@annually", "cron(0 0 1 1 ? *)"),
        ("*/15 * * * *", "cron(0/15 * * * ? *)"),
        ("0 6 * * 1-5", "cron(0 6 ? * MON,TUE,WED,THU,FRI *)"),
        ("0 6 * * 5-7", "cron(0 6 ? * SUN,FRI,SAT *)"),
        ("0 6 * * 0", "cron(0 6 ? * SUN *)"),
        ("0 6 * * 7", "cron(0 6 ? * SUN *)"),
        ("30 2 1,15 jan-mar *", "cron(30 2 1,15 1-3 ? *)"),
        ("10-50/20 8-18 * * *", "cron(10/20 8-18 * * ? *)"),
        ("0 0 12 * * *", "cron(0 12 * * ? *)"),
    ],
)
def test_an_expression_means_the_same(cron: str, expression: str) -> None:
    assert eventbridge_expression(cron) == expression


@pytest.mark.parametrize(
    ("cron", "reason"),
    [
        ("0 0 13 * 5", "'0 0 13 * 5' names days of the month and of the week; make two triggers of it, one for each"),
        ("5 0 0 * * *", "'5 0 0 * * *' counts seconds, which EventBridge does not; make its first field 0"),
        ("0 0 L * *", "'L' in the days of the month is not of 1-31"),
        ("0 0 * * MON#2", "'MON#2' in the days of the week is not understood; use numbers, ranges and steps"),
        ("60 * * * *", "'60' in the minutes is not of 0-59"),
        ("5-1 * * * *", "'5-1' in the minutes names nothing"),
        ("*/0 * * * *", "'*/0' in the minutes names nothing"),
        ("0 * *", "'0 * *' has 3 fields; write minute, hour, day of month, month, day of week"),
    ],
)
def test_what_eventbridge_cannot_say_is_refused_with_what_to_do(cron: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        eventbridge_expression(cron)


def field(first: int, last: int) -> st.SearchStrategy[str]:
    """A field of a cron expression: parts with commas between them."""
    number = st.integers(first, last)
    step = st.integers(1, last)
    part = st.one_of(
        st.just("*"),
        number.map(str),
        st.tuples(number, number).map(lambda two: f"{min(two)}-{max(two)}"),
        step.map(lambda by: f"*/{by}"),
        st.tuples(number, number, step).map(lambda all_: f"{min(all_[:2])}-{max(all_[:2])}/{all_[2]}"),
    )
    return st.lists(part, min_size=1, max_size=3).map(",".join)


def cron_numbers(text: str, first: int, last: int) -> set[int]:
    """The numbers that a field of cron means: man 5 crontab."""
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        low, _, high = span.partition("-")
        bounds = (first, last) if span == "*" else (int(low), int(high or low))
        found |= set(range(bounds[0], bounds[1] + 1, int(step or 1)))
    return found


def eventbridge_numbers(text: str, first: int, last: int, read: Callable[[str], int] = int) -> set[int]:
    """The numbers that a field of EventBridge means, as its user guide says: a step counts from the number before."""
    if text in ("*", "?"):
        return set(range(first, last + 1))
    found: set[int] = set()
    for part in text.split(","):
        start, _, step = part.partition("/")
        low, _, high = start.partition("-")
        end = last if step else read(high or low)
        found |= set(range(read(low), end + 1, int(step or 1)))
    return found


@given(field(0, 59), field(0, 23), field(1, 31), field(1, 12))
def test_days_of_the_month_mean_the_same_instants(minute: str, hour: str, day: str, month: str) -> None:
    written = eventbridge_expression(f"{minute} {hour} {day} {month} *").removeprefix("cron(").removesuffix(")").split()
    for text, found, bounds in zip(
        (minute, hour, day, month), written[:4], ((0, 59), (0, 23), (1, 31), (1, 12)), strict=True
    ):
        assert eventbridge_numbers(found, *bounds) == cron_numbers(text, *bounds)
    assert written[4:] == ["?", "*"]


@given(field(0, 7))
def test_days_of_the_week_mean_the_same_days(weekday: str) -> None:
    _, _, day, _, found, _ = eventbridge_expression(f"0 0 * * {weekday}").removesuffix(")").split()
    meant = {number % 7 + 1 for number in cron_numbers(weekday, 0, 7)}
    assert eventbridge_numbers(found, 1, 7, NAMES.__getitem__) == meant
    assert [day, found].count("?") == 1


@pytest.mark.parametrize(
    "expression", ["rate(1 minute)", "rate(2 hours)", "rate(1 day)", "rate(30 days)", "cron(0 6 * * ? *)"]
)
def test_an_expression_that_eventbridge_takes_stays_as_it_is(expression: str) -> None:
    assert checked_rate(expression) == expression


@pytest.mark.parametrize(
    ("rate", "refusal"),
    [
        ("rate(1 minutes)", "EventBridge does not take rate(1 minutes); write rate(1 minute)"),
        ("rate(2 hour)", "EventBridge does not take rate(2 hour); write rate(2 hours)"),
        ("rate(0 days)", "rate(0 days) is no rate; write rate(1 hour), or rate(15 minutes)"),
        ("rate(1 week)", "rate(1 week) is no rate; write rate(1 hour), or rate(15 minutes)"),
        ("rate(hourly)", "rate(hourly) is no rate; write rate(1 hour), or rate(15 minutes)"),
    ],
)
def test_a_rate_that_eventbridge_does_not_take_is_refused_with_the_right_form(rate: str, refusal: str) -> None:
    with pytest.raises(ValueError, match=re.escape(refusal)):
        checked_rate(rate)
