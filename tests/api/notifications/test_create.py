"""Creating a notification: recipients, channels, links, attachments, and test mode."""

from collections.abc import Callable
from typing import Any

import pytest

from domain.time import utc_now
from notifications.models import Notification
from notifications.store import content_of
from notifyproject.db.collections import collection
from recipients.models import SuppressionReason
from tests.support.clients.api import App, new_app, pointers
from tests.support.factories import notifications as factories


def known_recipient(user_id: str = "ada", **fields: Any) -> None:
    collection("recipients").insert_one(
        {"_id": user_id, "is_active": True, "preferences": {}, **fields}
    )


def statuses(answer: Any) -> dict[str, str]:
    return {d["channel"]: d["status"] for d in answer.json()["delivery"]}


def test_source_is_returned_and_kept_by_a_resend(app: App) -> None:
    accepted = app.notify(source="shop / checkout").json()
    assert accepted["source"] == "shop / checkout"
    again = app.post(f"/notifications/{accepted['id']}/resend").json()
    assert again["source"] == "shop / checkout"
    assert app.notify().json()["source"] is None


@pytest.mark.parametrize("source", ["", "x" * 65, "a\x00b", 5, ["shop"]])
def test_invalid_source_is_refused(app: App, source: Any) -> None:
    answer = app.notify(source=source)
    assert (answer.status_code, list(pointers(answer))) == (422, ["/source"])
    assert app.notify(source="x" * 64).status_code == 202


@pytest.mark.parametrize("email", ["a@b.c\r\nBcc: x@example.com", "Ada <ada@example.com>", ""])
def test_invalid_email_is_refused(app: App, email: str) -> None:
    answer = app.notify(recipient={"email": email})
    assert (answer.status_code, pointers(answer)["/recipient/email"]) == (422, "invalid_email")


@pytest.mark.parametrize("phone", ["912345678", "+999999999999999", ""])
def test_invalid_phone_is_refused(app: App, phone: str) -> None:
    answer = app.notify(recipient={"phone": phone}, channels=["whatsapp"])
    assert (answer.status_code, pointers(answer)["/recipient/phone"]) == (422, "invalid_phone")


def test_all_invalid_recipient_fields_are_reported(app: App) -> None:
    answer = app.notify(recipient={"email": "x", "phone": "y", "timezone": "z"})
    assert set(pointers(answer)) >= {"/recipient/email", "/recipient/phone", "/recipient/timezone"}


@pytest.mark.parametrize(
    "zone", ["Mars/Olympus", "../etc/passwd", "/etc/localtime", "europe/lisbon", ""]
)
def test_unknown_timezone_is_refused(app: App, zone: str) -> None:
    answer = app.notify(recipient={"email": "ada@example.com", "timezone": zone})
    assert pointers(answer) == {"/recipient/timezone": "unknown_timezone"}


def test_named_channel_without_address_is_refused(app: App) -> None:
    answer = app.notify(channels=["email", "whatsapp"])
    assert pointers(answer) == {"/recipient/phone": "no_address"}


def test_default_channel_without_address_is_skipped_with_a_reason(app: App) -> None:
    answer = app.notify(type="alert", content={"body": "Hello"}, data={})
    assert statuses(answer) == {"email": "pending", "in_app": "suppressed"}
    assert "user_id" in answer.json()["delivery"][1]["failure_reason"]


def test_recipient_without_address_is_refused(app: App) -> None:
    assert pointers(app.notify(recipient={})) == {"/recipient": "no_address"}
    assert pointers(app.notify(recipient=...)) == {"/recipient": "no_address"}


def test_unknown_user_without_address_is_refused(app: App) -> None:
    assert pointers(app.notify(recipient=..., user_id="nobody")) == {"/recipient": "no_address"}


def test_registered_recipient_supplies_missing_fields(app: App) -> None:
    known_recipient(email="ada@example.com", name="Ada", locale="pt", timezone="Europe/Lisbon")
    answer = app.notify(recipient=..., user_id="ada")
    recipient = answer.json()["recipient"]
    assert recipient["email"] == "ada@example.com"
    assert (recipient["name"], recipient["locale"]) == ("Ada", "pt")


def test_request_overrides_the_registered_recipient(app: App) -> None:
    known_recipient(email="old@example.com")
    answer = app.notify(recipient={"email": "new@example.com"}, user_id="ada")
    assert answer.json()["recipient"]["email"] == "new@example.com"


@pytest.mark.parametrize(
    ("channels", "pointer", "code"),
    [
        ([], "/channels", "no_channel"),
        (["email", "email"], "/channels/1", "duplicate_channel"),
        (["in-app", "in_app"], "/channels/1", "duplicate_channel"),
        (["fax"], "/channels/0", "unknown_channel"),
        (["email", "all"], "/channels/1", "unknown_channel"),
        (["EMAIL"], "/channels/0", "unknown_channel"),
    ],
)
def test_invalid_channels_are_refused(
    app: App, channels: list[str], pointer: str, code: str
) -> None:
    assert pointers(app.notify(channels=channels, user_id="ada"))[pointer] == code


