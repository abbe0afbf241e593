"""The pictures of docs/images, of a shop's day: ``make screenshots``. The suite leaves it out."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from playwright.sync_api import ViewportSize

from access.models import StaffUser
from analytics import incidents
from analytics.incidents import Finding
from analytics.models import AlertKind
from delivery import circuit_breaker
from domain.states import BulkAction, Channel
from domain.time import utc_now
from monitoring import alert_rules
from monitoring.alert_rules import enabled_rules
from notifications.bulk import decisions, runner, selection
from notifications.bulk.decisions import StartOptions
from notifications.resend.actions import Staff
from notifications.resend.risk import RiskKind
from notifyproject.db.collections import collection
from notifyproject.platform import cache, valkey
from providers import registry
from tests.browser.screen import Screen
from tests.support.factories.demo_day import store_day

pytestmark = pytest.mark.usefixtures("db")

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"
MOST_BYTES = 250_000
SIZE = ViewportSize(width=1280, height=960)
BUSY = 26
"""Notifications in the busiest half-hour."""
PACE = 10
"""Deliveries that the operation tries in a second."""


@pytest.fixture(autouse=True)
def _providers(settings: Any, broker: Any, google_account_file: Path) -> Iterator[None]:
    """Set every provider up, as on the local stack."""
    settings.FCM_CREDENTIALS = str(google_account_file)
    settings.WHATSAPP_TOKEN = "token"
    settings.WHATSAPP_PHONE_NUMBER_ID = "15550001111"
    # The last: each of these begins with none.
    settings.SETTINGS_MODULE = "notifyproject.settings.local"
    for forget in (valkey.clear, cache.clear_all, registry.clear):
        forget()
    yield
    for forget in (valkey.clear, cache.clear_all, registry.clear):
        forget()


def test_screenshots_are_taken(screen: Screen) -> None:
    now = utc_now()
    day = store_day(now=now, busy=BUSY)
    _note_trouble(now)
    screen.sign_in()
    notifications = "/admin/notifications"
    for name, path in {
        "home": "/admin/",
        "failed": f"{notifications}/failednotification/",
        "notification": f"{notifications}/notification/{day.failed}/change/",
        "recipient": f"/admin/recipients/recipient/{day.customer.user_id}/change/",
        "providers": f"{notifications}/providerstate/",
    }.items():
        _take(screen, name, path)
    _take(screen, "bulk_operation", f"{notifications}/bulkoperation/{_half_done(now)}/change/")


def _take(screen: Screen, name: str, path: str) -> None:
    page, taken = screen.page, FOLDER / f"{name}.png"
    collection("heartbeats").update_many({}, {"$set": {"at": utc_now() - timedelta(seconds=8)}})
    page.set_viewport_size(SIZE)
    screen.open(path)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=taken, animations="disabled", caret="hide")
    assert taken.stat().st_size < MOST_BYTES, name


def _note_trouble(now: datetime) -> None:
    """Let an operator have paused WhatsApp, and an alert have been raised."""
    circuit_breaker.pause(
        "whatsapp", by="maria", reason="The number moves to another account", now=now
    )
    alert_rules.add_missing_rules()
    finding = Finding(
        rule_id=enabled_rules()[0].id,
        kind=AlertKind.FAILURES,
        subject="email",
        title="Many final failures: 27 mails in an hour",
        detail="Most of them: SendGrid had a problem of its own (provider error).",
    )
    incidents.record(finding, now=now - timedelta(hours=2))


def _half_done(now: datetime) -> ObjectId:
    """Return an operation on the mails that failed, with a part of them tried again."""
    maria = Staff(id=ObjectId(str(StaffUser.objects.get(username="maria").pk)), username="maria")
    found = selection.select_failures(
        channel=Channel.EMAIL, code="provider_error", since=now - timedelta(days=1)
    )
    words = (found.description[0], "Channel: Email", "Cause: Provider error", "Failed: last 24 h")
    cohort = replace(found, description=words)
    asked = decisions.preview(action=BulkAction.RETRY, selection=cohort, by=maria, now=now)
    runner.run(asked.id)
    plan = StartOptions(
        included_risks=frozenset({RiskKind.SAFE}),
        per_second=PACE,
        reason="SendGrid says that it is well",
    )
    decisions.start(asked.id, options=plan, by=maria, now=utc_now())
    # By a clock that stands still a second's worth is done, and no more.
    at = utc_now()
    runner.run(asked.id, clock=lambda: at)
    return asked.id
