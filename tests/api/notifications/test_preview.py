from typing import Any

from notifyproject.db.collections import collection
from tests.support.clients.api import App, pointers, request
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

PATH = "/notifications/preview"


def preview(app: App, **fields: Any) -> dict[str, Any]:
    answer = app.post(PATH, request(**fields))
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = answer.json()
    assert [channel["channel"] for channel in body["channels"]] == [
        "email",
        "push",
        "whatsapp",
        "sms",
        "room",
        "in_app",
    ]
    return body | {"channels": {channel["channel"]: channel for channel in body["channels"]}}


def test_every_channel_is_rendered(app: App) -> None:
    body = preview(app)
    assert (body["type"], body["category"], body["priority"]) == (
        "payment_confirmed",
        "transactional",
        "high",
    )
    assert (body["template_id"], body["template_version"]) == ("payment_confirmed", 0)
    email, push, whatsapp, sms, room, in_app = body["channels"].values()
    assert email["subject"] == push["subject"] == "Payment confirmed: Sunrise"
    assert "Your payment of 49.90" in email["text"]
    assert email["html"].startswith("<!DOCTYPE html>")
    assert push["text"] == "Your payment of 49.90 has arrived. Order number: 1001."
    assert "*49.90*" in whatsapp["text"]
    assert in_app["text"] == email["text"]
    assert {notification["html"] for notification in (push, whatsapp, sms, room, in_app)} == {None}
    assert {channel["problem"] for channel in body["channels"].values()} == {None}


def test_preview_stores_and_sends_nothing(app: App) -> None:
    app.post(PATH, request(), headers={"Idempotency-Key": "once"})
    for name in ("notifications", "delivery_attempts", "idempotency_keys"):
        assert collection(name).count_documents({}) == 0


def test_preview_shows_used_channels_and_reasons(app: App) -> None:
    collection("recipients").insert_one(
        {"_id": "ada", "email": "ada@example.com", "is_active": True}
    )
    channels = preview(app, user_id="ada", channels=["all"])["channels"]
    assert channels["email"]["would_send"]
    assert channels["in_app"]["would_send"]
    assert not channels["whatsapp"]["would_send"]
    assert channels["whatsapp"]["reason"] == "Skipped: No phone number."
    channels = preview(app)["channels"]
    assert channels["push"]["reason"] == "Not one of this notification's channels."


@each_case("channels", [["push"], ["push", "in_app"]])
def test_preview_says_that_a_push_has_no_device(app: App, channels: list[str]) -> None:
    def push(**fields: Any) -> tuple[bool, str | None]:
        shown = preview(app, channels=channels, **fields)["channels"]["push"]
        return shown["would_send"], shown["reason"]

    phone = factories.device("phone", user_id="bob")
    assert push(user_id="ada") == (False, "No device registered.")
    assert push(user_id="bob") == (True, None)
    assert push(user_id="bob", recipient={"device_ids": [phone]}) == (True, None)


def test_preview_uses_the_recipients_locale_and_timezone(app: App) -> None:
    person = {"email": "ada@example.com", "locale": "pt-BR", "timezone": "Asia/Tokyo"}
    data = {
        "contest_name": "Round 900",
        "hours_until_start": 1,
        "start_time": "2026-12-01T14:35:00Z",
    }
    body = preview(app, type="contest_reminder", recipient=person, data=data)
    assert body["locale"] == "pt-BR"
    assert body["channels"]["email"]["subject"] == "Round 900 come\u00e7a daqui a 1 hora"
    assert "(01/12/2026, 23:35 Asia/Tokyo)" in body["channels"]["in_app"]["text"]


def test_preview_shows_sensitive_data_of_its_request(app: App) -> None:
    channels = preview(app, type="mfa_code", data={"code": "493817"})["channels"]
    for channel in channels.values():
        assert "493817" in f"{channel['subject']}{channel['text']}"


def test_content_of_the_request_is_shown_on_every_channel(app: App) -> None:
    content = {
        "subject": "Hello",
        "body": "<b>Words</b>",
        "deep_link": "https://example.com/1",
        "image_url": "https://cdn.example.com/i.png",
        "payload": {"orderId": "1"},
    }
    body = preview(app, type="marketing", content=content, data={})
    assert (body["template_id"], body["template_version"]) == (None, None)
    for channel in body["channels"].values():
        assert (channel["subject"], channel["payload"]) == ("Hello", {"orderId": "1"})
    # The text of a room is Markdown.
    room = body["channels"].pop("room")
    assert room["text"] == r"\<b\>Words\</b\>"
    for channel in body["channels"].values():
        assert channel["text"].startswith("<b>Words</b>")
    assert "&lt;b&gt;Words&lt;/b&gt;" in body["channels"]["email"]["html"]


def test_times_are_resolved(app: App) -> None:
    local = {"at": "2027-03-28T01:30", "timezone": "Europe/London"}
    body = preview(app, scheduled_local=local, ttl=3600)
    assert body["adjusted"]
    assert body["scheduled_at"] == "2027-03-28T01:00:00Z"
    assert body["expires_at"] == "2027-03-28T02:00:00Z"


def test_channel_that_cannot_render_has_a_problem(app: App) -> None:
    parts = {"default": {"whatsapp": "{{ order_id }}", "body": "{{ amount }}"}}
    # The type's schema would refuse the request.
    off = {"$set": {"schema_mode": "off"}}
    collection("notification_types").update_one({"_id": "payment_confirmed"}, off)
    app.post("/types/payment_confirmed/templates", {"parts": parts})
    app.post("/types/payment_confirmed/templates/versions/1/publish")
    body = preview(app, data={"amount": "1", "video_title": "Sunrise"})
    whatsapp = body["channels"]["whatsapp"]
    assert whatsapp["problem"] == "The template needs the variable 'order_id'."
    assert whatsapp["text"] is None
    assert body["channels"]["email"]["text"] == "1"
    assert body["template_version"] == 1


@each_case(
    "fields, pointer, code",
    [
        ({"recipient": {"email": "nonsense"}}, "/recipient/email", "invalid_email"),
        ({"data": {}}, "/data/video_title", "missing_variable"),
        ({"data": {"$where": 1}}, "/data/$where", "forbidden_key"),
        ({"subject": "x"}, "/subject", "unknown_field"),
    ],
)
def test_preview_refuses_what_create_refuses(
    app: App, fields: dict[str, Any], pointer: str, code: str
) -> None:
    refused, shown = app.notify(**fields), app.post(PATH, request(**fields))
    assert (shown.status_code, pointers(shown)) == (422, pointers(refused))
    assert pointer in pointers(shown)
    assert code in (pointers(shown)[pointer], "invalid")


@each_case("count, codes", [(1_000, []), (15_000, ["may_be_clipped"])])
def test_preview_warns_of_html_that_gmail_clips(app: App, count: int, codes: list[str]) -> None:
    content = {"subject": "News", "body": "& <b> " * count}
    body = preview(app, channels=["email"], content=content, type="system_alert")
    assert [warning["code"] for warning in body["warnings"]] == codes
    assert body["channels"]["email"]["would_send"]
