"""The page of the signed-in user's own alerts."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.test import Client

from access.models import StaffUser
from delivery import worker
from delivery.runtime import SendingRuntime
from domain.time import utc_now
from monitoring import alerts, incidents
from monitoring.incidents import Finding
from monitoring.models import AlertKind
from tests.support.clients.console import make_staff, signed_in

pytestmark = pytest.mark.usefixtures("db", "broker")

URL, ALL_READ = "/admin/alerts/", "/admin/alerts/read/"


def notify(title: str = "SendGrid: circuit open") -> Mapping[str, Any]:
    """Open an incident, notify the operators of it, and send what is due."""
    now = utc_now()
    finding = Finding(
        rule_id=ObjectId(),
        kind=AlertKind.WORK_OVERDUE,
        subject="all",
        title=title,
        detail="The provider <b>fails</b>.",
    )
    incident = incidents.record(finding, now=now)
    assert incident is not None
    alerts.notify_operators(incident, now=now)
    worker.run_inline(SendingRuntime(), clock=lambda: now + timedelta(seconds=1))
    return incident


def text_of(client: Client, url: str = URL) -> str:
    return " ".join(client.get(url).content.decode().split())


@pytest.fixture
def olga(db: None) -> Client:
    """An administrator without an address, who gets alerts in-app only."""
    user = make_staff("olga", superuser=True)
    StaffUser.objects.filter(pk=user.pk).update(email="")
    return signed_in(StaffUser.objects.get(pk=user.pk))


def test_operator_without_mail_reads_alerts_in_the_console(olga: Client) -> None:
    assert "No alerts. You are notified here" in text_of(olga)
    notify()
    page = text_of(olga)
    for words in ("1 unread", "Alert: SendGrid: circuit open", "The provider &lt;b&gt;fails"):
        assert words in page, words
    assert ">New<" in page
    assert olga.post(ALL_READ).status_code == 302
    page = text_of(olga)
    assert "No unread" in page
    assert "add an email address" in page
    assert ">New<" not in page


def test_each_sees_their_own_alerts_alone(olga: Client) -> None:
    notify()
    viewer = signed_in(make_staff("vera", "analytics.view_incident"))
    page = text_of(viewer)
    assert "SendGrid" not in page
    assert "Operators and administrators are notified." in page
    viewer.post(ALL_READ)
    assert "1 unread" in text_of(olga)


def test_page_says_who_else_is_notified(olga: Client, settings: Any) -> None:
    settings.ALERT_RECIPIENTS = ["ops@example.com"]
    assert "you aren't among them" in text_of(olga)
    settings.ALERT_RECIPIENTS = ["staff:olga"]
    assert "You are notified here" in text_of(olga)


def test_page_names_the_address_to_which_alerts_go(settings: Any) -> None:
    pia = signed_in(make_staff("pia", superuser=True))
    assert "also sent by email to pia@example.com" in text_of(pia)
    # Its email comes from a recipient's profile, which nobody has registered.
    settings.ALERT_RECIPIENTS = ["staff:pia"]
    assert "by email to" not in text_of(pia)


def test_page_requires_the_permission_for_incidents(db: None) -> None:
    nobody = signed_in(make_staff("nobody"))
    assert nobody.get(URL).status_code == 403
    assert nobody.post(ALL_READ).status_code == 403
    assert "My alerts" not in nobody.get("/admin/").content.decode()
    assert Client().get(URL).status_code == 302


def test_alerts_are_read_page_by_page(olga: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.own_alerts.PAGE_LENGTH", 1)
    for title in ("First", "Second"):
        incident = notify(title)
        incidents.resolve_others((), unjudged=(), now=utc_now() + timedelta(minutes=5))
        assert incident["is_open"]
    context = olga.get(URL).context
    assert [alert["subject"] for alert in context["alerts"]] == ["Alert: Second"]
    older = olga.get(URL, {"cursor": context["older"]})
    assert [alert["subject"] for alert in older.context["alerts"]] == ["Alert: First"]
    assert olga.get(URL, {"cursor": "x"}).status_code == 302
    assert olga.get(ALL_READ)["Location"] == URL