@pytest.mark.parametrize(("spelling", "meant"), [("in-app", "in_app"), ("in_app", "in_app")])
def test_in_app_can_be_spelled_with_a_hyphen(app: App, spelling: str, meant: str) -> None:
    answer = app.notify(channels=[spelling], user_id="ada", recipient=...)
    assert answer.json()["channels"] == [meant]


def test_all_means_every_channel_with_an_address(app: App) -> None:
    answer = app.notify(
        channels=["all"], recipient={"email": "ada@example.com", "phone": "+351912345678"}
    )
    assert statuses(answer) == {
        "email": "pending",
        "push": "suppressed",
        "whatsapp": "pending",
        "in_app": "suppressed",
    }


def test_in_app_is_delivered_on_acceptance(app: App) -> None:
    answer = app.notify(channels=["in_app"], user_id="ada", recipient=...)
    assert statuses(answer) == {"in_app": "delivered"}
    assert answer.json()["status"] == "delivered"


@pytest.mark.parametrize(("spelling", "meant"), [("medium", "normal"), ("critical", "critical")])
def test_medium_priority_is_normal(app: App, spelling: str, meant: str) -> None:
    assert app.notify(priority=spelling).json()["priority"] == meant


@pytest.mark.parametrize("name", ["MfaCode", "MFA_CODE", "mfa_code"])
def test_type_is_accepted_in_other_spellings(app: App, name: str) -> None:
    assert app.notify(type=name, data={"code": "1"}).json()["type"] == "mfa_code"


def test_unknown_type_is_refused_with_suggestions(app: App) -> None:
    answer = app.notify(type="payment_confirmd")
    assert pointers(answer) == {"/type": "unknown_type"}
    assert "payment_confirmed" in answer.json()["errors"][0]["detail"]


@pytest.mark.parametrize("email", ["ada@example.com", "ADA@EXAMPLE.COM", "Ada@Example.com"])
def test_suppressed_address_gets_nothing(app: App, email: str) -> None:
    factories.suppress("Ada@Example.com", at=utc_now())
    answer = app.notify(recipient={"email": email})
    assert answer.status_code == 202
    assert statuses(answer) == {"email": "suppressed"}
    assert answer.json()["status"] == "cancelled"
    assert answer.json()["delivery"][0]["failure_code"] == "suppressed"


def test_marketing_suppression_allows_transactional_mail(app: App) -> None:
    factories.suppress(reason=SuppressionReason.UNSUBSCRIBED, marketing_only=True, at=utc_now())
    assert statuses(app.notify()) == {"email": "pending"}
    assert statuses(app.notify(type="marketing", content={"body": "Buy"})) == {
        "email": "suppressed"
    }


def test_muted_category_is_suppressed(app: App) -> None:
    known_recipient(email="ada@example.com", preferences={"marketing": {"muted": True}})
    answer = app.notify(type="marketing", content={"body": "Buy"}, recipient=..., user_id="ada")
    assert (answer.status_code, statuses(answer)) == (202, {"email": "suppressed"})
    assert answer.json()["delivery"][0]["failure_code"] == "opted_out"


def test_preferred_channels_are_used_when_none_are_named(app: App) -> None:
    known_recipient(
        email="ada@example.com", preferences={"transactional": {"channels": ["in_app"]}}
    )
    assert statuses(app.notify(recipient=..., user_id="ada")) == {"in_app": "delivered"}
    named = app.notify(recipient=..., user_id="ada", channels=["email"])
    assert statuses(named) == {"email": "pending"}


def test_preferred_channel_without_address_is_skipped(app: App) -> None:
    known_recipient(
        email="ada@example.com", preferences={"transactional": {"channels": ["email", "whatsapp"]}}
    )
    answer = app.notify(recipient=..., user_id="ada")
    assert answer.status_code == 202
    assert statuses(answer) == {"email": "pending", "whatsapp": "suppressed"}
    skipped = answer.json()["delivery"][1]
    assert skipped["failure_code"] == "no_address"
    assert skipped["failure_reason"] == "Skipped: No phone number."


def test_recipient_is_notified_once_per_type_and_entity(app: App, other_app: App) -> None:
    first = app.notify(user_id="ada", entity_id="order-1")
    again = app.notify(user_id="ada", entity_id="order-1")
    assert (again.status_code, again.json()["code"]) == (409, "already_notified")
    assert again.json()["notification_id"] == first.json()["id"]
    foreign = other_app.notify(user_id="ada", entity_id="order-1")
    assert foreign.status_code == 409
    assert first.json()["id"] not in foreign.content.decode()
    assert app.notify(user_id="bob", entity_id="order-1").status_code == 202
    assert app.notify(user_id="ada", entity_id="order-2").status_code == 202
    assert app.notify(entity_id="order-1").status_code == 202
    assert app.notify(entity_id="order-1").status_code == 202


@pytest.mark.parametrize(
    "notification_id", ["x", "1", "z" * 24, "65c1111111111111111111111", "a" * 24]
)
def test_invalid_id_is_not_found(app: App, notification_id: str) -> None:
    assert app.get(f"/notifications/{notification_id}").status_code == 404


