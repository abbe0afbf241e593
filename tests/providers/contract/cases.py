"""What may happen to a message on its way to a provider, and what must come of it: one table."""

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
"""Seconds that a send may take longer than its short time limit, on any machine."""


LONG = LIMIT


class Case(StrEnum):
    """What happens."""

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
    """The error that a case is."""

    error: type[ProviderError]
    codes: frozenset[FailureCode]
    ambiguous: bool = False
    """The provider may have taken it."""


F = FailureCode


NOT_SENT = Expected(error=TransientError, codes=frozenset({F.CONNECTION_FAILED}))


IN_DOUBT = Expected(
    error=TransientError,
    codes=frozenset({F.TIMEOUT, F.CONNECTION_LOST, F.PROVIDER_ERROR}),
    ambiguous=True,
)


LATER = Expected(error=TransientError, codes=frozenset({F.PROVIDER_ERROR, F.RATE_LIMITED}))


NOBODYS_FAULT = Expected(error=ProviderUnavailableError, codes=frozenset({F.CHANNEL_UNAVAILABLE}))


NEVER = Expected(error=PermanentError, codes=frozenset({F.REJECTED, F.TOO_LARGE}))


NEVER_THERE = Expected(error=InvalidRecipientError, codes=frozenset({F.INVALID_RECIPIENT}))


EXPECTED: Mapping[Case, Expected] = {
    Case.NOBODY_LISTENS: NOT_SENT,
    Case.NO_SUCH_HOST: NOT_SENT,
    Case.NOT_TAKEN: NOT_SENT,
    Case.SILENT: IN_DOUBT,
    Case.HUNG_UP: IN_DOUBT,
    Case.RESET: IN_DOUBT,
    Case.TRUNCATED: IN_DOUBT,
    Case.DRIPPING: IN_DOUBT,
    Case.NONSENSE: IN_DOUBT,
    Case.BUSY: LATER,
    Case.TOO_MANY: LATER,
    Case.NO_CREDENTIALS: NOBODYS_FAULT,
    Case.REDIRECTED: NOBODYS_FAULT,
    Case.BAD_RECIPIENT: NEVER_THERE,
    Case.REFUSED: NEVER,
}
"""All but the acceptance."""


UNREACHED = frozenset({Case.NOBODY_LISTENS, Case.NO_SUCH_HOST, Case.NOT_TAKEN})
"""Nobody is there to be asked."""


SLOW = frozenset({Case.NOT_TAKEN, Case.SILENT, Case.DRIPPING})
"""Only the time limit ends these."""
