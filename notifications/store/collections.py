"""The store's collections, and the repetition of writes while MongoDB has no primary."""

import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import structlog
from pymongo.errors import PyMongoError

from notifications.documents.notification import NOTIFICATIONS
from notifications.documents.policies import COUNTRY_UNITS, DAILY_UNITS, DIGESTS, LIMIT_USES
from notifications.documents.records import (
    DELIVERY_ATTEMPTS,
    INBOX_VISITS,
    PROVIDER_EVENTS,
    TEST_CLOCKS,
    TEST_OUTBOX,
)
from notifyproject.db.collections import is_transient

log = structlog.get_logger(__name__)
MAX_RETRY_SECONDS = 30.0  # Time for which a worker repeats a write: well within its lease
PAUSE = 0.2
P = ParamSpec("P")
R = TypeVar("R")


notifications = NOTIFICATIONS
attempts = DELIVERY_ATTEMPTS
events = PROVIDER_EVENTS  # Applied receipts
digests = DIGESTS
limit_uses = LIMIT_USES  # Counters of limits
country_units = COUNTRY_UNITS  # Parts of texts to countries
daily_units = DAILY_UNITS  # Parts of texts of clients
test_clocks = TEST_CLOCKS  # Times of test clients
test_outbox = TEST_OUTBOX  # What test keys sent
visits = INBOX_VISITS  # Until when each inbox was seen


def retry_transient(write: Callable[P, R], *args: P.args, **options: P.kwargs) -> R:
    """Repeat an idempotent ``write`` until it succeeds. Raises PyMongoError after 30 s."""
    # Only the worker knows the result of a send, so it must not give up early while there is no
    # primary or no majority. The filter of ``write`` doesn't match what it has already changed.
    deadline = time.monotonic() + MAX_RETRY_SECONDS
    while True:
        try:
            return write(*args, **options)
        except PyMongoError as error:
            if not is_transient(error) or time.monotonic() > deadline:
                raise
            log.warning("store_write_retried", reason=type(error).__name__)
            time.sleep(PAUSE)
