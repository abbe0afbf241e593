"""Home, providers, workers, and alerts in a browser, in every size."""

import re
from datetime import timedelta
from typing import Any

import pytest
import redis
from playwright.sync_api import expect

from delivery.circuit_breaker import CircuitReporter
from domain.channels import Channel
from domain.states import DeliveryStatus
from domain.time import utc_now
from monitoring import alert_rules, incidents, rollup
from monitoring.alert_rules import enabled_rules
from monitoring.incidents import Finding
from monitoring.models import AlertKind
from notifyproject.db.collections import collection
from providers import registry
from tests.browser.screen import Screen
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db", "_traffic")

S = DeliveryStatus


@pytest.fixture
def _traffic(broker: redis.Redis, pauses_anew: None, settings: Any) -> None:
    """Store some hours of traffic, an open circuit, and an incident."""
    settings.EMAIL_PROVIDERS = ("sendgrid", "smtp")
    now = utc_now()
    for hours in range(0, 20, 2):
        at = now - timedelta(hours=hours)
        for status in (S.SENT, S.SENT, S.FAILED if hours % 4 else S.SENT):
            factories.settled(status, at=at, created_at=at)
        factories.accepted(created_at=at, channels=(Channel.IN_APP,))
    factories.accepted(created_at=now - timedelta(minutes=12))
    rollup.rebuild(since=now - timedelta(hours=20), until=now, now=now)
    rollup.run(now=now)
    collection("heartbeats").insert_many(
        [{"_id": "sweep", "at": now}, {"_id": "canary", "at": now - timedelta(minutes=4)}]
    )
    account = registry.get_provider("smtp").account
    CircuitReporter().trip(account, now=now, retry_after=600, reason="535 Authentication failed")
    alert_rules.add_missing_rules()
    rule = enabled_rules()[0]
    texts = {"title": "smtp: circuit open", "detail": "Open since 12:00:00 UTC: 535 Failed."}
    finding = Finding(rule_id=rule.id, kind=AlertKind.BREAKER_OPEN, subject=account, **texts)
    incidents.record(finding, now=now)


def test_operator_sees_the_queues_and_goes_from_an_incident_to_its_provider(screen: Screen) -> None:
    page = screen.page
    screen.sign_in()
    screen.open("/admin/")
    screen.choose("Workers and queues")
    screen.shows(page.get_by_role("heading", name="Queues", exact=True))
    late = page.locator(".tile-value.color-danger")
    expect(late).to_have_text([re.compile(r"^\d+ min ago$")])
    assert screen.fits()
    screen.choose("Home")
    screen.shows(
        page.get_by_role("heading", name="Channels", exact=True),
        page.locator("svg.spark").first,
        page.get_by_role("heading", name="Providers", exact=True),
    )
    assert screen.fits()
    screen.reach(page.get_by_role("button", name="Acknowledge")).click()
    screen.shows(page.get_by_text("Acknowledged: 1."), page.get_by_text("Acknowledged by maria"))
    assert screen.fits()
    screen.choose("Providers")
    screen.shows(page.get_by_role("heading", name="SendGrid"), page.get_by_text("Circuit open"))
    assert screen.fits()
    panel = page.locator("section.provider", has_text="SendGrid")
    screen.reach(panel.get_by_label("Reason for the pause")).fill("A bill is due.")
    page.keyboard.press("Enter")
    screen.shows(page.get_by_text("by maria: A bill is due."))
    assert screen.fits()
    address = panel.get_by_label("Email address")
    screen.reach(address).fill("ops@example.com")
    page.keyboard.press("Enter")
    screen.shows(page.get_by_role("link", name="View notification"))
    screen.reach(panel.get_by_role("button", name="Resume SendGrid")).click()
    screen.shows(page.get_by_text("SendGrid resumed. Sending restarts within 1 min."))
