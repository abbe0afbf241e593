"""Email by an account of a service, from the request to the receipt."""

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
from tests.support.accounts import declare
from tests.support.clients.api import App, when
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("worker")

ACCOUNT = "newsroom"


@pytest.fixture(autouse=True)
def provider(live_server: Any, settings: Any, tmp_path: Path) -> Iterator[Sandbox]:
    """Run a sandbox whose Postmark has one of this service's accounts, and calls its webhook."""
    hooks = f"{live_server.url}/webhooks"
    config = Config(data=tmp_path, mail_webhooks_url=hooks, timings=QUICK)
    with live_requests.answered(), run_in_thread(config) as sandbox:
        settings.POSTMARK_SERVER_TOKEN = "sandbox-token"
        settings.POSTMARK_WEBHOOK_SECRET = sandbox.mail.webhook_secret
        settings.POSTMARK_URL = f"{sandbox.url}/postmark"
        declare(
            settings,
            PROVIDER_NEWSROOM_KIND="postmark",
            PROVIDER_NEWSROOM_SERVER_TOKEN="sandbox-token",
            PROVIDER_NEWSROOM_URL=f"{sandbox.url}/postmark",
            PROVIDER_NEWSROOM_WEBHOOK_SECRET="a-password-that-the-sandbox-lacks",
        )
        settings.EMAIL_PROVIDERS = ("postmark",)
        registry.clear()
        yield sandbox
        # Webhooks that the sandbox still posts are refused.
        settings.POSTMARK_WEBHOOK_SECRET = ""
        registry.clear()


def notify(app: App, email: str) -> Any:
    return app.notify(recipient={"email": email}, channels=["email"])


def test_mail_is_delivered(app: App) -> None:
    (delivery,) = when(app, notify(app, "ada@example.com"), "delivered")["delivery"]
    assert (delivery["provider"], delivery["attempt_count"]) == ("postmark", 1)


def test_hard_bounce_suppresses_and_a_transient_one_does_not(app: App) -> None:
    when(app, notify(app, "transient@example.com"), "delivered")
    (delivery,) = when(app, notify(app, "bounce@example.com"), "failed")["delivery"]
    assert delivery["failure_code"] == "bounced"
    # The address is suppressed right after the delivery has failed.
    (suppression,) = until(lambda: list(collection("suppressions").find()))
    assert suppression["address"] == "bounce@example.com"


@pytest.mark.parametrize("fault", ["reset", "not-json"])
def test_lost_answer_is_resolved_by_the_receipt(app: App, fault: str) -> None:
    answer = notify(app, f"{fault}@example.com")
    (delivery,) = when(app, answer, "delivered")["delivery"]
    assert delivery["attempt_count"] == 1


def test_webhook_of_one_account_ends_no_mail_of_another(app: App, settings: Any) -> None:
    """The sandbox calls the webhook of the kind's account about each mail."""
    settings.EMAIL_PROVIDERS = (ACCOUNT,)
    registry.clear()
    answer = notify(app, "bounce@example.com")
    (delivery,) = when(app, answer, "sent")["delivery"]
    assert delivery["provider"] == ACCOUNT
    until(lambda: collection("webhook_log").count_documents({"processed_at": {"$ne": None}}))
    assert when(app, answer, "sent")["delivery"] == [delivery]
