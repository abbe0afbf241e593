"""Cases of a send, and the expected outcome of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    TransientError,
)
from tests.support.waiting import LIMIT

GRACE = LIMIT
"""Seconds that a send may exceed its time limit."""
LONG = LIMIT


class Case(StrEnum):
    ACCEPTED = "message accepted"
    # Before a byte of the message has left.
    NOBODY_LISTENS = "connection refused"
    NO_SUCH_HOST = "host name not found"
    NOT_TAKEN = "connection not established"
    # After the message has left.
    SILENT = "no response"
    HUNG_UP = "connection closed"
    RESET = "connection reset"
    TRUNCATED = "response cut off"
    DRIPPING = "response without an end"
    NONSENSE = "undocumented response"
    # An answer.
    BUSY = "provider error"
    TOO_MANY = "rate limited"
    NO_CREDENTIALS = "credentials rejected"
    REDIRECTED = "redirect"
    BAD_RECIPIENT = "unknown recipient"
    REFUSED = "message rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The expected error of a case."""

    error: type[ProviderError]
    codes: frozenset[FailureCode]
    ambiguous: bool = False
    """The provider may have accepted the message."""


F = FailureCode
NOT_SENT = Expected(error=TransientError, codes=frozenset({F.CONNECTION_FAILED}))


def _ambiguous(code: FailureCode) -> Expected:
    return Expected(error=TransientError, codes=frozenset({code}), ambiguous=True)


LATER = Expected(error=TransientError, codes=frozenset({F.PROVIDER_ERROR, F.RATE_LIMITED}))
UNAVAILABLE = Expected(error=ProviderUnavailableError, codes=frozenset({F.CHANNEL_UNAVAILABLE}))
REJECTED = Expected(error=PermanentError, codes=frozenset({F.REJECTED, F.TOO_LARGE}))
BAD_ADDRESS = Expected(
    error=InvalidRecipientError, codes=frozenset({F.INVALID_RECIPIENT, F.ROOM_GONE})
)

EXPECTED: Mapping[Case, Expected] = {
    Case.NOBODY_LISTENS: NOT_SENT,
    Case.NO_SUCH_HOST: NOT_SENT,
    Case.NOT_TAKEN: NOT_SENT,
    Case.SILENT: _ambiguous(F.TIMEOUT),
    Case.HUNG_UP: _ambiguous(F.CONNECTION_LOST),
    Case.RESET: _ambiguous(F.CONNECTION_LOST),
    Case.TRUNCATED: _ambiguous(F.CONNECTION_LOST),
    Case.DRIPPING: _ambiguous(F.TIMEOUT),
    Case.NONSENSE: _ambiguous(F.PROVIDER_ERROR),
    Case.BUSY: LATER,
    Case.TOO_MANY: LATER,
    Case.NO_CREDENTIALS: UNAVAILABLE,
    Case.REDIRECTED: UNAVAILABLE,
    Case.BAD_RECIPIENT: BAD_ADDRESS,
    Case.REFUSED: REJECTED,
}
"""All cases except acceptance."""

UNREACHED = frozenset({Case.NOBODY_LISTENS, Case.NO_SUCH_HOST, Case.NOT_TAKEN})
"""No provider is contacted."""
SLOW = frozenset({Case.NOT_TAKEN, Case.SILENT, Case.DRIPPING})
"""Cases that end only by the time limit."""
