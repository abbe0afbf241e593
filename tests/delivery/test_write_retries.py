"""A worker goes on trying to write what only it knows, while there is no primary."""

import pytest
from pymongo.errors import OperationFailure, PyMongoError

from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus
from notifications import store
from notifications.store import collections
from notifications.store import collections as store_collections
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
TROUBLES = {
    "no primary": NOT_PRIMARY,
    "cut off": CUT,
    "answer lost": LOST_ANSWER,
    "steps down": STEPS_DOWN,
    "no resources": NO_RESOURCES,
}

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture(autouse=True)
def _short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_collections, "PAUSE", 0.01)


@pytest.fixture(params=TROUBLES)
def trouble(request: pytest.FixtureRequest) -> Trouble:
    return TROUBLES[request.param]


def test_an_outcome_is_written_when_the_primary_is_back(trouble: Trouble) -> None:
    one = started()
    with fail_commands("update", "notifications", trouble):
        store.settle([factories.settlement(one, S.FAILED)], now=NOON)
    document = read(one.notification_id)
    assert delivery(document)["status"] == "failed"
    assert len(document["error_history"]) == 1


def test_the_record_of_an_outcome_is_written_when_the_primary_is_back(
    trouble: Trouble,
) -> None:
    one = started()
    with fail_commands("update", "delivery_attempts", trouble):
        assert store.settle([factories.settlement(one, S.SENT)], now=NOON) == 1
    assert attempts(one.notification_id)[0]["status"] == "sent"


def test_a_start_is_made_once_when_the_primary_is_back(trouble: Trouble) -> None:
    one = claimed()
    with fail_commands("update", "notifications", trouble):
        begun = store.start([one], provider="sendgrid", worker=WORKER, now=NOON)
    assert [c.attempt_count for c in begun] == [1]
    assert delivery(read(one.notification_id))["attempt_count"] == 1


def test_a_started_attempt_is_recorded_when_the_primary_is_back(trouble: Trouble) -> None:
    one = claimed()
    # The driver itself repeats an insert once: only then is it our turn.
    with fail_commands("insert", "delivery_attempts", trouble, times=2):
        store.start([one], provider="sendgrid", worker=WORKER, now=NOON)
    assert [a["status"] for a in attempts(one.notification_id)] == ["started"]


def test_what_is_parked_is_given_back_when_the_primary_is_back(trouble: Trouble) -> None:
    one = claimed()
    parked = store.Deferred(
        claimed=one, status=S.EXPIRED, code=FailureCode.EXPIRED, reason="Its time was over."
    )
    with fail_commands("update", "notifications", trouble):
        store.defer([parked], now=NOON)
    assert delivery(read(one.notification_id))["status"] == "expired"


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collections, "MAX_RETRY_SECONDS", 0.05)
    one = started()
    with (
        fail_commands("update", "notifications", NOT_PRIMARY, times=1_000),
        pytest.raises(PyMongoError),
    ):
        store.settle([factories.settlement(one, S.SENT)], now=NOON)
    assert delivery(read(one.notification_id))["status"] == "sending"


def test_an_error_that_time_does_not_mend_is_not_waited_for() -> None:
    one = started()
    with (
        fail_commands("update", "notifications", {"errorCode": 13}, times=2),
        pytest.raises(OperationFailure),
    ):
        store.settle([factories.settlement(one, S.SENT)], now=NOON)


def test_a_claim_is_not_waited_for() -> None:
    """What is not claimed now is claimed by the next hint."""
    document = factories.accepted()
    with fail_commands("update", "notifications", NOT_PRIMARY), pytest.raises(PyMongoError):
        store.claim(ids=[document["_id"]], channel=Channel.EMAIL, worker=WORKER, now=NOON)
