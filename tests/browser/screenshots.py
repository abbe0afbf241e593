"""The screenshots of docs/images, which ``make screenshots`` takes, not the test suite."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bson import ObjectId
from django.urls import reverse
from playwright.sync_api import FloatRect, Locator, Page, ViewportSize

from access.clients import registry as registry_of_clients
from access.models import StaffUser
from console.widgets.links import DESIGN_ITEM
from delivery import provider_pauses
from domain.channels import Channel
from domain.country_units import SentUnits
from domain.states import BulkAction
from domain.time import utc_now
from monitoring import alert_rules, incidents
from monitoring.alert_rules import enabled_rules
from monitoring.incidents import Finding
from monitoring.models import AlertKind
from notifications.actions.actions import Staff
from notifications.actions.risk import RiskKind
from notifications.bulk import decisions, runner, selection
from notifications.bulk.decisions import StartOptions
from notifications.catalog import types
from notifications.catalog.designs import BrandRequest, Colours, DarkPalette, Kind, Palette
from notifications.content import design_changes, templates
from notifications.content.design_changes import Change
from notifications.intake.requests import Caller
from notifications.store import country_units
from notifyproject.db.collections import collection
from notifyproject.platform import cache, valkey
from providers import registry
from tests.browser.screen import Screen
from tests.browser.test_inbox_elements import Site, site
from tests.browser.test_web_push import page as demo_page
from tests.support.clients.console import signed_in
from tests.support.factories import console_files, files
from tests.support.factories.broadcasts import begun, recipients, topic
from tests.support.factories.demo_day import store_day
from tests.support.factories.templates import publish_version

__all__ = ["demo_page", "site"]
pytestmark = pytest.mark.usefixtures("db")

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"
MAX_BYTES = 250_000
SIZE = ViewportSize(width=1280, height=960)
MARGIN = 12
INBOX_ITEMS = (
    ("Your password was changed", "If that wasn't you, contact us."),
    ("We have your payment", "49.90 for Sunrise. The receipt is in your account."),
    ("The contest begins tomorrow", "It begins at 18:00. Your entry is complete."),
    ("Your export is ready", "The export of November has 12,480 rows."),
    ("Your order has shipped", "Order 1042 left the warehouse and arrives on Friday."),
)
"""Subject and body, the oldest first."""
BUSY = 26
"""Notifications in the busiest half-hour."""
PER_SECOND = 10
"""Rate of the bulk operation."""
SMS = (
    "A sua encomenda {{ order }} saiu do armazém e chega amanhã até às 18:00. "
    "Não é preciso assinar. Dúvidas? Responda a esta mensagem."
)
"""Unicode, and so two parts."""
ASKABLE = "Object.defineProperty(Notification, 'permission', { get: () => 'default' });"
"""Headless Chromium refuses notifications by itself."""


@pytest.fixture(autouse=True)
def _providers(settings: Any, broker: Any, google_account_file: Path) -> Iterator[None]:
    settings.FCM_CREDENTIALS = str(google_account_file)
    settings.WHATSAPP_TOKEN = "token"
    settings.WHATSAPP_PHONE_NUMBER_ID = "15550001111"
    # Last: the fixtures above start without.
    settings.SETTINGS_MODULE = "notifyproject.settings.local"
    for clear in (valkey.clear, cache.clear_all, registry.clear):
        clear()
    yield
    for clear in (valkey.clear, cache.clear_all, registry.clear):
        clear()


def test_screenshots_are_taken(screen: Screen) -> None:
    now = utc_now()
    day = store_day(now=now, busy=BUSY)
    _store_trouble(now)
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
    _take(
        screen,
        "bulk_operation",
        f"{notifications}/bulkoperation/{_half_done_operation(now)}/change/",
    )


def test_texts_are_taken(screen: Screen, settings: Any) -> None:
    now = utc_now()
    settings.TWILIO_ACCOUNT_SID, settings.TWILIO_AUTH_TOKEN = f"AC{'0' * 32}", "0" * 32
    settings.SMS_COUNTRIES, settings.SMS_CURRENCY = ("PT", "GB"), "EUR"
    settings.SMS_PRICES = {"PT": Decimal("0.036"), "GB": Decimal("0.04")}
    for country, units, days in (("PT", 412, 0), ("GB", 38, 0), ("PT", 9_640, 1)):
        text = SentUnits(provider="twilio", country=country, units=units, is_asked=True)
        country_units.count_sent([text], now=now - timedelta(days=days))
    types.define_type("order_shipped", {"example_data": {"order": "1042"}}, now=now)
    version = templates.create_version(
        type_slug="order_shipped",
        parts={"default": {"sms": SMS}},
        note="",
        created_by="maria",
        now=now,
    )
    publish_version(type_slug="order_shipped", number=version.number, now=now)
    screen.sign_in()
    version_page = reverse(
        "admin:notifications_notificationtype_version", args=["order_shipped", version.number]
    )
    for name, path, part in (
        ("sms_preview", version_page, ".preview-parts"),
        ("push_preview", version_page, ".preview-phone"),
        ("sms_provider", "/admin/notifications/providerstate/", "section:has(#twilio)"),
    ):
        screen.page.set_viewport_size(SIZE)
        screen.open(path)
        screen.page.wait_for_load_state("networkidle")
        _take_part(screen.page, name, screen.page.locator(part))


def test_push_button_is_taken(demo_page: Page) -> None:
    demo_page.set_viewport_size(ViewportSize(width=720, height=960))
    demo_page.add_init_script(ASKABLE)
    demo_page.reload()
    button = demo_page.locator("notify-push-button")
    button.get_by_role("button", name="Turn on notifications").wait_for()
    _take_part(demo_page, "push_button", demo_page.locator("section", has=button))


def test_approval_is_taken(screen: Screen) -> None:
    names = recipients(40)
    client_id = registry_of_clients.create_client(name="newsletter", scopes=[], now=utc_now())
    types.define_type("marketing", {"approval": {"above": 10, "by": "approvers"}}, now=utc_now())
    broadcast_id = begun(topic("news", *names), at=utc_now(), caller=Caller(client_id=client_id))
    screen.sign_in()
    _take(screen, "approval", f"/admin/notifications/broadcast/{broadcast_id}/change/")


def test_design_is_taken(screen: Screen) -> None:
    colours = Colours(
        light=Palette(background="#fef2f2", accent="#b91c1c"), dark=DarkPalette(accent="#fca5a5")
    )
    brand = BrandRequest(name="Acme Travel", colours=colours, footer="1 High Street, Lisbon")
    content = msgspec.to_builtins(brand)
    new = Change(kind=Kind.BRAND, name="acme", content=content, replaces=None, pointer="")
    design_changes.store([new], created_by="staff:maria", now=utc_now())
    types.define_type("order_shipped", {"brand": "acme"}, now=utc_now())
    screen.sign_in()
    _take(screen, "design", reverse(DESIGN_ITEM, args=[Kind.BRAND, "acme"]))


def test_check_of_a_file_is_taken(screen: Screen) -> None:
    console_files.allow()
    screen.sign_in()
    client = signed_in(StaffUser.objects.get(username="maria"))
    wrong = (files.row(7, "joana.example.com"), files.row(8, "none"), files.row(1))
    file_id = console_files.checked(client, files.csv_of(*files.rows(17), *wrong))
    _take(screen, "file_check", console_files.url(file_id, "check/"))


def _take(screen: Screen, name: str, path: str) -> None:
    page, taken = screen.page, FOLDER / f"{name}.png"
    collection("heartbeats").update_many({}, {"$set": {"at": utc_now() - timedelta(seconds=8)}})
    page.set_viewport_size(SIZE)
    screen.open(path)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=taken, animations="disabled", caret="hide")
    assert taken.stat().st_size < MAX_BYTES, name


def _take_part(page: Page, name: str, part: Locator) -> None:
    """Take an element with a margin."""
    taken, box = FOLDER / f"{name}.png", part.bounding_box()
    assert box is not None, name
    clip = FloatRect(
        x=box["x"] - MARGIN,
        y=box["y"] - MARGIN,
        width=box["width"] + 2 * MARGIN,
        height=box["height"] + 2 * MARGIN,
    )
    page.screenshot(path=taken, clip=clip, full_page=True, animations="disabled", caret="hide")
    assert taken.stat().st_size < MAX_BYTES, name


def _store_trouble(now: datetime) -> None:
    """Pause WhatsApp, and open an incident."""
    reason = "The number moves to another account"
    provider_pauses.pause("whatsapp", by="maria", reason=reason, now=now)
    alert_rules.add_missing_rules()
    finding = Finding(
        rule_id=enabled_rules()[0].id,
        kind=AlertKind.FAILURES,
        subject="email",
        title="Many final failures: 27 mails in an hour",
        detail="Most of them: SendGrid had a problem of its own (provider error).",
    )
    incidents.record(finding, now=now - timedelta(hours=2))


def _half_done_operation(now: datetime) -> ObjectId:
    """Return a bulk retry of failed emails that is partly done."""
    maria = Staff(id=ObjectId(str(StaffUser.objects.get(username="maria").pk)), username="maria")
    found = selection.select_failures(
        channel=Channel.EMAIL, code="provider_error", since=now - timedelta(days=1)
    )
    words = (found.description[0], "Channel: Email", "Cause: Provider error", "Failed: last 24 h")
    selected = replace(found, description=words)
    new = decisions.preview(action=BulkAction.RETRY, selection=selected, by=maria, now=now)
    runner.run(new.id)
    options = StartOptions(
        included_risks=frozenset({RiskKind.SAFE}),
        per_second=PER_SECOND,
        reason="SendGrid says that it is well",
    )
    decisions.start(new.id, options=options, by=maria, now=utc_now())
    # By a clock that stands still, one second's worth is done.
    at = utc_now()
    runner.run(new.id, clock=lambda: at)
    return new.id


def test_screenshot_of_the_inbox_is_taken(site: Site) -> None:
    page = site.page
    page.set_viewport_size(ViewportSize(width=1280, height=470))
    for subject, body in INBOX_ITEMS:
        site.send(subject, body)
    page.goto(site.url)
    row = page.locator("notify-inbox li")
    row.nth(len(INBOX_ITEMS) - 1).wait_for()
    for subject, _ in INBOX_ITEMS[:2]:
        page.get_by_role("button", name=f"Mark as read: {subject}").click()
    page.get_by_role("button", name=f"Snooze: {INBOX_ITEMS[-2][0]}").click()
    page.get_by_role("button", name="Next week").wait_for()
    path = FOLDER / "inbox.png"
    page.screenshot(path=path)
    assert path.stat().st_size < MAX_BYTES
