"""FCM messages for Android, Apple, and browsers."""

import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from domain.errors import FailureCode, PermanentError
from domain.states import Priority
from domain.web_push import topic
from notifyproject.platform.event_loop import run
from providers.contract import Message, SendRequest
from providers.fcm.messages import MAX_PAYLOAD
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.fcm import THREAD, Project, push
from tests.support.providers.fcm_schema import check, schemas
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

APPLES_TOPIC = re.compile(r"(?:[A-Za-z0-9_-]{4}){1,8}", re.ASCII)
"""A name that Apple's push service decodes without padding, which it takes from Safari's tokens."""


def sent(project: Project, outbound: SendRequest, *, clock: datetime | None = None) -> Any:
    fcm = project.fcm()
    if clock is not None:
        # Google takes no assertion of another time: the access token is fetched in the present.
        run(fcm.send(push(), timeout=LIMIT))
        fcm = project.fcm(clock=lambda: clock)
    assert run(fcm.send(outbound, timeout=LIMIT)).provider_id
    return project.sent()[-1]


def saying(text: str = "Paid", **fields: Any) -> Message:
    return Message(subject=None, text=text, **fields)


def test_push_has_token_notification_and_references(project: Project) -> None:
    assert sent(project, push()) == {
        "token": "device-1",
        "notification": {"title": "Paid", "body": "Your payment has arrived."},
        "data": {"reference": f"{THREAD}.push.1", "notification_id": THREAD},
        "android": {
            "priority": "NORMAL",
            "notification": {"tag": f"{THREAD}-push", "default_sound": True},
        },
        "apns": {
            "headers": {
                "apns-priority": "5",
                "apns-push-type": "alert",
                "apns-collapse-id": f"{THREAD}-push",
            },
            "payload": {"aps": {"sound": "default"}},
        },
        "webpush": {
            "headers": {"Urgency": "normal", "Topic": topic(THREAD)},
            "notification": {"tag": f"{THREAD}-push"},
        },
    }


def test_image_is_set_for_every_platform(project: Project) -> None:
    url = "https://cdn.example.com/sunrise.png"
    message = sent(project, push(message=saying(image_url=url)))
    assert message["notification"]["image"] == url
    assert message["apns"]["fcm_options"] == {"image": url}
    assert message["apns"]["payload"] == {"aps": {"mutable-content": 1, "sound": "default"}}


@each_case(
    "link, opens",
    [
        ("https://shop.example.com/orders/1", True),
        ("http://shop.example.com/orders/1", False),
        ("shop://orders/1", False),
    ],
)
def test_deep_link_is_data_and_opens_https_pages(
    project: Project, link: str, *, opens: bool
) -> None:
    message = sent(project, push(message=saying(deep_link=link)))
    assert message["data"]["deep_link"] == link
    assert message["webpush"].get("fcm_options") == ({"link": link} if opens else None)


def test_data_values_are_text_or_json(project: Project) -> None:
    payload = {
        "text": "1001",
        "number": 1001,
        "share": 0.5,
        "yes": True,
        "nothing": None,
        "list": [1, "two"],
        "object": {"name": "João"},
    }
    assert sent(project, push(message=saying(payload=payload)))["data"] == {
        "text": "1001",
        "number": "1001",
        "share": "0.5",
        "yes": "true",
        "nothing": "null",
        "list": '[1,"two"]',
        "object": '{"name":"João"}',
        "reference": f"{THREAD}.push.1",
        "notification_id": THREAD,
    }


def test_our_data_fields_override_the_payload(project: Project) -> None:
    payload = {"notification_id": "1", "reference": "2", "deep_link": "shop://3"}
    data = sent(project, push(message=saying(payload=payload)))["data"]
    assert data["notification_id"] == THREAD
    assert data["reference"] == f"{THREAD}.push.1"
    assert data["deep_link"] == "shop://3", "the message has none of its own"


@each_case(
    "key", ["from", "message_type", "google.", "google.c.a.e", "gcm.notification.title", "gcm.n.e"]
)
def test_reserved_data_key_is_refused_unsent(project: Project, key: str) -> None:
    with pytest.raises(PermanentError) as error:
        run(project.fcm().send(push(message=saying(payload={key: "1"})), timeout=LIMIT))
    assert error.value.code is FailureCode.REJECTED
    assert project.requests() == []


def test_similar_data_key_is_allowed(project: Project) -> None:
    data = sent(project, push(message=saying(payload={"sent_from": "1", "agcm.x": "2"})))["data"]
    assert (data["sent_from"], data["agcm.x"]) == ("1", "2")


@each_case(
    "priority, android, apns, web",
    [
        (Priority.CRITICAL, "HIGH", "10", "high"),
        (Priority.HIGH, "HIGH", "10", "high"),
        (Priority.NORMAL, "NORMAL", "5", "normal"),
        (Priority.LOW, "NORMAL", "5", "low"),
    ],
)
def test_urgent_push_wakes_the_device(
    project: Project, priority: Priority, android: str, apns: str, web: str
) -> None:
    message = sent(project, push(priority=priority))
    assert message["android"]["priority"] == android
    assert message["apns"]["headers"]["apns-priority"] == apns
    assert message["webpush"]["headers"]["Urgency"] == web


