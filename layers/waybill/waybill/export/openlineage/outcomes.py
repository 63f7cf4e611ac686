"""What an answer means: one table, read from the top, a backend's own lines first (`openlineage.md` 6.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Container


class Verdict(StrEnum):
    """What became of a post."""

    DONE = "done"
    WAIT = "wait"
    """It asks to wait; that says nothing about the event."""
    RETRY = "retry"
    """It was not taken; the same event may be taken later."""
    UNKNOWN = "unknown"
    """It was sent, and nobody knows whether it was taken."""
    REFUSED = "refused"
    """This event will never be taken as it is."""
    TOO_BIG = "too big"
    AUTH = "auth"
    """The sender is not known, or may not."""
    MISROUTED = "misrouted"
    """What answers there is not the API that was meant."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back of one post.

    Attributes:
        status: of HTTP; None when there was no answer.
        body: its first part.
        whole: whether the body came to its end.
        fault: what went wrong when there was no answer.
        verdict: what that fault means.
        credentials: which ones were shown; they are counted.
        stale: whether a connection that was kept broke before any byte of an answer.
    """

    status: int | None = None
    content_type: str = ""
    retry_after: str | None = None
    location: str | None = None
    body: bytes = b""
    whole: bool = True
    fault: str = ""
    verdict: Verdict | None = None
    credentials: int = 0
    stale: bool = False

    @property
    def never_sent(self) -> bool:
        """Whether no connection could be made."""
        return self.status is None and self.verdict is Verdict.RETRY

    def json(self) -> Any:
        """Return the body as JSON, or None where it is none."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return None

    def __str__(self) -> str:
        return self.fault or f"HTTP {self.status}"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the table: answers with one of these statuses (and for which `when` holds) mean `verdict`."""

    statuses: Container[int | None]
    verdict: Verdict
    why: str
    when: Callable[[Answer], bool] | None = None

    def matches(self, answer: Answer) -> bool:
        """Whether the line speaks of this answer."""
        return answer.status in self.statuses and (self.when is None or self.when(answer))


_BEGINNING = 1024
_HTML_TYPES = ("text/html", "application/xhtml+xml")
_HTML = re.compile(
    rb"(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype|html)\b", re.IGNORECASE | re.DOTALL
)
"""How a web page begins: perhaps with a byte order mark, a declaration of XML, comments."""


def _is_html(answer: Answer) -> bool:
    if answer.content_type.lstrip().lower().startswith(_HTML_TYPES):
        return True
    return _HTML.match(answer.body[:_BEGINNING]) is not None


def _cannot_be_read(answer: Answer) -> bool:
    """The answer is no page and no object, or not all of one."""
    if _is_html(answer):
        return False
    return not answer.whole or (bool(answer.body) and not isinstance(answer.json(), dict))


def _says(name: str, *values: object) -> Callable[[Answer], bool]:
    """The body is a JSON object whose property has one of these values."""

    def said(answer: Answer) -> bool:
        document = answer.json()
        return isinstance(document, dict) and document.get(name) in values

    return said


SUCCESS = range(200, 300)
_3XX, _4XX, _5XX = range(300, 400), range(400, 500), range(500, 600)

COMMON = (
    Rule(SUCCESS, Verdict.MISROUTED, "a web page answered, such as a login page; look at uri and auth", _is_html),
    Rule(SUCCESS, Verdict.DONE, "taken"),
    Rule(_3XX, Verdict.MISROUTED, "it redirects, and redirects are not followed; give the final address as uri"),
    Rule((401, 403), Verdict.AUTH, "it does not accept the credentials; look at auth"),
    Rule((407,), Verdict.MISROUTED, "the proxy asks for credentials; look at proxy"),
    Rule((404, 405, 410, 421), Verdict.MISROUTED, "nothing takes lineage at this address; look at uri and endpoint"),
    Rule((406, 411, 415, 417, 426, 505), Verdict.MISROUTED, "it does not speak this protocol; look at uri and backend"),
    Rule((402,), Verdict.WAIT, "a quota is used up"),
    Rule((408,), Verdict.RETRY, "it did not get the event in time"),
    Rule((425, 429), Verdict.WAIT, "it asks to wait"),
    Rule((413,), Verdict.TOO_BIG, "the event is too large for it"),
    Rule(_4XX, Verdict.REFUSED, "it refuses the event"),
    Rule((501,), Verdict.MISROUTED, "it has no such function; look at uri and endpoint"),
    Rule(_5XX, Verdict.RETRY, "it is in trouble"),
)
"""The common table."""

MARQUEZ = (Rule((500,), Verdict.REFUSED, "it cannot read the event", _says("code", 400)),)
OPENMETADATA = (
    Rule(SUCCESS, Verdict.UNKNOWN, "the answer broke off, or cannot be read", _cannot_be_read),
    Rule(
        SUCCESS,
        Verdict.REFUSED,
        "it stored nothing or only a part of the event",
        _says("status", "failure", "partial_success"),
    ),
    Rule(SUCCESS, Verdict.REFUSED, "it made no edge of the event", _says("lineageEdgesCreated", 0)),
    Rule(
        (503,), Verdict.MISROUTED, "its OpenLineage feature is switched off", lambda answer: b"disabled" in answer.body
    ),
)
ATLAN = (
    Rule(
        (401,),
        Verdict.MISROUTED,
        "the connector in the path is not set up to receive lineage; look at endpoint",
        lambda answer: b"not configured" in answer.body.lower(),
    ),
)
DATAZONE = (Rule((409,), Verdict.DONE, "the same token was taken before"),)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The meaning of one answer, with its reason."""

    verdict: Verdict
    why: str


def judge(answer: Answer, own: tuple[Rule, ...] = ()) -> Judgement:
    """Say what an answer means, by the backend's own lines and then by the common ones."""
    if answer.verdict is not None:
        return Judgement(answer.verdict, answer.fault)
    for rule in (*own, *COMMON):
        if rule.matches(answer):
            return Judgement(rule.verdict, rule.why)
    return Judgement(Verdict.MISROUTED, "no HTTP status that means anything here")
