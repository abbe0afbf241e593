"""Tells late receipts from missing ones, so that no lost answer is repeated too early.

A missing receipt says that a message wasn't accepted only if receipts arrive in time. When the
provider, or this service, falls behind with them, each lost answer would otherwise become a second
message.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from domain.retry import UNKNOWN_WAIT
from notifications.receipts import lag
from notifications.store.recovery import UnknownOutcome

LATE_SHARE = 0.5
"""Receipts that take this share of the wait or more are late."""
MAX_WAITS = 4
"""How many times as long a delivery waits for late receipts at most."""


def late_until(
    outcomes: Sequence[UnknownOutcome], *, now: datetime
) -> Mapping[UnknownOutcome, datetime]:
    """Return until when deliveries wait whose receipts may be late, instead of being decided now.

    A delivery that would expire meanwhile doesn't wait. Raises PyMongoError.
    """
    if not outcomes:
        return {}
    lags = lag.shortest_lags({outcome.provider for outcome in outcomes}, now=now)
    found = {
        outcome: _until(outcome, lags[outcome.provider])
        for outcome in outcomes
        if outcome.provider in lags
    }
    return {
        outcome: until
        for outcome, until in found.items()
        if until > now
        and (outcome.retry_state.expires_at is None or until < outcome.retry_state.expires_at)
    }


def _until(outcome: UnknownOutcome, receipt_lag: timedelta) -> datetime:
    wait = UNKNOWN_WAIT[outcome.retry_state.priority]
    if receipt_lag < wait * LATE_SHARE:
        return outcome.attempted_at
    return outcome.attempted_at + min(receipt_lag + wait, wait * MAX_WAITS)
