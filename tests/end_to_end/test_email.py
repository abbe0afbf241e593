"""Email from the request to the receipt."""

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from bson import ObjectId

from delivery import pipeline, sweeper
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.time import utc_now
from notifyproject.db.collections import collection
from sandbox.assembly import Sandbox
from tests.support.clients.api import App, when
from tests.support.providers.webhooks import Webhook
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("worker")
Received = Callable[[str], list[dict[str, Any]]]
Script = Callable[..., None]


def attempts(app: App, answer: Any) -> list[dict[str, Any]]:
    return app.get(f"/notifications/{answer.json()['id']}/attempts").json()["results"]


def test_mail_is_accepted_sent_and_delivered(app: App, received: Received) -> None:
    answer = app.notify(recipient={"email": "ada@example.com", "name": "Ada"})
    assert answer.json()["status"] == "queued"
    notification = when(app, answer, "delivered")
    (delivery,) = notification["delivery"]
    assert delivery["provider"] == "sendgrid"
    assert delivery["provider_message_id"]
    sent_at, delivered_at = (
        datetime.fromisoformat(delivery[name]) for name in ("sent_at", "delivered_at")
    )
    assert sent_at <= delivered_at
    (request,) = received("ada@example.com")
    mail = request["body"]
    assert mail["subject"] == "Payment confirmed: Sunrise"
    assert [part["type"] for part in mail["content"]] == ["text/plain", "text/html"]
    assert "Your payment of 49.90" in mail["content"][0]["value"]
    assert mail["personalizations"][0]["to"] == [{"email": "ada@example.com", "name": "Ada"}]
    until(lambda: [attempt["status"] for attempt in attempts(app, answer)] == ["delivered"])
    assert attempts(app, answer)[0]["platform_response"] == {"status": 202}


def test_code_reaches_only_the_recipient(app: App, received: Received) -> None:
    answer = app.notify(type="mfa_code", data={"code": "481516", "expires_in": 5})
    notification = when(app, answer, "delivered")
    assert "481516" not in str(notification)
    (request,) = received("ada@example.com")
    assert "481516" in request["body"]["content"][0]["value"]
    assert "481516" in request["body"]["content"][1]["value"]
    assert request["body"]["subject"] == "481516 is your login code"


@pytest.mark.usefixtures("quick_retries")
def test_failing_provider_gets_max_retries_and_a_resend(
    app: App, received: Received, script: Script
) -> None:
    script("ada@example.com", "server-error")
    answer = app.notify(max_retries=3)
    notification = when(app, answer, "failed")
    (delivery,) = notification["delivery"]
    assert (delivery["attempt_count"], delivery["failure_code"]) == (4, "provider_error")
    assert len(received("ada@example.com")) == 4
    assert len(notification["error_history"]) == 4
    times = [datetime.fromisoformat(a["attempted_at"]) for a in attempts(app, answer)]
    waits = [(b - a).total_seconds() for a, b in pairwise(times)]
    # 0.1, 0.2 and 0.4 seconds, give or take a fifth, and what the worker takes.
    assert all(wait >= least for wait, least in zip(waits, (0.08, 0.16, 0.32), strict=True))
    failed = app.get("/notifications", delivery_status="failed").json()["results"]
    assert [attempt["id"] for attempt in failed] == [notification["id"]]

    script("ada@example.com", None)
    again = app.post(f"/notifications/{notification['id']}/resend")
    assert when(app, again, "delivered")["resent_from"] == notification["id"]
    assert len(received("ada@example.com")) == 5


@pytest.mark.usefixtures("quick_retries")
def test_temporary_failure_is_retried(app: App, received: Received) -> None:
    answer = app.notify(recipient={"email": "flaky@example.com"})
    notification = when(app, answer, "delivered")
    (delivery,) = notification["delivery"]
    assert (delivery["attempt_count"], delivery["failure_code"]) == (3, None)
    ended = ["failed", "failed", "delivered"]
    until(lambda: [attempt["status"] for attempt in attempts(app, answer)] == ended)
    assert len(notification["error_history"]) == 2


@pytest.mark.usefixtures("quick_retries")
def test_wrong_credentials_count_no_attempt(app: App, settings: Any) -> None:
    settings.SENDGRID_API_KEY = "SG.revoked"
    notification = when(app, app.notify(max_retries=0), "retrying")
    (delivery,) = notification["delivery"]
    assert delivery["failure_code"] == "channel_unavailable"
    stored = collection("notifications").find_one({})
    assert stored is not None
    assert stored["delivery"][0]["uncounted_attempts"] == 1


