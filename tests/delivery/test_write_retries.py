"""Retried writes during a failover of the primary."""

import pytest
from pymongo.errors import OperationFailure, PyMongoError

from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.store import collections, leases
from notifications.store.claims import NotSent
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import (
    NOON,
    WORKER,
    attempts,
    claimed,
    delivery,
    read,
    started,
)
from tests.support.fakes.mongo_failpoints import (
    CUT,
    LOST_ANSWER,
    NO_RESOURCES,
    NOT_PRIMARY,
    STEPS_DOWN,
    Trouble,
    fail_commands,
)

S = DeliveryStatus
ERRORS = {
    "no primary": NOT_PRIMARY,
    "cut off": CUT,
    "answer lost": LOST_ANSWER,
    "steps down": STEPS_DOWN,
    "no resources": NO_RESOURCES,
}

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture(autouse=True)
def _short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collections, "PAUSE", 0.01)


@pytest.fixture(params=ERRORS)
def error(request: pytest.FixtureRequest) -> Trouble:
    return ERRORS[request.param]


def test_outcome_is_written_after_a_failover(error: Trouble) -> None:
    begun = started()
    with fail_commands("update", "notifications", error):
        leases.settle([factories.settlement(begun, S.FAILED)], now=NOON)
    document = read(begun.notification_id)
    assert delivery(document)["status"] == "failed"
    assert len(document["error_history"]) == 1


def test_start_is_written_once_after_a_failover(error: Trouble) -> None:
    claim = claimed()
    with fail_commands("update", "notifications", error):
        begun = leases.start([claim], provider="sendgrid", worker=WORKER, now=NOON)
    assert [c.attempt_count for c in begun] == [1]
    assert delivery(read(claim.notification_id))["attempt_count"] == 1


def test_attempt_record_is_inserted_after_a_failover(error: Trouble) -> None:
    begun = started()
    # The driver repeats an insert once by itself.
    with fail_commands("insert", "delivery_attempts", error, times=2):
        assert leases.settle([factories.settlement(begun, S.SENT)], now=NOON) == 1
    assert [a["status"] for a in attempts(begun.notification_id)] == ["sent"]


def test_deferral_is_written_after_a_failover(error: Trouble) -> None:
    claim = claimed()
    not_sent = NotSent(
        claimed=claim, status=S.EXPIRED, code=FailureCode.EXPIRED, reason="Its time was over."
    )
    with fail_commands("update", "notifications", error):
        leases.settle_not_sent([not_sent], now=NOON)
    assert delivery(read(claim.notification_id))["status"] == "expired"


def test_retries_end_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collections, "MAX_RETRY_SECONDS", 0.05)
    begun = started()
    with (
        fail_commands("update", "notifications", NOT_PRIMARY, times=1_000),
        pytest.raises(PyMongoError),
    ):
        leases.settle([factories.settlement(begun, S.SENT)], now=NOON)
    assert delivery(read(begun.notification_id))["status"] == "sending"


def test_permanent_error_is_not_retried() -> None:
    begun = started()
    with (
        fail_commands("update", "notifications", {"errorCode": 13}, times=2),
        pytest.raises(OperationFailure),
    ):
        leases.settle([factories.settlement(begun, S.SENT)], now=NOON)


def test_claim_is_not_retried() -> None:
    """The next wake-up claims the delivery."""
    document = factories.accepted()
    with fail_commands("update", "notifications", NOT_PRIMARY), pytest.raises(PyMongoError):
        leases.claim(ids=[document["_id"]], channel=Channel.EMAIL, worker=WORKER, now=NOON)
