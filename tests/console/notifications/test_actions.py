"""Retry, resend, and cancel: confirmation, single execution, audit, and permissions."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry
from django.test import Client

from console.failures import FailedNotificationAdmin
from domain.channels import Channel
from domain.content import Recipient
from domain.states import BulkAction, DeliveryStatus
from domain.time import utc_now
from monitoring import failure_groups
from notifications.actions.actions import Staff, act_on_each
from notifications.store import leases, removal
from notifyproject.db.collections import collection
from recipients.models import SuppressionReason
from tests.support.clients.console import make_staff, signed_in
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST = "/admin/notifications/notification/"
FAILED = "/admin/notifications/failednotification/"
BUTTONS = {
    "retry": ">Retry failed channels</button>",
    "resend": ">Resend</button>",
    "cancel": ">Cancel notification</button>",
}
OPERATIONS = tuple(BUTTONS)
S = DeliveryStatus


def failed(**fields: Any) -> Any:
    now = utc_now()
    return factories.settled(S.FAILED, at=now, created_at=now, **fields)


def url(document: Any, operation: str) -> str:
    return f"{LIST}{document['_id']}/{operation}/"


def do(client: Client, document: Any, operation: str, **fields: Any) -> str:
    response = client.post(url(document, operation), {"confirmed": "yes", **fields}, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def do_on(
    client: Client, documents: list[Any], operation: str, path: str = LIST, **more: Any
) -> str:
    ids = [str(document["_id"]) for document in documents]
    action = {"action": f"{operation}_selected", "_selected_action": ids}
    response = client.post(path, action | {"confirmed": "yes"} | more, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def audit(document: Any) -> list[str]:
    entries = LogEntry.objects.filter(object_id=str(document["_id"])).order_by("id")
    return [entry.change_message for entry in entries]


@each_case("confirmed", ["yes", ""])
def test_action_on_the_failed_list_reads_no_rows(
    console: Client, monkeypatch: pytest.MonkeyPatch, confirmed: str
) -> None:
    document = failed()
    monkeypatch.setattr(FailedNotificationAdmin, "prepare_rows", None)
    monkeypatch.setattr(failure_groups, "group_failures", None)
    action = {"action": "retry_selected", "_selected_action": str(document["_id"])}
    response = console.post(FAILED, action | {"confirmed": confirmed})
    assert response.status_code == (302 if confirmed else 200)


def test_action_without_permission_shows_the_list(db: None) -> None:
    document = failed()
    viewer = signed_in(make_staff("viewer", "notifications.view_notification"))
    action = {"action": "retry_selected", "_selected_action": str(document["_id"])}
    response = viewer.post(FAILED, action | {"confirmed": "yes"})
    assert response.status_code == 200
    assert str(document["_id"]) in response.content.decode()


def resends_of(document: Any) -> list[Any]:
    found = collection("notifications").find({"resent_from": document["_id"]})
    return sorted(found, key=lambda item: item["_id"])


@each_case("operation", OPERATIONS)
def test_operation_requires_its_own_permission(db: None, operation: str) -> None:
    document = failed()
    others = [f"notifications.{o}_notification" for o in OPERATIONS if o != operation]
    client = signed_in(make_staff(operation, "notifications.view_notification", *others))
    assert client.post(url(document, operation), {"confirmed": "yes"}).status_code == 403
    do_on(client, [document], operation, channels="email")
    assert factories.read(document["_id"]) == document
    assert resends_of(document) == []


@each_case("operation", OPERATIONS)
def test_operation_requires_the_view_permission(db: None, operation: str) -> None:
    document = failed()
    client = signed_in(make_staff(operation, f"notifications.{operation}_notification"))
    assert client.post(url(document, operation), {"confirmed": "yes"}).status_code == 403


@each_case("operation", OPERATIONS)
def test_operation_requires_confirmation(console: Client, operation: str) -> None:
    document = failed()
    text = console.post(url(document, operation), {}).content.decode()
    assert BUTTONS[operation] in text
    assert "Email failed once: provider error (5xx)." in text
    assert factories.read(document["_id"]) == document
    action = {"action": f"{operation}_selected", "_selected_action": str(document["_id"])}
    assert BUTTONS[operation] in console.post(LIST, action).content.decode()
    assert factories.read(document["_id"]) == document


def test_confirmation_shows_what_a_text_costs(console: Client, settings: Any) -> None:
    settings.SMS_PRICES, settings.SMS_CURRENCY = {"PT": Decimal("0.036")}, "EUR"
    known, unknown, abroad = (
        factories.settled(
            S.SENT, at=utc_now(), channel=Channel("sms"), recipient=Recipient(phone=phone)
        )
        for phone in ("+351912345678", "+351912345679", "+447700900123")
    )
    collection("delivery_attempts").update_one(
        {"notification_id": known["_id"]}, {"$set": {"units": 3}}
    )
    assert "Costs about 0.108 EUR." in console.post(url(known, "resend"), {}).content.decode()
    assert "Costs about 0.036 EUR a part." in (
        console.post(url(unknown, "resend"), {}).content.decode()
    )
    assert "Price unknown: SMS_PRICES has none for United Kingdom." in (
        console.post(url(abroad, "resend"), {}).content.decode()
    )


def test_confirmation_shows_the_resend_risk(console: Client) -> None:
    safe = failed()
    now = utc_now()
    started = factories.started(at=now, created_at=now)
    leases.settle([factories.settlement(started, S.UNKNOWN, at=now)], now=now)
    unknown = factories.read(started.notification_id)
    assert "Resend: safe" in console.post(url(safe, "resend"), {}).content.decode()
    assert "Resend: may duplicate" in console.post(url(unknown, "resend"), {}).content.decode()


@each_case("operation", OPERATIONS)
def test_unknown_notification_is_reported(console: Client, operation: str) -> None:
    for identifier in (ObjectId(), "nonsense"):
        assert "Notification not found." in do(console, {"_id": identifier}, operation)


def test_retry_reopens_the_failed_channel_and_is_audited(console: Client) -> None:
    document = failed()
    text = do(console, document, "retry")
    assert "1 notification requeued." in text
    after = factories.read(document["_id"])
    assert (after["status"], factories.delivery(after)["status"]) == ("retrying", "pending")
    assert "failed_at" not in after
    assert audit(document) == ["Retried on all channels."]
    (entry,) = LogEntry.objects.all()
    name = f"payment_confirmed {document['_id']}"
    assert (entry.user.username, entry.object_repr) == ("maria", name)
    # The page says who did it.
    assert "Retried on all channels." in text
    assert "maria" in text


def test_retry_covers_a_suppressed_channel_that_reaches_the_recipient_by_now(
    console: Client,
) -> None:
    factories.suppress()
    document = failed(channels=(Channel.EMAIL,), user_id="ada")
    suppressed = {"delivery.0.status": "suppressed", "delivery.0.failure_code": "suppressed"}
    its_id = {"_id": document["_id"]}
    collection("notifications").update_one(its_id, {"$set": suppressed | {"status": "suppressed"}})
    assert "Retry failed channels" not in page(console, document)
    assert "Email" not in console.post(url(document, "retry")).content.decode().split("<h1>")[-1]
    collection("suppressions").delete_many({})
    assert "Retry failed channels" in page(console, document)
    assert "The suppression was lifted." in console.post(url(document, "retry")).content.decode()
    assert "1 notification requeued." in do(console, document, "retry")
    assert factories.delivery(factories.read(document["_id"]))["status"] == "pending"


LIFT = "Lift suppression and resend"
RETRY_BUTTON = re.compile(
    r"<button[^>]*?(disabled title=\"[^\"]*\")?>Retry failed channels</button>"
)


def page(client: Client, document: Any) -> str:
    return client.get(f"{LIST}{document['_id']}/change/").content.decode()


@pytest.mark.parametrize(
    ("suppressed", "is_disabled", "is_liftable"),
    [
        (None, False, False),
        ({"reason": SuppressionReason.HARD_BOUNCE}, True, True),
        ({"reason": SuppressionReason.MANUAL}, True, True),
        ({"reason": SuppressionReason.COMPLAINT}, True, False),
        ({"reason": SuppressionReason.UNSUBSCRIBED, "marketing_only": True}, False, False),
    ],
    ids=["not suppressed", "bounced", "by staff", "complained", "for marketing"],
)
def test_retry_to_a_suppressed_address_is_disabled_beside_lifting_it(
    console: Client, suppressed: dict[str, Any] | None, is_disabled: bool, is_liftable: bool
) -> None:
    document = failed()
    if suppressed is not None:
        factories.suppress(**suppressed)
    text = page(console, document)
    found = RETRY_BUTTON.search(text)
    assert found is not None
    assert bool(found.group(1)) is is_disabled
    assert (LIFT in text) is is_liftable
    if is_disabled:
        assert f"The address is suppressed: {suppressed['reason'].replace('_', ' ')}." in text
        assert "1 skipped: The address is suppressed" in do(console, document, "retry")
        assert factories.read(document["_id"]) == document


def test_lifting_a_suppression_resends_its_channel_and_is_audited(console: Client) -> None:
    document = failed(channels=(Channel.EMAIL, Channel.IN_APP))
    suppression = factories.suppress()
    asked = console.post(url(document, "lift"), {}).content.decode()
    assert f"{LIFT} this notification?" in asked
    assert collection("suppressions").count_documents({}) == 1
    assert "1 notification resent." in do(console, document, "lift", reason="It works again")
    assert collection("suppressions").count_documents({}) == 0
    (resent,) = resends_of(document)
    assert (resent["channels"], resent["status"]) == (["email"], "queued")
    (lifted,) = LogEntry.objects.filter(object_id=suppression["_id"])
    assert lifted.change_message == f"Lifted to resend {document['_id']}: It works again"
    assert "ada@example.com" not in lifted.object_repr


@each_case("permission", ["notifications.resend_notification", "recipients.delete_suppression"])
def test_lifting_and_resending_requires_both_permissions(permission: str) -> None:
    document = failed()
    collection("suppressions").delete_many({})
    factories.suppress()
    client = signed_in(make_staff(permission, "notifications.view_notification", permission))
    assert LIFT not in page(client, document)
    assert client.post(url(document, "lift"), {"confirmed": "yes"}).status_code == 403
    assert collection("suppressions").count_documents({}) == 1


def test_opt_out_of_the_recipient_is_not_lifted_with_a_resend(console: Client) -> None:
    document = failed()
    factories.suppress()
    factories.suppress(reason=SuppressionReason.COMPLAINT)
    assert "1 skipped" in do(console, document, "lift", reason="It works again")
    assert collection("suppressions").count_documents({}) == 2
    assert resends_of(document) == []


def test_suppression_of_a_deleted_notification_is_not_lifted_with_a_resend(console: Client) -> None:
    document = failed()
    factories.suppress()
    removal.delete(notification_id=document["_id"], client_id=document["client_id"], now=utc_now())
    text = page(console, document)
    assert LIFT not in text
    assert RETRY_BUTTON.search(text) is None
    assert "1 skipped" in do(console, document, "lift", reason="It works again")
    assert collection("suppressions").count_documents({}) == 1
    assert resends_of(document) == []


def test_nothing_is_suggested_for_a_waiting_notification(console: Client) -> None:
    now = utc_now()
    for document in (
        factories.accepted(created_at=now),
        factories.accepted(created_at=now, send_at=now + timedelta(hours=1)),
        factories.settled(S.PENDING, at=now, created_at=now),
    ):
        assert "button-primary" not in page(console, document)


def test_retry_without_a_failure_is_refused(console: Client) -> None:
    document = factories.accepted(created_at=utc_now())
    assert "1 skipped: No failed channel to retry." in do(console, document, "retry")
    assert audit(document) == []


def test_retry_of_an_expired_notification_is_refused(console: Client) -> None:
    now = utc_now()
    document = failed(expires_at=now + timedelta(seconds=1))
    collection("notifications").update_one(
        {"_id": document["_id"]}, {"$set": {"expires_at": now - timedelta(seconds=1)}}
    )
    assert "The notification has expired." in do(console, document, "retry")


def test_resend_creates_a_linked_copy_on_the_selected_channels(console: Client) -> None:
    document = failed(channels=(Channel.EMAIL, Channel.IN_APP))
    text = do(console, document, "resend", channels="email")
    (new,) = resends_of(document)
    assert new["channels"] == ["email"]
    assert factories.read(document["_id"])["resent_as"] == [new["_id"]]
    assert "1 notification resent" in text
    assert audit(document) == [f"Resent on email as {new['_id']}."]
    assert audit(new) == [f"Resent from {document['_id']}."]
    assert "Resent from" in console.get(f"{LIST}{new['_id']}/change/").content.decode()


@each_case("channels", [[], ["pigeon"]])
def test_resend_requires_a_channel(console: Client, channels: list[str]) -> None:
    document = failed()
    text = do(console, document, "resend", channels=channels)
    assert "No change: select a channel to resend on." in text
    assert resends_of(document) == []


def test_resend_on_a_missing_channel_is_refused(console: Client) -> None:
    document = failed()
    text = do(console, document, "resend", channels="push")
    assert "1 skipped: It has none of these channels." in text
    assert resends_of(document) == []


def test_cancel_ends_the_pending_delivery_and_is_audited(console: Client) -> None:
    document = factories.accepted(created_at=utc_now())
    assert "1 notification cancelled." in do(console, document, "cancel")
    after = factories.delivery(factories.read(document["_id"]))
    assert (after["status"], after["failure_reason"]) == ("cancelled", "Cancelled by maria.")
    assert audit(document) == ["Cancelled on all channels."]


def test_cancel_without_a_pending_delivery_is_refused(console: Client) -> None:
    document = failed()
    assert "Nothing is pending." in do(console, document, "cancel")


def test_page_offers_the_possible_actions(console: Client) -> None:
    waiting = factories.accepted(created_at=utc_now())
    for document, offered, missing in (
        (failed(), "Retry failed channels", "Cancel pending"),
        (waiting, "Cancel pending", "Retry failed channels"),
    ):
        text = console.get(f"{LIST}{document['_id']}/change/").content.decode()
        assert offered in text
        assert missing not in text
        assert "Resend" in text


@each_case("path", [LIST, FAILED])
def test_retry_of_selected_rows_counts_the_skipped(console: Client, path: str) -> None:
    good, bad = [failed() for _ in range(3)], [failed() for _ in range(2)]
    for document in bad:
        do(console, document, "retry")
        # It still is in the list of failures by another channel's failure.
        failed_at = {"$set": {"failed_at": utc_now()}}
        collection("notifications").update_one({"_id": document["_id"]}, failed_at)
    text = do_on(console, [*good, *bad], "retry", path)
    assert "3 notifications requeued." in text
    assert "2 skipped: No failed channel to retry. (2)" in text
    assert all(factories.read(d["_id"])["status"] == "retrying" for d in good)
    assert all(audit(document) == ["Retried on all channels."] for document in good)


def test_resend_of_selected_rows_skips_sent_channels(console: Client) -> None:
    both = (Channel.EMAIL, Channel.IN_APP)
    documents = [failed(channels=both), failed()]
    text = do_on(console, documents, "resend", FAILED, channels=["email", "in_app"])
    assert "2 notifications resent." in text
    assert [n["channels"] for d in documents for n in resends_of(d)] == [["email"], ["email"]]


def test_resend_of_selected_rows_includes_sent_channels_on_request(console: Client) -> None:
    now = utc_now()
    sent = factories.settled(S.SENT, at=now, created_at=now)
    documents = [failed(channels=(Channel.EMAIL, Channel.IN_APP)), sent]
    do_on(console, documents, "resend", channels=["email", "in_app"], again="yes")
    resent = [n["channels"] for d in documents for n in resends_of(d)]
    assert resent == [["email", "in_app"], ["email"]]


def test_resend_of_sent_rows_is_refused(console: Client) -> None:
    now = utc_now()
    documents = [factories.settled(S.SENT, at=now, created_at=now) for _ in range(2)]
    text = do_on(console, documents, "resend", channels=["email"])
    assert "2 skipped: It has none of these channels. (2)" in text


def test_cancel_of_selected_rows_skips_failed_ones(console: Client) -> None:
    now = utc_now()
    documents = [factories.accepted(created_at=now) for _ in range(2)]
    text = do_on(console, [*documents, failed()], "cancel")
    assert "2 notifications cancelled." in text
    assert "1 skipped: Nothing is pending." in text
    assert {factories.read(d["_id"])["status"] for d in documents} == {"cancelled"}


def test_action_without_selected_rows_is_refused(console: Client) -> None:
    failed()
    response = console.post(LIST, {"action": "retry_selected", "index": "0"}, follow=True)
    assert "Items must be selected" in response.content.decode()


def test_operation_on_a_deleted_row_is_reported(console: Client) -> None:
    document = failed()
    collection("notifications").delete_one({"_id": document["_id"]})
    by = Staff(id=ObjectId(), username="maria")
    outcome = act_on_each(BulkAction.RETRY, {document["_id"]: None}, by=by, now=utc_now())
    assert outcome.reasons == ["Not found."]
