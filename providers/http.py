"""HTTP requests and responses to and from providers, and the redaction of response texts."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from domain import retry

CONNECT_TIMEOUT = 3.0
TOTAL_TIMEOUT = 15.0
MAX_RETRY_AFTER = 24 * 3600.0
"""Upper limit of a provider's Retry-After, in seconds."""
EXCERPT_LENGTH = 1000
SUCCESSES = range(200, 300)
INVALID_CONFIGURATION = "The provider's configured address or key is invalid."
# Linear time on any text: every part is bounded or starts at a word boundary.
_GAP = r"[\s().-]{0,3}"
_ADDRESS = re.compile(
    rf"""
    (?P<harmless>
        (?<![\d+.-])
        (?:
            [245]\d\d[ -][245]\.\d{{1,3}}\.\d{{1,3}}  # a mail server's reply codes
            | (?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])  # a date
        )
        (?![.-]?\d)
    )
    | (?:"[^"\n]{{1,64}}"|(?<![^\s"<>@])[^\s"<>@]+)(?:@|%40)[^\s"'<>]+
    | (?:\+(?=(?:\d{_GAP}){{7}})|(?=(?:\d{_GAP}){{8}}))\d(?:{_GAP}\d)+
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to a provider: a POST, or a GET if ``body`` is None."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)
    timeout: float = TOTAL_TIMEOUT
    """Seconds in total, from the DNS lookup to the last byte of the response."""
    connect_to: Sequence[str] = ()
    """The IP addresses to connect to, in place of a lookup of the host. TLS still verifies the
    host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A provider's complete response."""

    status: int
    headers: Mapping[str, str]
    """With names in lower case."""
    body: bytes

    @property
    def text(self) -> str:
        """The body as text; invalid bytes are replaced."""
        return self.body.decode(errors="replace")

    @property
    def excerpt(self) -> str:
        """The start of the body for the attempt's record, with addresses redacted."""
        return excerpt(self.text)


def redact(text: str) -> str:
    """Replace email addresses and phone numbers: eight digits, or seven after a plus sign."""
    return _ADDRESS.sub(lambda match: match["harmless"] or "[address]", text)


def excerpt(text: str) -> str:
    """Return the start of ``text`` for the attempt's record, with addresses redacted."""
    # Redacted before it's cut, because half an address isn't recognized.
    return redact(text)[:EXCERPT_LENGTH]


def retry_after_seconds(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return the seconds of Retry-After. None if the header is absent, invalid, or in the past."""
    pause = retry.parse_retry_after(headers, now=now, limit=timedelta(seconds=MAX_RETRY_AFTER))
    return None if pause is None else pause.total_seconds()


def clamp_pause(seconds: float) -> float | None:
    """Return a pause, at most a day. None if it is zero or negative."""
    return min(seconds, MAX_RETRY_AFTER) if seconds > 0 else None


def as_object(value: Any) -> Mapping[str, Any]:
    """Return ``value`` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def decode_object(body: bytes) -> Mapping[str, Any]:
    """Decode a body that is a JSON object. Return an empty object for any other body.

    An invalid byte, or half of an emoji that was cut, becomes a question mark or U+FFFD.
    """
    try:
        return as_object(msgspec.json.decode(body))
    except (ValueError, RecursionError):
        pass
    try:
        # A provider may cut a text that it quotes, and its code counts nevertheless.
        repaired = json.dumps(json.loads(body.decode(errors="replace")), ensure_ascii=False)
        return as_object(msgspec.json.decode(repaired.encode(errors="replace")))
    except (ValueError, RecursionError):
        return {}
