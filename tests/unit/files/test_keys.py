"""Templates of keys and the date patterns in them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from waybill.export.files.keys import parse_key, parse_pattern

MOMENT = datetime(2026, 2, 3, 14, 5, 6, 78_900, tzinfo=UTC)
LATER = datetime(2026, 12, 31, 0, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "2026-02-03"),
        ("yyyy/MM/dd/HH", "2026/02/03/14"),
        ("yyMMdd", "260203"),
        ("uuuu", "2026"),
        ("M/d", "2/3"),
        ("MMM", "Feb"),
        ("MMMM", "February"),
        ("DDD", "034"),
        ("D", "34"),
        ("hh a", "02 PM"),
        ("HH:mm:ss.SSS", "14:05:06.078"),
        ("SSSSSS", "078900"),
        ("H", "14"),
        ("yyyy-MM-dd'T'HH", "2026-02-03T14"),
        ("yyyy 'o''clock' ''", "2026 o'clock '"),
    ],
)
def test_a_date_pattern_is_javas(pattern: str, text: str) -> None:
    assert parse_pattern(pattern).format(MOMENT) == text


@pytest.mark.parametrize(
    ("pattern", "text"), [("H", "0"), ("HH", "00"), ("m", "0"), ("hh", "12"), ("h", "12"), ("dd", "31"), ("DDD", "365")]
)
def test_midnight_and_the_end_of_the_year_are_written_as_java_does(pattern: str, text: str) -> None:
    assert parse_pattern(pattern).format(LATER) == text


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("YYYY", "the date pattern has 'YYYY', which is not known; use yyyy yy MM"),
        ("yyyyy", "'yyyyy'"),
        ("MMMMM", "'MMMMM'"),
        ("ww", "'ww'"),
        ("yyyy'T", "has a quote that is not closed"),
        ("", "needs at least one field, such as yyyy-MM-dd"),
        ("'text'", "needs at least one field"),
    ],
)
def test_an_unknown_part_of_a_pattern_is_named(pattern: str, fault: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole message is compared
        parse_pattern(pattern)
    assert fault in str(refused.value)


@pytest.mark.parametrize(
    ("key", "folder", "root"),
    [
        ("lake", "lake/", "lake/"),
        ("/lake/", "lake/", "lake/"),
        ("a/b", "a/b/", "a/b/"),
        ("kestra/{{ execution.startDate | date('yyyy-MM-dd') }}", "kestra/2026-12-31/", "kestra/"),
        ('kestra/{{execution.startDate|date("yyyy")}}/x', "kestra/2026/x/", "kestra/"),
        ("kestra/day-{{ event.created | date('D') }}", "kestra/day-34/", "kestra/"),
        ("{{ event.created | date('yyyy') }}/{{ execution.startDate | date('MM') }}", "2026/12/", ""),
    ],
)
def test_a_key_is_a_folder_below_a_root_that_holds_no_date(key: str, folder: str, root: str) -> None:
    template = parse_key(key)
    assert (template.folder(LATER, MOMENT), template.root) == (folder, root)


@pytest.mark.parametrize(
    ("key", "precision"),
    [
        ("lake", 0),
        ("{{ execution.startDate | date('HH:mm:ss') }}", 0),
        ("{{ event.created | date('yyyy-MM') }}", 7),
        ("{{ event.created | date('DDD') }}", 10),
        ("{{ event.created | date('yyyy') }}/{{ event.created | date('HH') }}", 13),
    ],
)
def test_a_folder_changes_only_with_what_its_dates_show(key: str, precision: int) -> None:
    assert parse_key(key).precision == precision


@pytest.mark.parametrize(
    ("key", "fault"),
    [
        ("a/{{ now() }}", "{{ now() }} is not known; use {{ execution.startDate | date('yyyy-MM-dd') }} for the start"),
        ("a/{{ execution.id }}", "{{ execution.id }} is not known"),
        ("a/{{ event.created }}", "{{ event.created }} is not known"),
        ("a/{{ event.created | date('YYYY') }}", "'YYYY'"),
        ("a/{{ event.created", "has {{ without its other half"),
        ("a/}}", "has }} without its other half"),
        ("a/{% if x %}", "has {% without its other half"),
        ("a//b", "must not hold control characters or empty steps"),
        ("a/../b", "must not hold steps that begin with . or _"),
        ("./a", "must not hold steps that begin with . or _"),
        ("a/_b", "must not hold steps that begin with . or _"),
        ("a/.b", "must not hold steps that begin with . or _"),
        ("""a/{{ event.created | date("yyyy'/../'MM") }}""", "must not hold steps that begin with . or _"),
        ("""a/{{ event.created | date("'_'yyyy") }}""", "must not hold steps that begin with . or _"),
        ("""a/{{ event.created | date("yyyy'//'MM") }}""", "must not hold control characters or empty steps"),
        ("""a/{{ event.created | date("'/'yyyy") }}""", "must not hold control characters or empty steps"),
        ("a\nb", "must not hold control characters"),
    ],
)
def test_an_unknown_part_of_a_key_is_named(key: str, fault: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole message is compared
        parse_key(key)
    assert fault in str(refused.value)
