"""The providers page: health, pause and resume, and test sends."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from delivery import circuit_breaker, provider_pauses
from delivery.circuit_breaker import ACCOUNT, RATE, CircuitReporter
from delivery.rate_limiter import RateLimiter
from devices import registration
from devices.models import Platform
from devices.registration import Registration
from domain.country_units import SentUnits
from domain.rooms import RoomKind
from domain.states import DeliveryStatus
from domain.time import utc_now
from monitoring import provider_health, rollup
from monitoring.provider_health import Health
from notifications.models import Notification
from notifications.store import country_units
from notifyproject.db.collections import collection
from providers import registry
from rooms import registry as rooms
from tests.support.accounts import declare
from tests.support.clients.console import make_staff, signed_in
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db", "broker")

URL = "/admin/notifications/providerstate/"
S = DeliveryStatus


@pytest.fixture(autouse=True)
def _two_email_providers(settings: Any, pauses_anew: None) -> None:
    settings.EMAIL_PROVIDERS = ("sendgrid", "smtp")


def text_of(client: Client) -> str:
    return " ".join(client.get(URL).content.decode().split())


def health(name: str = "sendgrid") -> provider_health.ProviderHealth:
    return next(p for p in provider_health.provider_health(now=utc_now()) if p.name == name)


def test_page_shows_attempts_and_health(console: Client) -> None:
    now = utc_now()
    factories.settled(S.SENT, at=now, created_at=now)
    factories.settled(S.FAILED, at=now, created_at=now)
    rollup.run(now=now + timedelta(seconds=1))
    provider = health()
    assert (provider.attempts, provider.failures, provider.health) == (2, 1, Health.HEALTHY)
    minute = now.replace(second=0, microsecond=0)
    assert (provider.last_success, provider.last_failure) == (minute, minute)
    assert health("smtp").last_success is None
    page = text_of(console)
    for words in ("SendGrid", "Mail server", "1 failed or unknown", "no limit", "Healthy"):
        assert words in page, words


def test_page_shows_the_kinds_of_rooms_that_there_are(console: Client) -> None:
    assert 'id="discord"' not in text_of(console)
    rooms.create(
        slug="ops",
        kind=RoomKind.DISCORD,
        name="Operations",
        target="https://discord.com/api/webhooks/223704706495545344/x",
        min_gap_seconds=1,
        now=utc_now(),
    )
    provider_pauses.pause("teams", by="maria", reason="", now=utc_now())
    page = text_of(console)
    assert [f'id="{name}"' in page for name in ("discord", "teams", "slack_webhook")] == [
        True,
        True,
        False,
    ]


def test_card_shows_what_texts_cost(
    console: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2026, 11, 29, 1, tzinfo=UTC)
    monkeypatch.setattr("console.providers.utc_now", lambda: now)
    settings.TWILIO_ACCOUNT_SID, settings.SMS_CURRENCY = "AC1", "EUR"
    settings.SMS_PRICES = {"PT": Decimal("0.036"), "GB": Decimal("0.04")}
    for provider, country, units, at in (
        ("twilio", "PT", 3, now),
        ("twilio", "GB", 10, now - timedelta(hours=2)),
        ("twilio", "PT", 100, now - timedelta(days=29)),
        ("aws_sms", "PT", 7, now),
    ):
        text = SentUnits(provider=provider, country=country, units=units, is_asked=True)
        country_units.count_sent([text], now=at)
    page = text_of(console)
    assert "<dt>Sent today (UTC)</dt><dd>3 parts, about 0.108 EUR</dd>" in page
    assert "<dt>Sent in November (UTC)</dt><dd>13 parts, about 0.508 EUR</dd>" in page
    assert page.count("Sent today") == 1, "only texts are paid for by part"
    settings.SMS_PRICES = {}
    page = text_of(console)
    assert "<dd>3 parts, price unknown</dd>" in page
    unknown = "price unknown: SMS_PRICES has none for United Kingdom, Portugal"
    assert f"<dd>13 parts, {unknown}</dd>" in page
    assert "0 EUR" not in page


def test_provider_whose_recent_attempts_fail_is_failing(console: Client) -> None:
    now = utc_now()
    for _ in range(2):
        factories.settled(S.SENT, at=now, created_at=now)
    for _ in range(3):
        factories.settled(S.FAILED, at=now, created_at=now)
    rollup.run(now=now + timedelta(seconds=1))
    provider = health()
    assert (provider.recent_attempts, provider.recent_failures, provider.health) == (
        5,
        3,
        Health.FAILING,
    )
    assert "Failing" in text_of(console)
    (later,) = (
        found
        for found in provider_health.provider_health(now=now + timedelta(minutes=15))
        if found.name == "sendgrid"
    )
    assert (later.recent_attempts, later.health) == (0, Health.HEALTHY)


def test_page_shows_open_circuit_and_reduced_rate(console: Client, settings: Any) -> None:
    settings.PROVIDER_RATES = {"sendgrid": (100.0, 10)}
    account, now = registry.get_provider("sendgrid").account, utc_now()
    RateLimiter().throttle(account, retry_after=None, now=now)
    RateLimiter().take(account, 1, rate=100.0, burst=10, now=now)
    assert health().health is Health.RATE_LIMITED
    assert health().current_rate == pytest.approx(50.0)
    assert "50.0/s now (limit 100/s)" in text_of(console)
    CircuitReporter().trip(account, now=now, retry_after=600, reason="The key is revoked.")
    assert health().health is Health.OPEN
    page = text_of(console)
    assert "Circuit open" in page
    assert "The key is revoked." in page
    assert (circuit_breaker.close(account), health().health) == (True, Health.RATE_LIMITED)


@pytest.mark.parametrize(
    ("scope", "count", "shown"),
    [
        (ACCOUNT, 3, "3 of 5 recipients refused in a row, last"),
        (ACCOUNT, 1, "1 of 5 recipients refused in a row, last"),
        (RATE, 4, "4 of 5 recipients rate-limited in a row, last"),
        ("ios", 2, "iOS: 2 of 5 recipients refused in a row, last"),
    ],
)
def test_evidence_is_shown_before_the_circuit_opens(
    console: Client, scope: str, count: int, shown: str
) -> None:
    account, now = registry.get_provider("sendgrid").account, utc_now()
    keys = [circuit_breaker.evidence_key(str(n)) for n in range(count)]
    evidence = circuit_breaker.CircuitEvidence(refused={scope: keys})
    CircuitReporter().record(account, successes=0, failures=0, now=now, evidence=evidence)
    assert health().health is Health.HEALTHY
    for path in (URL, "/admin/"):
        page = " ".join(console.get(path).content.decode().split())
        assert shown.removesuffix(", last") in page, path
    page = text_of(console)
    assert shown in page
    effect = "rate is halved" if scope == RATE else "circuit opens"
    assert f"At 5, the {effect}." in page
    accepted = circuit_breaker.CircuitEvidence(accepted=[ACCOUNT, RATE, "ios"])
    CircuitReporter().record(account, successes=1, failures=0, now=now, evidence=accepted)
    assert "in a row" not in text_of(console)


def test_evidence_of_a_platform_names_it(console: Client) -> None:
    account, now = registry.get_provider("sendgrid").account, utc_now()
    evidence = circuit_breaker.CircuitEvidence(
        refused={ACCOUNT: [circuit_breaker.evidence_key("a")]}
    )
    name = f"{account}/android"
    CircuitReporter().record(name, successes=0, failures=0, now=now, evidence=evidence)
    assert "Android: 1 of 5 recipients refused in a row" in text_of(console)
    [state] = [s for s in circuit_breaker.circuit_states(now=now) or [] if s.scope]
    assert [(refusal.scope, refusal.recipients) for refusal in state.refusals] == [(ACCOUNT, 1)]
    later = now + circuit_breaker.EVIDENCE_TTL
    old = [s.refusals for s in circuit_breaker.circuit_states(now=later) or [] if s.scope]
    assert old == [[]]


def test_pause_and_resume_are_audited(console: Client) -> None:
    page = console.post(f"{URL}sendgrid/pause/", {"reason": "A bill is due."}, follow=True)
    assert "SendGrid paused" in page.content.decode()
    assert "A bill is due." in text_of(console)
    assert health().health is Health.PAUSED
    console.post(f"{URL}sendgrid/resume/")
    assert provider_pauses.pauses() == {}
    entries = [entry.get_change_message() for entry in LogEntry.objects.order_by("id")]
    assert entries == ["Paused: A bill is due.", "Resumed."]


def test_open_circuit_is_closed_manually(console: Client) -> None:
    account = registry.get_provider("sendgrid").account
    CircuitReporter().trip(account, now=utc_now(), retry_after=600, reason="Out of quota.")
    assert "Close circuit" in text_of(console)
    asked = console.post(f"{URL}sendgrid/close/", {"circuit": account})
    assert "Close the circuit of SendGrid?" in asked.content.decode()
    assert "opens again after 20 failures in 1 min" in asked.content.decode()
    console.post(f"{URL}sendgrid/close/", {"circuit": account, "confirmed": "yes"})
    assert health().health is Health.HEALTHY
    assert "Close circuit" not in text_of(console)
    (entry,) = LogEntry.objects.all()
    assert entry.get_change_message() == f"Closed the circuit {account}."


def test_unchanged_provider_is_not_audited(console: Client) -> None:
    CircuitReporter().trip("fcm:1", now=utc_now(), retry_after=600)
    console.post(f"{URL}sendgrid/close/", {"circuit": "fcm:1"})
    console.post(f"{URL}sendgrid/resume/")
    console.post(f"{URL}nobody/pause/", {"reason": "x"})
    console.post(f"{URL}sendgrid/test/", {"address": "no address"})
    assert LogEntry.objects.count() == 0
    assert Notification.objects.count() == 0


def test_test_send_is_an_ordinary_notification(console: Client) -> None:
    page = console.post(f"{URL}smtp/test/", {"address": "ops@example.com"}, follow=True)
    assert "Test sent" in page.content.decode()
    (notification,) = Notification.objects.all()
    assert (notification.recipient.email, notification.channels) == ("ops@example.com", ["email"])
    assert not notification.is_test
    (entry,) = LogEntry.objects.all()
    assert str(notification.pk) in entry.get_change_message()
    assert "ops@example.com" not in f"{entry.object_repr}{entry.get_change_message()}"


def test_operation_requires_its_own_permission(db: None) -> None:
    viewer = signed_in(make_staff("eva", "notifications.view_providerstate"))
    page = viewer.get(URL)
    assert page.status_code == 200
    assert "SendGrid" in page.content.decode()
    for operation in ("pause", "resume", "close", "test"):
        assert f"/{operation}/" not in page.content.decode()
        assert viewer.post(f"{URL}sendgrid/{operation}/").status_code == 403


@pytest.mark.usefixtures("fcm")
def test_push_test_offers_devices_and_takes_a_user_id(console: Client) -> None:
    now = utc_now()
    for token in ("old", "new"):
        device = Registration(
            user_id="ada", token=token, platform=Platform.IOS, device_model=f"Phone {token}"
        )
        newest = registration.register(device, now=now)["_id"]
        now += timedelta(seconds=1)
    version = "/admin/notifications/notificationtype/order_shipped/templates/0/"
    offered = f'<option value="{newest}">Phone new, ada</option>'
    for path in (URL, version):
        assert offered in console.get(path).content.decode()
    for entered in ("ada", newest, f"  {newest} "):
        sent_by = {"channel": "push", "address": entered}
        console.post(f"{version}try/", sent_by)
        sent = collection("notifications").find_one(sort=[("_id", -1)])
        assert sent is not None
        assert sent["recipient"]["device_ids"] == [newest], entered


def test_each_account_has_a_card_a_pause_and_a_webhook(console: Client, settings: Any) -> None:
    settings.PUBLIC_URL = "https://notify.example.com"
    declared = {
        f"PROVIDER_{name}_{setting}": value
        for name in ("EU", "US", "OLD")
        for setting, value in (("KIND", "sendgrid"), ("API_KEY", f"SG.key-of-{name}"))
    }
    declare(settings, **declared, EMAIL_PROVIDER="eu,us", PROVIDER_MAX_PER_SECOND="us:7")
    console.post(f"{URL}us/pause/", {"reason": "Region down."})
    page = text_of(console)
    for words in (
        "eu (SendGrid)",
        "us (SendGrid)",
        "https://notify.example.com/webhooks/sendgrid/eu",
        "7/s",
        "Region down.",
    ):
        assert words in page, words
    assert {health(name).health for name in ("eu", "us")} == {Health.HEALTHY, Health.PAUSED}
    assert health("eu").account != health("us").account
    assert 'id="old"' not in page
    assert (LogEntry.objects.last() or LogEntry()).object_repr == "us (SendGrid)"


def test_open_circuit_of_an_account_is_its_own(console: Client, settings: Any) -> None:
    declared = {
        f"PROVIDER_{name}_{setting}": value
        for name in ("A", "B")
        for setting, value in (("KIND", "smtp"), ("HOST", "mail.example.com"))
    }
    declare(settings, **declared, EMAIL_PROVIDER="a,b")
    account = registry.get_provider("b").account
    CircuitReporter().trip(account, now=utc_now(), retry_after=600, reason="Over quota.")
    assert (health("a").health, health("b").health) == (Health.HEALTHY, Health.OPEN)
    console.post(f"{URL}b/close/", {"circuit": account, "confirmed": "yes"})
    assert health("b").health is Health.HEALTHY
