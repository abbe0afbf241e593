"""What is said to a provider by HTTP, and what it answers: values and texts, no connection.

Requests are made in :mod:`.http_client`.
"""

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

CONNECT_TIMEOUT = 3.0


TOTAL_TIMEOUT = 15.0


MAX_RETRY_AFTER = 24 * 3600.0
"""A provider that asks for a longer pause is taken at a day."""


EXCERPT_LENGTH = 1000


INVALID_CONFIGURATION = "The provider's address or key, as configured, cannot be used."


T = TypeVar("T")


# Every part is bounded or begins where a word does, so that no text takes long.
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
    """A POST to a provider."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    timeout: float = TOTAL_TIMEOUT
    """Seconds it may take in all, from the look-up of the host to the answer's last byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A provider's whole answer."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def text(self) -> str:
        """The body, whatever its encoding."""
        return self.body.decode(errors="replace")

    @property
    def excerpt(self) -> str:
        """The beginning of the body with addresses taken out, for the attempt's record."""
        return excerpt(self.text)


Exchange = Generator[Request, Response, T]
"""What is said to a provider in turn: it yields requests, is sent what they were answered, or has
thrown into it the error that kept a request from being answered; and returns what came of it."""


def redact(text: str) -> str:
    """Return ``text`` with everything that looks like an address or phone number taken out.

    A number of eight digits counts as one, with a plus before it one of seven; reply codes and
    dates do not.
    """
    return _ADDRESS.sub(lambda match: match["harmless"] or "[address]", text)


def excerpt(text: str) -> str:
    """Return the beginning of ``text`` without addresses, for the attempt's record."""
    # Cut afterwards: half an address looks like none.
    return redact(text)[:EXCERPT_LENGTH]


def parse_retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return the pause in seconds a provider asks for: Retry-After in seconds or as a date.

    None without the header, with nonsense in it, or with a time that has passed.
    """
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), MAX_RETRY_AFTER)
    try:
        retry_at = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if retry_at.tzinfo is None:
        retry_at = retry_at.replace(tzinfo=UTC)
    return clamp_pause((retry_at - now).total_seconds())


def clamp_pause(seconds: float) -> float | None:
    """Return a pause between now and a day; None for one that is over."""
    return min(seconds, MAX_RETRY_AFTER) if seconds > 0 else None
