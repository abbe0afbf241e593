"""MongoDB's errors as users met them: a request is accepted once, or refused with 503, never lost.

From https://github.com/mongodb/laravel-mongodb/issues/2554 (a primary that changes),
https://github.com/mongodb/specifications/pull/321 (interrupted at shutdown),
https://github.com/mongodb/specifications/pull/1297 (an error after a retry), and
https://github.com/mongoid/moped/issues/267 (writes aren't retried).
"""

from typing import Any

import pytest

from notifyproject.db.collections import collection
from tests.support.clients.api import App
from tests.support.fakes.mongo_failpoints import CUT, LOST_ANSWER, STEPS_DOWN, fail_commands
from tests.support.samples import sampled

ERRORS: dict[str, Any] = {
    "NotWritablePrimary": {"errorCode": 10107, "errorLabels": ["RetryableWriteError"]},
    "NotPrimaryNoSecondaryOk": {"errorCode": 13435, "errorLabels": ["RetryableWriteError"]},
    "InterruptedAtShutdown": {"errorCode": 11600, "errorLabels": ["RetryableWriteError"]},
    "InterruptedDueToReplStateChange": {
        "errorCode": 11602,
        "errorLabels": ["RetryableWriteError"],
    },
    "PrimarySteppedDown": {"errorCode": 189, "errorLabels": ["RetryableWriteError"]},
    "ShutdownInProgress": {"errorCode": 91, "errorLabels": ["RetryableWriteError"]},
    "ExceededTimeLimit": {"errorCode": 262, "errorLabels": ["RetryableWriteError"]},
    "HostUnreachable": {"errorCode": 6, "errorLabels": ["RetryableWriteError"]},
    "WriteConflict": {"errorCode": 112},
    "MaxTimeMSExpired": {"errorCode": 50},
    "OutOfDiskSpace": {"errorCode": 14031},
    "Unauthorized": {"errorCode": 13},
    "Interrupted": {"errorCode": 11601},
    "connection closed": CUT,
    "no majority in time": LOST_ANSWER,
    "steps down before the majority": STEPS_DOWN,
}


CASES = [(error, times) for error in ERRORS for times in (1, 2, 50)]


@pytest.mark.parametrize(("error", "times"), sampled(CASES, each=4))
def test_request_is_accepted_once_or_refused_whatever_mongodb_answers(
    app: App, error: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notifyproject.platform.middleware.DATABASE_SECONDS", 1.0)
    key = {"Idempotency-Key": "order-7"}
    body = {
        "type": "payment_confirmed",
        "recipient": {"email": "ada@example.com"},
        "data": {"order_id": 7, "video_title": "Sunrise", "amount": "49.90"},
    }
    with fail_commands("insert", "notifications", ERRORS[error], times=times):
        first = app.post("/notifications", body, headers=key)
    assert first.status_code in (202, 503), first.content
    if first.status_code == 503:
        assert first.json()["code"] == "store_unavailable"
        assert first.headers["Retry-After"] == "5"
    again = app.post("/notifications", body, headers=key)
    assert again.status_code == 202
    assert collection("notifications").count_documents({}) == 1
    if first.status_code == 202:
        assert again.json()["id"] == first.json()["id"]
