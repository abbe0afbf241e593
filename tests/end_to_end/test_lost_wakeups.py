"""Lost and repeated wake-ups, an unavailable broker, and failures in a batch."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis
from bson import ObjectId
from celery.worker import state as worker_state

from delivery import pipeline, sweeper
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.content import Content, Recipient
from domain.states import Priority
from domain.time import utc_now
from notifications.queueing import wakeups
from notifyproject.db.collections import collection
from notifyproject.platform import valkey
from sandbox.assembly import Sandbox
from tests.support.clients.api import App, when
from tests.support.factories import notifications as factories
from tests.support.waiting import until

Received = Callable[[str], list[dict[str, Any]]]


def dispatch(*documents: Any) -> Any:
    """Dispatch mails a second after their acceptance. Return the report."""
    ids, at = [document["_id"] for document in documents], factories.NOON + timedelta(seconds=1)
    return pipeline.dispatch(SendingRuntime(), ids, channel=Channel.EMAIL, clock=lambda: at)


def test_sweep_replaces_a_lost_wakeup(
    app: App, broker: redis.Redis, worker: None, received: Received, monkeypatch: Any
) -> None:
    monkeypatch.setattr(valkey, "run_later", lambda *args, **options: None)
    answer = app.notify()
    monkeypatch.undo()
    # With one of its own, which is worked off meanwhile.
    when(app, app.notify(recipient={"email": "marker@example.com"}), "delivered")
    assert received("ada@example.com") == []
    assert sweeper.sweep(now=utc_now()).woken == 1
    when(app, answer, "delivered")


def test_repeated_wakeup_sends_once(app: App, worker: None, received: Received) -> None:
    answer = app.notify()
    notification_id = ObjectId(answer.json()["id"])
    for _ in range(10):
        wakeups.send_wakeup(
            [notification_id] * 3, channel=Channel.EMAIL, priority=Priority.HIGH, now=utc_now()
        )
    when(app, answer, "delivered")
    # One worker takes them in their order: with this one it has taken all, and then ends them.
    marker = app.notify(recipient={"email": "marker@example.com"})
    when(app, marker, "delivered")
    until(lambda: not worker_state.reserved_requests and not worker_state.active_requests)
    assert wakeups.depth("email.high") == 0
    assert len(received("ada@example.com")) == 1


@pytest.mark.usefixtures("valkey_anew")
def test_post_is_accepted_without_a_broker(
    app: App, provider: Sandbox, received: Received, settings: Any, monkeypatch: Any
) -> None:
    tried = []

    def refuse(*args: Any, **options: Any) -> None:
        tried.append(args)
        raise ConnectionRefusedError

    monkeypatch.setattr(valkey._OwnConnection, "run_later", refuse)
    answers = [app.notify() for _ in range(5)]
    assert len(tried) == 1, "one finds out for all"
    assert [answer.status_code for answer in answers] == [202] * 5
    monkeypatch.undo()
    ids = [document["_id"] for document in collection("notifications").find({}, {"_id": 1})]
    report = pipeline.dispatch(SendingRuntime(), ids, channel=Channel.EMAIL)
    assert report.counts == {"sent": 5}


def test_bad_delivery_does_not_fail_its_batch(
    provider: Sandbox, received: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = factories.accepted()
    masked = Content(subject="x", body="y", template_id="payment_confirmed", is_masked=True)
    bad = factories.accepted(content=masked)
    unreachable = factories.accepted(recipient=Recipient())
    report = dispatch(good, bad, unreachable)
    assert report.counts == {"sent": 1, "failed": 1, "suppressed": 1}
    codes = {
        factories.delivery(factories.read(d["_id"])).get("failure_code") for d in (bad, unreachable)
    }
    assert codes == {"render_failed", "no_address"}


def test_provider_defect_does_not_fail_the_rest_of_the_batch(
    provider: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    from providers.sendgrid.provider import SendGrid

    send = SendGrid.send

    async def fail_for_eve(self: Any, outbound: Any, **options: Any) -> Any:
        if outbound.recipient == "eve@example.com":
            raise ZeroDivisionError
        return await send(self, outbound, **options)

    monkeypatch.setattr(SendGrid, "send", fail_for_eve)
    ada = factories.accepted()
    # Another text: the same mail to both would be one request.
    eve = factories.accepted(
        recipient=Recipient(email="eve@example.com"), content=Content(body="For Eve.")
    )
    dispatch(ada, eve)
    assert factories.delivery(factories.read(ada["_id"]))["status"] in ("sent", "delivered")
    unclear = factories.delivery(factories.read(eve["_id"]))
    assert (unclear["status"], unclear["failure_code"]) == ("unknown", "internal_error")
