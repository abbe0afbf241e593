"""Pushes to browsers: what they show, and the headers for their push services."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.content import InterruptionLevel, PushOptions
from domain.errors import FailureCode, PermanentError
from domain.states import Priority
from domain.web_push import Fingerprint, SealedSubscription, topic
from providers.contract import Message
from providers.webpush.messages import (
    MAX_TEXT,
    ReceiptAddress,
    build_headers,
    build_text,
)
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.webpush import APPLE, HOME, MICROSOFT, MOZILLA, THREAD, push
from tests.support.tables import each_case

RECEIPTS = ReceiptAddress(url="https://notify.example.com/receipts", token="ntfb_token")
SUBSCRIPTION = SealedSubscription(
    device_id="d" * 64, host=MOZILLA, fingerprint=Fingerprint("f" * 16), secrets="sealed"
)


def text_of(**fields: Any) -> dict[str, Any]:
    return msgspec.json.decode(
        build_text(push(SUBSCRIPTION, **fields), home=HOME, receipts=RECEIPTS)
    )


def shown(**fields: Any) -> dict[str, Any]:
    return text_of(**fields)["notification"]


def headers(*, host: str = MOZILLA, **fields: Any) -> dict[str, str]:
    return build_headers(push(SUBSCRIPTION, **fields), host=host, now=FIXED_NOON)


def test_text_is_declarative_web_push() -> None:
    assert text_of() == {
        "web_push": 8030,
        "notification": {
            "title": "Paid",
            "body": "Your payment has arrived.",
            "navigate": HOME,
            "tag": f"{THREAD}-push",
            "data": {
                "notification_id": THREAD,
                "receipts": RECEIPTS.url,
                "receipt_token": RECEIPTS.token,
            },
        },
    }


@each_case(
    "link, opens",
    [
        ("https://shop.example.com/orders/1", "https://shop.example.com/orders/1"),
        ("HTTPS://shop.example.com/orders/1", "HTTPS://shop.example.com/orders/1"),
        ("http://shop.example.com/orders/1", HOME),
        ("shop://orders/1", HOME),
        ("javascript:alert(1)", HOME),
        (None, HOME),
    ],
)
def test_push_opens_a_page_and_the_worker_knows_other_links(link: str | None, opens: str) -> None:
    found = shown(message=Message(subject="Paid", text="Now", deep_link=link))
    assert found["navigate"] == opens
    assert found["data"].get("deep_link") == link


def test_text_without_a_subject_is_the_title() -> None:
    found = shown(message=Message(subject=None, text="Your code is 123456."))
    assert found["title"] == "Your code is 123456."
    assert "body" not in found


def test_push_without_a_text_is_refused_since_browsers_show_every_push() -> None:
    with pytest.raises(PermanentError, match="has no text") as raised:
        shown(message=Message(subject=None, text="", payload={"order": 1}))
    assert raised.value.code is FailureCode.REJECTED


@each_case(
    "priority, options, silent",
    [
        (Priority.NORMAL, None, None),
        (Priority.LOW, None, True),
        (Priority.LOW, PushOptions(sound="bell.caf"), None),
        (Priority.HIGH, PushOptions(sound="none"), True),
        (Priority.NORMAL, PushOptions(interruption_level=InterruptionLevel.PASSIVE), True),
    ],
)
def test_push_is_silent_as_on_a_phone(
    priority: Priority, options: PushOptions | None, silent: bool | None
) -> None:
    message = Message(subject="Paid", text="Now", push=options)
    assert shown(message=message, priority=priority).get("silent") is silent


def test_badge_image_and_payload_travel() -> None:
    message = Message(
        subject="Paid",
        text="Now",
        image_url="https://cdn.example.com/sun.png",
        payload={"order": {"id": 1}},
        push=PushOptions(badge=0),
    )
    found = shown(message=message)
    assert (found["app_badge"], found["image"]) == ("0", "https://cdn.example.com/sun.png")
    assert found["data"]["payload"] == {"order": {"id": 1}}


@given(body=st.text(min_size=1, max_size=4_000), subject=st.text(min_size=1, max_size=60))
def test_body_is_shortened_to_fit_and_no_more(body: str, subject: str) -> None:
    request = push(SUBSCRIPTION, message=Message(subject=subject, text=body))
    text = build_text(request, home=HOME, receipts=RECEIPTS)
    found = msgspec.json.decode(text)["notification"]["body"]
    assert len(text) <= MAX_TEXT
    if found != body:
        kept = found.removesuffix("…")
        assert body.startswith(kept)
        # With the spaces and the character that follow, it would be too long.
        rest = body[len(kept) :]
        spaces = len(rest) - len(rest.lstrip())
        added = msgspec.json.encode(rest[: spaces + 1])
        assert len(text) + len(added) - 2 > MAX_TEXT


def test_payload_that_leaves_no_room_is_too_large() -> None:
    message = Message(subject="Paid", text="Now", payload={"note": "x" * MAX_TEXT})
    with pytest.raises(PermanentError, match="2,500 bytes") as raised:
        shown(message=message)
    assert raised.value.code is FailureCode.TOO_LARGE


def test_payload_that_is_no_json_is_refused() -> None:
    message = Message(subject="Paid", text="Now", payload={"when": object()})
    with pytest.raises(PermanentError, match="encoded as JSON"):
        shown(message=message)


@each_case(
    "priority, urgency",
    [
        (Priority.CRITICAL, "high"),
        (Priority.HIGH, "high"),
        (Priority.NORMAL, "normal"),
        (Priority.LOW, "low"),
    ],
)
def test_urgency_follows_the_priority(priority: Priority, urgency: str) -> None:
    assert headers(priority=priority)["Urgency"] == urgency


@each_case(
    "left, ttl",
    [
        (None, "2419200"),
        (timedelta(days=40), "2419200"),
        (timedelta(minutes=5), "300"),
        (timedelta(0), "0"),
        (timedelta(seconds=-5), "0"),
    ],
)
def test_ttl_is_always_sent_and_at_most_what_every_service_takes(
    left: timedelta | None, ttl: str
) -> None:
    assert headers(expires_at=None if left is None else FIXED_NOON + left)["TTL"] == ttl


def test_topic_replaces_an_earlier_copy_and_has_a_length_that_apple_decodes() -> None:
    assert headers()["Topic"] == topic(THREAD)
    assert len(topic(THREAD)) == 32
    assert topic(THREAD) != topic("c" * 24)
    assert "Topic" not in headers(notification_id="")


@each_case(
    "host, seconds, policy",
    [(MICROSOFT, 60, "cache"), (MICROSOFT, 0, "no-cache"), (APPLE, 0, None), (MOZILLA, 60, None)],
)
def test_microsoft_alone_is_told_whether_to_keep_the_push(
    host: str, seconds: int, policy: str | None
) -> None:
    expires_at = FIXED_NOON + timedelta(seconds=seconds)
    found = build_headers(push(SUBSCRIPTION, expires_at=expires_at), host=host, now=FIXED_NOON)
    assert found.get("X-WNS-Cache-Policy") == policy
