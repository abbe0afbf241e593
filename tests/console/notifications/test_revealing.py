"""Verdicts on a notification's page, and its addresses: masked, or shown once and on record."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from access.clients import registry
from domain.states import Channel, DeliveryStatus
from domain.time import utc_now
from recipients.models import SuppressionReason
from tests.support.clients.console import make_staff, signed_in
from tests.support.factories import notifications as factories
from django.test import Client

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST = "/admin/notifications/notification/"
LOOK = "notifications.view_notification"
REVEAL = "notifications.reveal_addresses"
ADA = "ada@example.com"
S = DeliveryStatus


@pytest.fixture
def document() -> Any:
    now = utc_now()
    return factories.settled(S.FAILED, at=now, created_at=now)


def page(client: Client, document: Any) -> str:
    return client.get(f"{LIST}{document['_id']}/change/").content.decode()


def test_addresses_are_shown_once_and_on_record(document: Any) -> None:
    operator = signed_in(make_staff("rui", LOOK, REVEAL))
    before = page(operator, document)
    assert ADA not in before
    assert "Show addresses" in before
    revealed = operator.post(f"{LIST}{document['_id']}/reveal/").content.decode()
    assert ADA in revealed
    assert "Shown this once, and on record." in revealed
    (entry,) = LogEntry.objects.all()
    assert (entry.user.username, entry.change_message) == ("rui", "Had its addresses shown.")
    assert ADA not in entry.object_repr
    after = page(operator, document)
    assert ADA not in after
    assert "Had its addresses shown." in after


@pytest.mark.parametrize("permissions", [(LOOK,), (REVEAL,)])
def test_both_permissions_are_needed(document: Any, permissions: tuple[str, ...]) -> None:
    client = signed_in(make_staff("rui", *permissions))
    assert client.post(f"{LIST}{document['_id']}/reveal/").status_code == 403
    assert not LogEntry.objects.exists()


def test_who_sees_addresses_has_nothing_to_be_shown(document: Any, console: Client) -> None:
    assert "Show addresses" not in page(console, document)


def test_the_verdict_stands_on_the_page_before_anybody_clicks(
    document: Any, console: Client
) -> None:
    shown = page(console, document)
    assert "Resend: safe" in shown
    assert "The provider had a problem of its own and sent nothing." in shown
    factories.hold_back(ADA, reason=SuppressionReason.COMPLAINT, at=utc_now())
    shown = page(console, document)
    assert "Resend: suppressed" in shown
    assert "The address is suppressed: complaint." in shown


def test_the_verdict_stands_in_the_list_of_failures_too(document: Any, console: Client) -> None:
    shown = console.get("/admin/notifications/failednotification/").content.decode()
    assert 'title="The provider had a problem of its own and sent nothing.">safe' in shown


def test_what_went_out_has_no_verdict_on_its_page(console: Client) -> None:
    now = utc_now()
    sent = factories.settled(
        S.SENT, at=now, created_at=now, channels=(Channel.EMAIL, Channel.IN_APP)
    )
    assert "Resend: " not in page(console, sent)


def test_the_audit_log_calls_an_app_by_its_name(console: Client) -> None:
    app = registry.create_client(name="Shop", scopes=[], now=utc_now())
    LogEntry.objects.create(
        user_id=app, object_repr="ada", action_flag=2, change_message="Exported."
    )
    shown = console.get("/admin/admin/logentry/").content.decode()
    assert "App Shop" in shown
    narrowed = console.get(f"/admin/admin/logentry/?user={app}").context["cl"].result_list
    assert [row.object_repr for row in narrowed] == ["ada"]