@pytest.mark.usefixtures("quick_silence")
def test_missing_answer_is_unknown_until_the_receipt(
    app: App, provider: Sandbox, received: Received, post: Callable[[Webhook], None]
) -> None:
    answer = app.notify(recipient={"email": "timeout-lost@example.com"})
    until(lambda: [attempt["status"] for attempt in attempts(app, answer)] == ["unknown"])
    when(app, answer, "processing")
    reference = f"{answer.json()['id']}.email.1"
    post(Webhook.of("delivered", channel="email", reference=reference, provider=provider))
    notification = when(app, answer, "delivered")
    assert notification["delivery"][0]["attempt_count"] == 1
    assert len(received("timeout-lost@example.com")) == 1
    until(lambda: [attempt["status"] for attempt in attempts(app, answer)] == ["delivered"])


@pytest.mark.usefixtures("quick_retries", "quick_silence")
def test_unknown_outcome_without_receipt_follows_the_types_policy(
    app: App, received: Received, script: Script
) -> None:
    silent = {"email": "timeout-once@example.com"}
    script(silent["email"], "timeout-lost", times=1)
    answer = app.notify(recipient=silent)
    marketing = app.notify(
        type="marketing", content={"body": "Buy"}, recipient={"email": "timeout-lost@example.com"}
    )

    def stored_statuses() -> set[str]:
        return {d["delivery"][0]["status"] for d in collection("notifications").find()}

    until(lambda: stored_statuses() == {"unknown"})

    def decided() -> bool:
        sweeper.sweep(now=utc_now())
        return "unknown" not in stored_statuses()

    until(decided)
    assert when(app, answer, "delivered")["delivery"][0]["attempt_count"] == 2
    failed = when(app, marketing, "failed")
    assert failed["delivery"][0]["failure_code"] == "outcome_unknown"
    assert len(received("timeout-lost@example.com")) == 1


def test_bounce_fails_the_mail_and_suppresses_the_next(app: App, received: Received) -> None:
    recipient = {"email": "bounce@example.com"}
    notification = when(app, app.notify(recipient=recipient), "failed")
    assert notification["delivery"][0]["failure_code"] == "bounced"
    until(lambda: collection("suppressions").count_documents({}) == 1)
    second = app.notify(recipient=recipient)
    assert second.json()["delivery"][0]["status"] == "suppressed"
    assert len(received("bounce@example.com")) == 1


def test_channel_without_a_provider_does_not_block_the_others(app: App, settings: Any) -> None:
    settings.FCM_CREDENTIALS = ""
    answer = app.notify(channels=["email", "push", "in_app"], user_id="ada")
    notification = when(app, answer, "partially_delivered")
    deliveries = {d["channel"]: d for d in notification["delivery"]}
    assert deliveries["email"]["status"] in ("sent", "delivered")
    assert deliveries["push"]["failure_code"] == "channel_unavailable"
    assert deliveries["push"]["attempt_count"] == 0
    assert deliveries["in_app"]["status"] == "delivered"


def test_scheduled_mail_is_sent_at_its_time(app: App, received: Received) -> None:
    at = utc_now() + timedelta(seconds=2)
    answer = app.notify(scheduled_at=at.isoformat().replace("+00:00", "Z"))
    assert answer.json()["status"] == "created"
    when(app, answer, "delivered")
    (attempt,) = attempts(app, answer)
    assert datetime.fromisoformat(attempt["attempted_at"]) >= at


def test_cancelled_mail_is_not_sent(app: App, received: Received) -> None:
    at = utc_now() + timedelta(days=1)
    when_due = {"scheduled_at": at.isoformat().replace("+00:00", "Z")}
    answer = app.notify(**when_due)
    marker = app.notify(**when_due, recipient={"email": "marker@example.com"})
    app.post(f"/notifications/{answer.json()['id']}/cancel")
    ids = [ObjectId(response.json()["id"]) for response in (answer, marker)]
    report = pipeline.dispatch(SendingRuntime(), ids, channel=Channel.EMAIL, clock=lambda: at)
    assert (report.claimed, report.counts) == (1, {"sent": 1})
    assert received("ada@example.com") == []
    assert len(received("marker@example.com")) == 1
