"""SMS by AWS from the request to the receipt, and back: the price, and opt-outs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from domain.time import utc_now
from notifyproject.db.collections import collection
from providers import registry
from recipients.queries import find_suppressed
from sandbox.assembly import Sandbox
from sandbox.config import Config
from sandbox.providers.aws_sms.outcomes import magic_suffix
from sandbox.server import run_in_thread
from tests.end_to_end.conftest import QUICK
from tests.support import live_requests
from tests.support.clients.api import App, when
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("worker")
ADA = "+447700900999"


@pytest.fixture
def provider(live_server: Any, settings: Any, tmp_path: Path) -> Iterator[Sandbox]:
    """Run a sandbox whose AWS publishes its events to this service."""
    config = Config(data=tmp_path, mail_webhooks_url=f"{live_server.url}/webhooks", timings=QUICK)
    with live_requests.answered(), run_in_thread(config) as sandbox:
        settings.TWILIO_ACCOUNT_SID = ""
        settings.AWS_SMS_ACCESS_KEY_ID = sandbox.aws.access_key_id
        settings.AWS_SMS_SECRET_ACCESS_KEY = sandbox.aws.secret_access_key
        settings.AWS_SMS_REGION = sandbox.aws.region
        settings.AWS_SMS_SENDER = sandbox.aws.pool
        settings.AWS_SMS_CONFIGURATION_SET = sandbox.aws.configuration_set
        settings.AWS_SMS_TOPICS = (sandbox.aws.topic,)
        settings.AWS_SMS_URL = f"{sandbox.url}/sms-voice"
        settings.AWS_SMS_SNS_URL = f"{sandbox.url}/sns"
        yield sandbox
        # Webhooks that the sandbox still posts are refused.
        settings.AWS_SMS_TOPICS = ()
        registry.clear()


def notify(app: App, outcome: str = "") -> Any:
    return app.notify(
        type="mfa_code",
        recipient={"phone": f"+447700{magic_suffix(outcome)}" if outcome else ADA},
        channels=["sms"],
        data={"code": "123456", "expires_in": 5},
    )


def suppressed(phone: str = ADA) -> list[str]:
    """Return why a number gets no SMS at all."""
    found = find_suppressed([("sms", phone)], now=utc_now()).values()
    return [str(active.reason) for active in found if not active.marketing_only]


def test_code_is_delivered_with_its_parts_and_its_price(app: App) -> None:
    (delivery,) = when(app, notify(app), "delivered")["delivery"]
    assert (delivery["provider"], delivery["attempt_count"]) == ("aws_sms", 1)
    events = list(collection("provider_events").find({"cost": {"$exists": True}}))
    assert {(event["units"], event["cost"], event["currency"]) for event in events} == {
        (1, "0.053", "USD")
    }


@pytest.mark.parametrize("fault", ["reset", "not-json"])
def test_lost_answer_is_resolved_by_the_events_and_nothing_is_sent_twice(
    app: App, provider: Sandbox, fault: str
) -> None:
    (delivery,) = when(app, notify(app, fault), "delivered")["delivery"]
    assert delivery["attempt_count"] == 1


def test_recipient_who_opted_out_at_aws_is_suppressed(app: App) -> None:
    (delivery,) = when(app, notify(app, "opted-out"), "failed")["delivery"]
    assert delivery["failure_code"] == "invalid_recipient"
    phone = f"+447700{magic_suffix('opted-out')}"
    assert until(lambda: suppressed(phone)) == ["unsubscribed"]


def test_stop_suppresses_and_start_lifts_it(app: App, provider: Sandbox) -> None:
    when(app, notify(app), "delivered")
    for word, reasons in (("STOP", ["unsubscribed"]), ("START", [])):
        body = {"from": ADA, "text": word}
        answer = urllib3.request("POST", f"{provider.url}/_sandbox/aws_sms/written", json=body)
        assert answer.status < 300, answer.data
        until(lambda reasons=reasons: suppressed() == reasons)
