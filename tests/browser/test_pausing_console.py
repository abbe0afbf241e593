"""A pause of a provider uses no attempts, and held deliveries are sent after the resume."""

from datetime import datetime
from typing import Any

import pytest
from playwright.sync_api import expect

from delivery import pipeline, provider_pauses
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.time import utc_now
from tests.browser.screen import Screen
from tests.support.factories import notifications as factories
from tests.support.fakes.provider import ScriptedProvider

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture
def sendgrid(broker: Any, pauses_anew: None, monkeypatch: pytest.MonkeyPatch) -> ScriptedProvider:
    """Replace the email providers by one that accepts everything."""
    provider = ScriptedProvider(name="sendgrid")
    monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: (provider,))
    return provider


def dispatch(notification_id: Any, *, at: datetime) -> None:
    pipeline.dispatch(SendingRuntime(), [notification_id], channel=Channel.EMAIL, clock=lambda: at)


def test_paused_provider_uses_no_attempts(screen: Screen, sendgrid: ScriptedProvider) -> None:
    page, now = screen.page, utc_now()
    notification_id = factories.accepted(created_at=now)["_id"]
    screen.sign_in()
    screen.open("/admin/")
    screen.choose("Providers")
    card = page.get_by_role("region", name="SendGrid")
    screen.reach(card.get_by_label("Reason for the pause")).fill("They are moving house")
    screen.reach(page.get_by_role("button", name="Pause SendGrid")).click()
    screen.shows(page.get_by_text("by maria: They are moving house"))
    dispatch(notification_id, at=now)
    assert sendgrid.seen == []
    screen.choose("Scheduled and held")
    row = page.locator("#result_list tbody", has_text="ada")
    expect(row).to_contain_text("Held: SendGrid paused by maria (They are moving house)")
    row.locator("a").first.click()
    screen.shows(page.get_by_text("No attempt is used"), page.get_by_text("No attempts"))
    assert factories.attempts(notification_id) == []
    screen.choose("Providers")
    screen.reach(page.get_by_role("button", name="Resume SendGrid")).click()
    screen.shows(page.get_by_text("SendGrid resumed. Sending restarts within 1 min."))
    dispatch(notification_id, at=now + provider_pauses.PAUSE_CHECK_INTERVAL)
    screen.open(f"/admin/notifications/notification/{notification_id}/change/")
    screen.shows(page.get_by_text("1 of 4"))
    expect(page.locator(".headline h2")).to_contain_text("Email sent by SendGrid")
    assert len(sendgrid.seen) == 1
