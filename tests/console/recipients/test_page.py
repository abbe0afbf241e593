"""The page of one recipient, and the operations: audit, and confirmation by typing."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from access.clients import inbox_tokens, registry
from access.models import Scope
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifyproject.db.collections import collection
from recipients.models import SuppressionReason
from tests.support.clients.console import make_staff, register_ada, signed_in
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

ADA = "ada@example.com"
RECIPIENT = "/admin/recipients/recipient/ada/"
VIEW = ("recipients.view_recipient", "notifications.view_notification")


@pytest.fixture
def ada() -> Any:
    """Store a recipient with a device and a suppression; return a failed notification."""
    now = utc_now()
    muted = {"marketing": {"muted": True}, "alert": {"muted_channels": ["push"]}}
    register_ada(preferences=muted)
    factories.suppress(
        ADA, reason=SuppressionReason.UNSUBSCRIBED, source="one-click", marketing_only=True, at=now
    )
    factories.device("token-that-nobody-sees", device_model="Pixel 9")
    return factories.settled(DeliveryStatus.FAILED, at=now, created_at=now, entity_id="order-7")


def page(client: Client, path: str = "change/") -> str:
    response = client.get(f"{RECIPIENT}{path}")
    assert response.status_code == 200
    return response.content.decode()


def audit() -> list[str]:
    return [entry.change_message for entry in LogEntry.objects.order_by("id")]


def test_page_shows_all_data_of_a_recipient(ada: Any, console: Client) -> None:
    collection("api_clients").insert_one(
        {"name": "Shop", "scopes": ["inbox:issue"], "keys": [], "is_active": True}
    )
    shown = page(console)
    for words in (
        "Ada",
        ADA,
        "+351912345678",
        "order-7",
        "Failed",
        "Payment confirmed",
        "Pixel 9",
        "Android",
        "Unsubscribed",
        "Marketing",
        "Muted",
        "Push muted",
        "Clients that can issue inbox tokens (15 min each): Shop",
        "All notifications",
        f"/admin/notifications/notification/{ada['_id']}/change/",
    ):
        assert words in shown, words


def test_unregistered_recipient_has_a_page(console: Client) -> None:
    factories.accepted(created_at=utc_now(), user_id="bob_5")
    shown = console.get("/admin/recipients/recipient/bob_5F5/change/").content.decode()
    assert "Not registered" in shown
    assert "Payment confirmed" in shown
    gone = console.get("/admin/recipients/recipient/eve/change/", follow=True)
    assert "Recipient not found." in gone.content.decode()


def test_page_is_masked_and_without_actions_for_support(ada: Any) -> None:
    support = signed_in(make_staff("rui", *VIEW))
    shown = page(support)
    assert ADA not in shown
    assert "a***@example.com" in shown
    for words in ("Reveal addresses", "Revoke inbox tokens", "Export", "Erase"):
        assert words not in shown, words


def test_page_hides_notifications_without_their_permission(ada: Any) -> None:
    client = signed_in(make_staff("rui", "recipients.view_recipient"))
    assert "order-7" not in page(client)


def test_revealed_addresses_are_shown_once_and_audited(ada: Any) -> None:
    operator = signed_in(make_staff("rui", *VIEW, "notifications.reveal_addresses"))
    assert ADA not in page(operator)
    assert ADA in operator.post(f"{RECIPIENT}reveal/").content.decode()
    assert audit() == ["Revealed addresses."]
    assert ADA not in page(operator)


def test_signing_out_revokes_all_inbox_tokens(ada: Any, console: Client) -> None:
    now = utc_now()
    client = registry.create_client(name="Shop", scopes=[Scope.INBOX_ISSUE], now=now)
    token = inbox_tokens.issue(client_id=client, user_id="ada", now=now)
    assert inbox_tokens.authenticate(token.text, now=now) is not None
    console.post(f"{RECIPIENT}sign-out/")
    assert inbox_tokens.authenticate(token.text, now=now) is None
    assert audit() == ["Revoked inbox tokens."]


@each_case("operation", ["export", "erase"])
@each_case("typed", ["", "bob", "ADA"])
def test_export_and_erasure_require_the_typed_id(
    ada: Any, console: Client, operation: str, typed: str
) -> None:
    response = console.post(f"{RECIPIENT}{operation}/", {"typed": typed}, follow=True)
    assert "No change: enter the user ID to confirm." in response.content.decode()
    assert collection("recipients").find_one({"_id": "ada"}) is not None
    assert audit() == []


def test_export_has_all_data_without_secrets(ada: Any, console: Client) -> None:
    now = utc_now()
    for n in range(120):
        factories.accepted(created_at=now - timedelta(minutes=n + 1))
    factories.accepted(created_at=now, type="mfa_code", data={"code": "774411"})
    response = console.post(f"{RECIPIENT}export/", {"typed": "ada"})
    assert response["Content-Disposition"] == 'attachment; filename="recipient.json"'
    text = b"".join(response.streaming_content).decode()
    exported = json.loads(text)
    assert exported["person"]["email"] == ADA
    assert exported["suppressions"][0]["reason"] == "unsubscribed"
    assert len(exported["notifications"]) == 122
    failed = next(n for n in exported["notifications"] if n["_id"] == str(ada["_id"]))
    assert [attempt["status"] for attempt in failed["attempts"]] == ["failed"]
    assert "774411" not in text
    assert "token-that-nobody-sees" not in text
    assert audit() == ["Exported."]


def test_recipient_is_erased(ada: Any, console: Client) -> None:
    response = console.post(f"{RECIPIENT}erase/", {"typed": "ada"}, follow=True)
    assert "ada erased, with 1 notification and 1 device." in response.content.decode()
    assert collection("recipients").find_one({"_id": "ada"}) is None
    assert audit() == ["Erased, with 1 notification and 1 device."]
    assert ADA not in console.get("/admin/admin/logentry/").content.decode()


def test_incomplete_erasure_continues_on_request(
    ada: Any, console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privacy.erasure.MAX_SECONDS", -1.0)
    first = console.post(f"{RECIPIENT}erase/", {"typed": "ada"}, follow=True).content.decode()
    assert "Erase again to continue." in first
    monkeypatch.undo()
    again = console.post(f"{RECIPIENT}erase/", {"typed": "ada"}, follow=True).content.decode()
    assert "ada erased" in again
