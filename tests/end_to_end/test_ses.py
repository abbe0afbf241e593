"""Email by SES from the request to the receipt, with a subscription that confirms itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from notifyproject.db.collections import collection
from providers import registry
from sandbox.assembly import Sandbox
from sandbox.config import Config
from sandbox.server import run_in_thread
from tests.end_to_end.conftest import QUICK
from tests.support import live_requests
from tests.support.clients.api import App, when
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("worker")


@pytest.fixture
def provider(live_server: Any, settings: Any, tmp_path: Path) -> Iterator[Sandbox]:
    """Run a sandbox whose SES publishes its events to this service."""
    config = Config(data=tmp_path, mail_webhooks_url=f"{live_server.url}/webhooks", timings=QUICK)
    with live_requests.answered(), run_in_thread(config) as sandbox:
        settings.EMAIL_PROVIDERS = ("ses",)
        settings.SES_ACCESS_KEY_ID = sandbox.aws.access_key_id
        settings.SES_SECRET_ACCESS_KEY = sandbox.aws.secret_access_key
        settings.SES_REGION = sandbox.aws.region
        settings.SES_CONFIGURATION_SET = sandbox.aws.configuration_set
        settings.SES_TOPICS = (sandbox.aws.topic,)
        settings.SES_URL, settings.SES_SNS_URL = sandbox.url, f"{sandbox.url}/sns"
        yield sandbox
        # Webhooks that the sandbox still posts are refused.
        settings.SES_TOPICS = ()
        registry.clear()


def notify(app: App, email: str) -> Any:
    return app.notify(recipient={"email": email}, channels=["email"])


def test_mail_is_delivered_by_a_topic_that_was_subscribed_to(app: App) -> None:
    (delivery,) = when(app, notify(app, "ada@example.com"), "delivered")["delivery"]
    assert (delivery["provider"], delivery["attempt_count"]) == ("ses", 1)


@pytest.mark.parametrize("fault", ["reset", "not-json"])
def test_lost_answer_is_resolved_by_the_events(app: App, fault: str) -> None:
    """The reference is in the mail, so that the events find an attempt without a message ID."""
    answer = notify(app, f"{fault}@example.com")
    (delivery,) = when(app, answer, "delivered")["delivery"]
    assert delivery["attempt_count"] == 1


def test_forged_bounce_changes_nothing(app: App) -> None:
    (delivery,) = when(app, notify(app, "forged@example.com"), "delivered")["delivery"]
    assert delivery["failure_code"] is None
    assert collection("suppressions").count_documents({}) == 0


def test_permanent_bounce_suppresses_and_an_automatic_answer_does_not(app: App) -> None:
    when(app, notify(app, "out-of-office@example.com"), "delivered")
    (delivery,) = when(app, notify(app, "bounce@example.com"), "failed")["delivery"]
    assert delivery["failure_code"] == "bounced"
    # The address is suppressed right after the delivery has failed.
    (suppression,) = until(lambda: list(collection("suppressions").find()))
    assert suppression["address"] == "bounce@example.com"