REFUSED = [
    *("javascript:alert(1)", "https://ada:pw@example.com/", "https://10.0.0.1/", "https://"),
    *(
        "https://x\u200b.internal/",
        "https://127\u30020\u30020\u30021/",
        "https://a.example\r\nX: y",
    ),
]


@pytest.mark.parametrize("field", ["image_url", "deep_link"])
def test_non_public_link_is_refused(app: App, field: str) -> None:
    for url in REFUSED:
        answer = app.notify(content={"body": "Hello", field: url})
        problems = pointers(answer)
        assert (answer.status_code, problems) == (422, {f"/content/{field}": "invalid_url"}), url
        assert url.encode() not in answer.content, "no value is repeated"


def test_invalid_reply_to_is_refused(app: App) -> None:
    for address in ("a@b.c\r\nBcc: x@example.com", "Ada <ada@example.com>", "a@localhost", ""):
        answer = app.notify(content={"body": "Hello", "reply_to": address})
        assert pointers(answer) == {"/content/reply_to": "invalid_email"}, address


@pytest.mark.parametrize(
    "link", ["https://example.com/orders/5?x=1#top", "app://orders/5", "mailto:ada@example.com"]
)
def test_valid_link_is_returned_unchanged(app: App, link: str) -> None:
    answer = app.notify(content={"body": "Hello", "deep_link": link})
    assert answer.json()["content"]["deep_link"] == link


FILE = {"url": "https://files.example.com/7.pdf", "filename": "invoice.pdf"}
STORED = {**FILE, "content_type": "application/pdf"}
Stored = Callable[[Any], dict[str, Any]]


@pytest.fixture(autouse=True)
def _allowed(settings: Any) -> None:
    settings.ATTACHMENT_HOSTS = frozenset({"files.example.com"})


def test_attachments_are_stored(app: App, stored: Stored) -> None:
    answer = app.notify(content={"reply_to": "agent@example.com", "attachments": [FILE]})
    assert answer.status_code == 202
    content = stored(answer)["content"]
    assert (content["reply_to"], content["attachments"]) == ("agent@example.com", [STORED])


def test_attachments_are_read_by_the_model(app: App) -> None:
    answer = app.notify(content={"reply_to": "agent@example.com", "attachments": [FILE]})
    content = Notification.objects.get(pk=answer.json()["id"]).content
    (one,) = content.attachments
    assert content.reply_to == "agent@example.com"
    assert (one.url, one.filename, one.content_type) == tuple(STORED.values())


def test_notification_without_attachments_has_none(app: App) -> None:
    answer = app.notify()
    content = Notification.objects.get(pk=answer.json()["id"]).content
    assert (content.reply_to, content.attachments) == (None, [])


def test_resend_keeps_attachments(app: App) -> None:
    answer = app.notify(content={"reply_to": "agent@example.com", "attachments": [FILE]})
    app.post(f"/notifications/{answer.json()['id']}/resend")
    first, second = [content_of(d) for d in collection("notifications").find().sort("_id")]
    assert first == second
    assert [one.filename for one in second.attachments] == ["invoice.pdf"]


def test_attachment_problems_have_pointers(app: App) -> None:
    files = [FILE, {"url": "https://evil.example/7.pdf", "filename": "../7.pdf"}]
    answer = app.notify(content={"reply_to": "a@b.example, c@d.example", "attachments": files})
    assert (answer.status_code, pointers(answer)) == (
        422,
        {
            "/content/reply_to": "invalid_email",
            "/content/attachments/1/url": "host_not_allowed",
            "/content/attachments/1/filename": "invalid_filename",
        },
    )
    assert "evil" not in answer.text


def test_missing_attachment_field_has_its_pointer(app: App) -> None:
    answer = app.notify(content={"attachments": [{"url": FILE["url"]}]})
    assert pointers(answer) == {"/content/attachments/0/filename": "required"}


def test_attachments_without_allowed_hosts_are_refused(app: App, settings: Any) -> None:
    settings.ATTACHMENT_HOSTS = frozenset()
    answer = app.notify(content={"attachments": [FILE]})
    assert (answer.status_code, pointers(answer)) == (422, {"/content/attachments": "not_enabled"})
    assert collection("notifications").count_documents({}) == 0


@pytest.fixture
def test_app(db: None, broker: Any) -> App:
    return new_app("test_app", is_test=True)


def test_notification_of_a_test_key_is_a_test(test_app: App, stored: Stored) -> None:
    answer = test_app.notify()
    assert (answer.status_code, answer.json()["is_test"]) == (202, True)
    assert stored(answer)["is_test"] is True
    assert test_app.get(f"/notifications/{answer.json()['id']}").json()["is_test"] is True


def test_notification_of_a_live_key_is_not_a_test(app: App, stored: Stored) -> None:
    answer = app.notify()
    assert answer.json()["is_test"] is False
    assert "is_test" not in stored(answer)


def test_is_test_is_no_request_field(app: App) -> None:
    assert app.notify(is_test=True).status_code == 422
