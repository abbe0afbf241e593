"""SMS from the request to the receipt, and back: STOP and START."""

from collections.abc import Callable
from typing import Any

import pytest
import urllib3

from domain.time import utc_now
from notifyproject.db.collections import collection
from recipients.queries import find_suppressed
from sandbox.assembly import Sandbox
from sandbox.providers.twilio.outcomes import magic_suffix
from tests.support.clients.api import App, when
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("worker")
Received = Callable[[str], list[dict[str, Any]]]
ADA = "+447700900999"


def number(outcome: str) -> str:
    """Return the number that has this outcome in the sandbox."""
    return f"+447700{magic_suffix(outcome)}"


def notify(app: App, phone: str = ADA, **fields: Any) -> Any:
    default: dict[str, Any] = {
        "type": "mfa_code",
        "recipient": {"phone": phone},
        "channels": ["sms"],
        "data": {"code": "123456", "expires_in": 5},
    }
    return app.notify(**(default | fields))


def write(provider: Sandbox, text: str) -> None:
    """Send an inbound message from Ada."""
    body = {"from": ADA, "text": text}
    answer = urllib3.request("POST", f"{provider.url}/_sandbox/twilio/written", json=body)
    assert answer.status < 300, answer.data


def suppressed(phone: str = ADA) -> list[str]:
    """Return why a number gets no SMS at all."""
    found = find_suppressed([("sms", phone)], now=utc_now()).values()
    return [str(active.reason) for active in found if not active.marketing_only]


def test_code_is_sent_and_delivered_with_its_parts(app: App, received: Received) -> None:
    answer = notify(app)
    (delivery,) = when(app, answer, "delivered")["delivery"]
    assert (delivery["provider"], delivery["attempt_count"]) == ("twilio", 1)
    assert delivery["provider_message_id"].startswith("SM")
    (request,) = received(ADA)
    form = request["body"]
    assert "123456" in form["Body"]
    assert (
        form["StatusCallback"]
        .partition("#")[0]
        .endswith(f"/webhooks/twilio?ref={answer.json()['id']}.sms.1")
    )
    assert 0 < int(form["ValidityPeriod"]) <= 300
    (attempt,) = app.get(f"/notifications/{answer.json()['id']}/attempts").json()["results"]
    assert attempt["units"] == 1


@pytest.mark.parametrize("fault", ["reset", "truncated", "not-json"])
def test_lost_answer_is_resolved_by_the_callback_and_nothing_is_sent_twice(
    app: App, received: Received, fault: str
) -> None:
    (delivery,) = when(app, notify(app, number(fault)), "delivered")["delivery"]
    assert delivery["attempt_count"] == 1
    assert len(received(number(fault))) == 1


def test_failure_by_receipt_says_why(app: App) -> None:
    for outcome, code in (
        ("failed-30005", "reported_failed"),
        ("failed-30007", "filtered"),
        ("failed-30034", "sender_unregistered"),
        ("failed-21408", "destination_disabled"),
    ):
        (delivery,) = when(app, notify(app, number(outcome)), "failed")["delivery"]
        assert delivery["failure_code"] == code
        assert outcome.removeprefix("failed-") in delivery["failure_reason"]
        assert suppressed(number(outcome)) == []


@pytest.mark.usefixtures("quick_retries")
def test_failure_by_answer_has_its_code(app: App) -> None:
    for outcome, code in (
        ("refused-21408", "destination_disabled"),
        ("refused-21617", "too_large"),
        ("refused-21211", "invalid_recipient"),
        ("refused-30640", "filtered"),
    ):
        (delivery,) = when(app, notify(app, number(outcome)), "failed")["delivery"]
        assert delivery["failure_code"] == code
        assert suppressed(number(outcome)) == []


def test_stop_suppresses_the_number_until_start(
    app: App, provider: Sandbox, received: Received
) -> None:
    when(app, notify(app), "delivered")
    write(provider, "Stop")
    until(lambda: suppressed() == ["unsubscribed"])
    (delivery,) = when(app, notify(app), "suppressed")["delivery"]
    assert delivery["failure_code"] == "suppressed"
    assert len(received(ADA)) == 1
    write(provider, "START")
    until(lambda: suppressed() == [])
    when(app, notify(app), "delivered")


def test_stop_that_only_twilio_knows_suppresses_too(app: App) -> None:
    for outcome in ("refused-21610", "failed-21610"):
        phone = number(outcome)
        when(app, notify(app, phone), "failed", "suppressed")
        until(lambda phone=phone: suppressed(phone) == ["unsubscribed"])


def test_inbound_text_is_not_stored(app: App, provider: Sandbox) -> None:
    write(provider, "Where is my parcel?")
    logged = until(lambda: collection("webhook_log").find_one({"provider": "twilio"}))
    assert "parcel" not in str(logged)


def test_forged_callback_changes_nothing(app: App, provider: Sandbox) -> None:
    answer = notify(app, number("no-events"))
    when(app, answer, "sent")
    url = f"/webhooks/twilio?ref={answer.json()['id']}.sms.1"
    form = {"MessageSid": f"SM{'0' * 32}", "MessageStatus": "delivered", "To": ADA}
    refused = app.http.post(url, form, headers={"X-Twilio-Signature": "AAAA"})
    assert refused.status_code in (401, 403)
    (delivery,) = app.get(f"/notifications/{answer.json()['id']}").json()["delivery"]
    assert delivery["status"] == "sent"
