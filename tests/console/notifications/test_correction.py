"""Correcting an address and resending, lifting a suppression, and the action that is suggested."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from domain.channels import Channel
from domain.content import Content
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.store import leases
from notifyproject.db.collections import collection
from recipients import registration
from tests.support.clients.console import make_staff, signed_in
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST = "/admin/notifications/notification/"
ADA, HOME = "ada@example.com", "ada@home.example"
S = DeliveryStatus


def failed(**fields: Any) -> Any:
    now = utc_now()
    return factories.settled(S.FAILED, at=now, created_at=now, **fields)


def bounced(**fields: Any) -> Any:
    """Store a notification whose email bounced, and suppress the address."""
    now = utc_now()
    begun = factories.started(at=now, created_at=now, **fields)
    settlement = factories.settlement(begun, S.FAILED, at=now, code=FailureCode.BOUNCED)
    leases.settle([settlement], now=now)
    factories.suppress()
    return factories.read(begun.notification_id)


def url(document: Any, operation: str) -> str:
    return f"{LIST}{document['_id']}/{operation}/"


def page(client: Client, document: Any) -> str:
    return client.get(url(document, "change")).content.decode()


def ask(client: Client, document: Any, address: str = HOME) -> str:
    form = {"channel": "email", "address": address}
    return client.post(url(document, "correct"), form).content.decode()


def correct(client: Client, document: Any, **form: str) -> str:
    known = {"channel": "email", "address": HOME, "confirmed": "yes"}
    return client.post(url(document, "correct"), known | form, follow=True).content.decode()


def lift(client: Client, document: Any, reason: str) -> str:
    form = {"reason": reason, "confirmed": "yes"}
    return client.post(url(document, "lift"), form, follow=True).content.decode()


def resends_of(document: Any) -> list[Any]:
    return list(collection("notifications").find({"resent_from": document["_id"]}))


def audit(document: Any) -> list[str]:
    entries = LogEntry.objects.filter(object_id=str(document["_id"])).order_by("id")
    return [entry.change_message for entry in entries]


def register(email: str) -> None:
    profile = registration.RecipientProfile(user_id="ada", email=email)
    registration.register(profile, now=utc_now())


def registered_email() -> str:
    stored = registration.get("ada")
    assert stored is not None
    return str(stored["email"])


def test_corrected_address_is_shown_with_its_risk_before_the_resend(console: Client) -> None:
    document = bounced()
    asked = ask(console, document, f" {HOME} ")
    assert "Correct the address and resend this notification?" in asked
    assert f'name="address" value="{HOME}"' in asked
    assert "Resend: safe" in asked
    assert "It goes to another address than the one that failed." in asked
    assert resends_of(document) == []
    factories.suppress(HOME)
    assert "Resend: suppressed" in ask(console, document)


def test_correction_resends_to_the_new_address_alone_and_is_audited(console: Client) -> None:
    document = bounced(channels=(Channel.EMAIL, Channel.IN_APP))
    text = correct(console, document)
    (resent,) = resends_of(document)
    assert (resent["recipient"]["email"], resent["channels"]) == (HOME, ["email"])
    # It leads to the page of the copy.
    assert "1 notification resent to the corrected address." in text
    assert f'Resent from <a class="text-link id" href="{url(document, "change")}"' in text
    assert audit(document) == [f"Corrected the email address and resent as {resent['_id']}."]
    assert audit(resent) == [f"Resent from {document['_id']}."]
    assert factories.read(document["_id"])["recipient"]["email"] == ADA


@pytest.mark.parametrize("is_chosen", [True, False])
def test_corrected_address_replaces_the_failed_one_in_the_profile_on_request(
    console: Client, is_chosen: bool
) -> None:
    document = bounced()
    register(ADA)
    assert "update_profile" in ask(console, document)
    correct(console, document, **({"update_profile": "yes"} if is_chosen else {}))
    assert registered_email() == (HOME if is_chosen else ADA)
    assert LogEntry.objects.filter(object_id="ada").count() == is_chosen
    assert all(HOME not in entry.change_message for entry in LogEntry.objects.all())


def test_another_address_in_the_profile_is_not_replaced(console: Client) -> None:
    document = bounced()
    register("ada@new.example")
    assert "update_profile" not in ask(console, document)
    correct(console, document, update_profile="yes")
    assert registered_email() == "ada@new.example"


@each_case(
    "form, problem",
    [
        ({"address": "ada"}, "Expected one address"),
        ({"channel": "whatsapp", "address": "912"}, "Expected a number in E.164 form"),
        ({"channel": "push"}, "select a channel to correct"),
        ({"channel": "whatsapp", "address": "+351912345679"}, "Its address can&#x27;t be"),
        ({"address": ADA}, "This is the address that failed."),
    ],
)
def test_invalid_correction_is_refused(console: Client, form: dict[str, str], problem: str) -> None:
    document = bounced()
    for confirmed in ("", "yes"):
        assert problem in correct(console, document, **form, confirmed=confirmed)
    assert resends_of(document) == []


def test_sensitive_content_is_not_sent_to_another_address(console: Client) -> None:
    document = bounced(content=Content(subject="Your code", body="Use ***", is_masked=True))
    assert "correct/" not in page(console, document)
    assert "or it is sensitive." in correct(console, document)
    assert resends_of(document) == []


@each_case("permission", ["resend_notification", "correct_address"])
def test_correction_requires_both_permissions(permission: str) -> None:
    document = bounced()
    permissions = ("notifications.view_notification", f"notifications.{permission}")
    client = signed_in(make_staff(permission, *permissions))
    assert "correct/" not in page(client, document)
    form = {"channel": "email", "address": HOME, "confirmed": "yes"}
    assert client.post(url(document, "correct"), form).status_code == 403
    assert resends_of(document) == []


def test_lifting_a_suppression_requires_a_reason_which_is_audited(console: Client) -> None:
    document = bounced()
    assert "1 skipped: Enter the reason" in lift(console, document, " ")
    assert collection("suppressions").count_documents({}) == 1
    assert "1 notification resent." in lift(console, document, "Mailbox works again")
    (resent,) = resends_of(document)
    suppression = f"Lifted to resend {document['_id']}: Mailbox works again"
    assert LogEntry.objects.filter(change_message=suppression).count() == 1
    assert audit(document) == [f"Lifted the suppression and resent as {resent['_id']}."]


def test_suppression_stays_if_the_notification_cannot_be_resent(console: Client) -> None:
    document = bounced()
    removed = {"$set": {"content_removed_at": utc_now()}}
    collection("notifications").update_one({"_id": document["_id"]}, removed)
    assert "1 skipped: Content was removed" in lift(console, document, "Mailbox works again")
    assert collection("suppressions").count_documents({}) == 1


SUGGESTED = re.compile(r'button-primary"[^>]*>([^<]+)</button>')


def sent() -> Any:
    now = utc_now()
    return factories.settled(S.SENT, at=now, created_at=now)


@each_case(
    "make, expected",
    [(failed, ["Retry failed channels"]), (bounced, ["Correct and resend"]), (sent, [])],
)
def test_page_suggests_the_action_that_helps(
    console: Client, make: Callable[[], Any], expected: list[str]
) -> None:
    assert SUGGESTED.findall(page(console, make())) == expected


def test_correction_is_offered_only_after_a_failure_of_the_address(console: Client) -> None:
    assert "correct/" in page(console, bounced())
    assert "correct/" not in page(console, failed())


def test_page_suggests_nothing_once_a_resend_is_under_way(console: Client) -> None:
    document = bounced()
    correct(console, document)
    (resent,) = resends_of(document)
    text = page(console, document)
    assert SUGGESTED.findall(text) == []
    assert "Next step" not in text
    assert re.search(rf"Resent as <a[^>]*>{resent['_id']}</a>", text)