def test_silent_push_is_data_only_and_never_urgent_for_apple(project: Project) -> None:
    silent = Message(subject=None, text="", payload={"sync": True})
    message = sent(project, push(message=silent, priority=Priority.CRITICAL))
    assert "notification" not in message
    assert message["data"]["sync"] == "true"
    assert message["apns"]["headers"]["apns-priority"] == "5"
    assert message["apns"]["payload"] == {"aps": {"content-available": 1}}
    assert message["android"] == {"priority": "HIGH"}


@each_case(
    "left, kept",
    [
        (timedelta(minutes=10), 600),
        (timedelta(seconds=1.9), 1),
        (timedelta(seconds=0.9), 0),
        (timedelta(days=28), 2_419_200),
        (timedelta(days=400), 2_419_200),
    ],
)
def test_push_is_kept_until_it_expires(project: Project, left: timedelta, kept: int) -> None:
    message = sent(project, push(expires_at=FIXED_NOON + left), clock=FIXED_NOON)
    assert message["android"]["ttl"] == f"{kept}s"
    assert message["webpush"]["headers"]["TTL"] == str(kept)
    assert message["apns"]["headers"]["apns-expiration"] == str(int(FIXED_NOON.timestamp()) + kept)


def test_push_without_expiry_sets_no_ttl(project: Project) -> None:
    message = sent(project, push())
    assert "ttl" not in message["android"]
    assert "TTL" not in message["webpush"]["headers"]
    assert "apns-expiration" not in message["apns"]["headers"]


@each_case("notification_id", ["x" * 200, "a/b", "é" * 40, "not.url.safe"])
def test_copy_of_a_notification_replaces_the_first(project: Project, notification_id: str) -> None:
    first, second = (
        sent(
            project,
            push(notification_id=notification_id, reference=f"{notification_id}.push.{number}"),
        )
        for number in (1, 2)
    )
    for message in (first, second):
        name = message["android"]["notification"]["tag"]
        assert name == message["apns"]["headers"]["apns-collapse-id"]
        assert len(name) <= 32
        assert name.isascii()
        assert name.isalnum()
        assert APPLES_TOPIC.fullmatch(message["webpush"]["headers"]["Topic"])
    assert first["android"] == second["android"]
    assert first["webpush"] == second["webpush"]
    assert first["data"]["reference"] != second["data"]["reference"]


def test_push_without_notification_id_replaces_nothing(project: Project) -> None:
    message = sent(project, push(notification_id=""))
    assert "notification_id" not in message["data"]
    assert "tag" not in message["android"]["notification"]
    assert "apns-collapse-id" not in message["apns"]["headers"]
    assert message["webpush"] == {"headers": {"Urgency": "normal"}}


def weight(message: Any) -> int:
    texts = {**message["data"], **message["notification"]}
    own = json.dumps(message["android"]["notification"], separators=(",", ":"))
    return sum(len(key.encode()) + len(text.encode()) for key, text in texts.items()) + len(own)


def test_payload_limit_is_four_kilobytes(project: Project) -> None:
    def filled(size: int) -> SendRequest:
        return push(message=saying("é" * 100, payload={"fill": "x" * size}))

    left = MAX_PAYLOAD - weight(sent(project, filled(0)))
    assert weight(sent(project, filled(left))) == MAX_PAYLOAD
    with pytest.raises(PermanentError) as error:
        run(project.fcm().send(filled(left + 1), timeout=LIMIT))
    assert error.value.code is FailureCode.TOO_LARGE
    assert str(MAX_PAYLOAD) in error.value.reason
    assert [request["accepted"] for request in project.requests()] == [True, True]


@each_case(
    "text",
    [
        "<script>alert(1)</script> & \"quotes\" 'too'",
        "👩‍👩‍👧 caf\u00e9 e\u0301 مرحبا",
        "line one\nline two\r\n\x00\u2028\\",
    ],
)
def test_texts_are_passed_on_unchanged(project: Project, text: str) -> None:
    message = Message(subject=text, text=text, payload={"text": text, "list": [text]})
    found = sent(project, push(message=message))
    assert found["notification"] == {"title": text, "body": text}
    assert found["data"]["text"] == text
    assert json.loads(found["data"]["list"]) == [text]


@each_case(
    "message",
    [
        Message(subject="\ud800", text="x"),
        saying(payload={"half": "\ud800"}),
        saying(payload={"half": ["\ud800"]}),
        saying(payload={"no json": object()}),
    ],
)
def test_unencodable_message_is_not_sent(project: Project, message: Message) -> None:
    with pytest.raises(PermanentError) as error:
        run(project.fcm().send(push(message=message), timeout=LIMIT))
    assert error.value.code is FailureCode.RENDER_FAILED
    assert project.requests() == []


@each_case(
    "message",
    [
        {"tokens": "x"},
        {"data": {"number": 1}},
        {"android": {"ttl": "soon"}},
        {"android": {"ttl": 5}},
        {"android": {"priority": "URGENT"}},
        {"android": {"notification": {"label": "x"}}},
        {"webpush": {"headers": {"TTL": 5}}},
        {"apns": {"fcm_options": {"link": "x"}}},
    ],
)
def test_schema_check_is_strict(message: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        check(json.dumps({"message": message}).encode())
    assert "SendMessageRequest" in schemas()
