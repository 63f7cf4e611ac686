"""What answers mean, how long to wait, and how an event's own fault is told from an outage."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from waybill.export.openlineage.backends import BACKENDS
from waybill.export.openlineage.breaker import Breaker
from waybill.export.openlineage.health import Health
from waybill.export.openlineage.outcomes import Answer, Verdict, judge
from waybill.export.openlineage.patience import Patience, seconds_to_wait

HTML = "text/html; charset=utf-8"


class Clock:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("backend", "answer", "verdict"),
    [
        ("generic", Answer(200), Verdict.DONE),
        ("generic", Answer(204), Verdict.DONE),
        ("generic", Answer(200, content_type=HTML), Verdict.MISROUTED),
        ("generic", Answer(200, body=b"\n <!DOCTYPE html>"), Verdict.MISROUTED),
        ("generic", Answer(200, content_type="Text/HTML"), Verdict.MISROUTED),
        ("generic", Answer(200, content_type="application/xhtml+xml"), Verdict.MISROUTED),
        ("generic", Answer(200, body=b"\xef\xbb\xbf<!DOCTYPE html>"), Verdict.MISROUTED),
        ("generic", Answer(200, body=b'<?xml version="1.0" encoding="UTF-8"?>\n<html lang="en">'), Verdict.MISROUTED),
        ("generic", Answer(200, body=b"<!-- Sign in -->\n<HTML>"), Verdict.MISROUTED),
        ("generic", Answer(200, body=b'<?xml version="1.0"?><taken/>'), Verdict.DONE),
        ("generic", Answer(302), Verdict.MISROUTED),
        ("generic", Answer(400), Verdict.REFUSED),
        ("generic", Answer(401), Verdict.AUTH),
        ("generic", Answer(402), Verdict.WAIT),
        ("generic", Answer(403), Verdict.AUTH),
        ("generic", Answer(404), Verdict.MISROUTED),
        ("generic", Answer(408), Verdict.RETRY),
        ("generic", Answer(409), Verdict.REFUSED),
        ("generic", Answer(413), Verdict.TOO_BIG),
        ("generic", Answer(415), Verdict.MISROUTED),
        ("generic", Answer(422), Verdict.REFUSED),
        ("generic", Answer(429), Verdict.WAIT),
        ("generic", Answer(500), Verdict.RETRY),
        ("generic", Answer(501), Verdict.MISROUTED),
        ("generic", Answer(503), Verdict.RETRY),
        ("generic", Answer(999), Verdict.MISROUTED),
        ("generic", Answer(fault="gone", verdict=Verdict.UNKNOWN), Verdict.UNKNOWN),
        ("marquez", Answer(201), Verdict.DONE),
        ("marquez", Answer(500, body=b'{"code": 400, "message": "Unable to process JSON"}'), Verdict.REFUSED),
        ("marquez", Answer(500, HTML, body=b"<html>"), Verdict.RETRY),
        ("marquez", Answer(400, HTML, body=b"<html>"), Verdict.REFUSED),
        ("generic", Answer(500, body=b'{"code": 400}'), Verdict.RETRY),
        ("openmetadata", Answer(200, body=b'{"status": "success", "lineageEdgesCreated": 2}'), Verdict.DONE),
        ("openmetadata", Answer(200, body=b'{"status": "success", "lineageEdgesCreated": 0}'), Verdict.REFUSED),
        ("openmetadata", Answer(200, body=b'{"status": "partial_success"}'), Verdict.REFUSED),
        ("openmetadata", Answer(200, body=b'{"stat', whole=False), Verdict.UNKNOWN),
        ("openmetadata", Answer(200, body=b"\x1f\x8b\x08"), Verdict.UNKNOWN),
        ("openmetadata", Answer(200, HTML, body=b"<html>", whole=False), Verdict.MISROUTED),
        ("openmetadata", Answer(503, body=b"OpenLineage is disabled"), Verdict.MISROUTED),
        ("atlan", Answer(401, body=b"URL path not configured to receive data"), Verdict.MISROUTED),
        ("atlan", Answer(401), Verdict.AUTH),
        ("datazone", Answer(409), Verdict.DONE),
    ],
)
def test_an_answer_means(backend: str, answer: Answer, verdict: Verdict) -> None:
    judgement = judge(answer, BACKENDS[backend].outcomes)
    assert judgement.verdict is verdict
    assert judgement.why


class TestWaiting:
    def test_backoff_is_random_under_a_ceiling_that_doubles_up_to_a_cap(self) -> None:
        random.seed(1)
        patience = Patience(base=1, cap=10)
        for tries, ceiling in ((1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (100, 10)):
            pauses = [patience.backoff(tries) for _ in range(500)]
            assert 0 <= min(pauses) < 0.1 * ceiling
            assert 0.9 * ceiling < max(pauses) <= ceiling

    @pytest.mark.parametrize(
        ("header", "seconds"), [("7", 7.0), (" 0 ", 0.0), (None, None), ("", None), ("soon", None), ("-3", None)]
    )
    def test_retry_after_in_seconds(self, header: str | None, seconds: float | None) -> None:
        assert seconds_to_wait(header) == seconds

    def test_retry_after_as_a_date(self) -> None:
        later = datetime.now(UTC) + timedelta(seconds=90)
        assert 85 < (seconds_to_wait(format_datetime(later, usegmt=True)) or 0) <= 90
        assert seconds_to_wait("Mon, 01 Jan 2024 00:00:00 GMT") == 0.0

    @pytest.mark.parametrize("zone", ["+99999999999999999999", "+9999", "-9999", "+", "moon"])
    def test_a_retry_after_that_is_no_date_says_nothing_or_no_wait(self, zone: str) -> None:
        assert seconds_to_wait(f"Mon, 01 Jan 2024 00:00:00 {zone}") in {None, 0.0}


class TestHealth:
    def test_one_event_that_fails_while_others_get_through_is_alone_to_blame(self) -> None:
        clock = Clock()
        health = Health(0, clock)
        health.failed("poison", 90)
        assert not health.took_others_meanwhile()
        health.succeeded(95)
        assert health.took_others_meanwhile()
        assert health.took_others_after(94)
        assert not health.took_others_after(95)

    def test_a_success_from_before_another_event_failed_says_nothing(self) -> None:
        health = Health(0, Clock())
        health.succeeded(95)
        health.failed("a", 90)
        health.failed("b", 96)
        assert not health.took_others_meanwhile()

    def test_several_failing_events_are_a_sign_of_an_outage_until_it_is_long_ago(self) -> None:
        clock = Clock()
        health = Health(30, clock)
        health.failed("a", 99)
        assert health.calm_in() == 0
        health.failed("b", 99)
        assert health.calm_in() == 30
        clock.now += 29
        assert health.calm_in() == 1
        clock.now += 5
        assert health.calm_in() == 0

    def test_trouble_lasts_from_the_first_failure_to_the_next_success(self) -> None:
        clock = Clock()
        health = Health(0, clock)
        assert health.troubled_for() == 0
        health.failed("a", 99)
        clock.now += 7
        health.failed("a", 99)
        assert health.troubled_for() == 7
        health.succeeded(105)
        assert health.troubled_for() == 0
        assert health.failures_in_a_row == 0


class TestBreaker:
    def test_closed_it_lets_everything_pass(self) -> None:
        breaker = Breaker(Clock())
        assert breaker.lets_pass
        assert [breaker.wait() for _ in range(3)] == [None, None, None]

    def test_open_it_lets_one_at_a_time_try_after_the_pause(self) -> None:
        clock = Clock()
        breaker = Breaker(clock)
        breaker.open(5)
        assert (breaker.lets_pass, breaker.wait()) == (False, 5)
        clock.now += 5
        assert breaker.wait() is None
        assert breaker.wait() is not None
        breaker.tried()
        assert breaker.wait() is None

    def test_a_success_closes_it(self) -> None:
        breaker = Breaker(Clock())
        breaker.open(5)
        breaker.close()
        assert breaker.lets_pass
        assert breaker.times_opened == 1

    def test_held_it_lets_nothing_pass_for_a_while(self) -> None:
        clock = Clock()
        breaker = Breaker(clock)
        breaker.hold(3)
        breaker.hold(1)
        assert breaker.wait() == 3
        clock.now += 3
        assert breaker.lets_pass
        assert breaker.times_opened == 0
