"""A push has at most 4 KB of what it says, rendered, and is refused before it is accepted."""

from typing import Any

import pytest
from bson import ObjectId

from domain.states import Channel, DeliveryStatus
from notifications.content.rendering import render_message
from notifications.intake.preparation import RecipientSnapshot, prepare
from notifications.intake.requests import Caller, ContentRequest, NotificationRecipientRequest
from notifications.store import AttemptReference
from notifications.validation import InvalidRequestError
from providers.fcm.messages import MAX_PAYLOAD, build_payload
from recipients.queries import RegisteredRecipient
from tests.support.factories.records import NOON, outbound, request

pytestmark = pytest.mark.usefixtures("shipped_types")

ID = ObjectId("b" * 24)
CALLER = Caller(client_id=ObjectId("c" * 24))
ADA = RegisteredRecipient(user_id="ada", email="ada@example.com", preferences={})
TOO_LONG = ("/content/payload", "too_long")
LONG = "https://example.com/" + "p" * 2_000


def problems(**fields: Any) -> list[tuple[str, str]]:
    """Return what is wrong with a push to Ada."""
    asked = request(**{"channels": ["push"], **fields})
    known = RecipientSnapshot(people={"ada": ADA}, suppressed={})
    try:
        new = prepare(
            asked, notification_id=ID, caller=CALLER, snapshot=known, now=NOON
        ).notification
    except InvalidRequestError as invalid:
        return [(one.pointer, one.code) for one in invalid.problems]
    if (Channel.PUSH, DeliveryStatus.PENDING) in [(d.channel, d.status) for d in new.deliveries]:
        _sent(new)
    return []


def _sent(new: Any) -> None:
    """Make what is accepted as it is made when it is sent; raises what Firebase would."""
    message = render_message(
        channel=Channel.PUSH, content=new.content, data=new.data, recipient=new.recipient
    )
    reference = str(AttemptReference(new.id, Channel.PUSH, 11, "e" * 64))
    build_payload(
        outbound(reference=reference, notification_id=str(new.id), message=message), now=NOON
    )


def saying(**more: Any) -> ContentRequest:
    return ContentRequest(**{"subject": "Hello", "body": "There"} | more)


def test_a_payload_of_over_4_kb_is_refused_with_its_place() -> None:
    assert problems(content=saying(payload={"fill": "x" * MAX_PAYLOAD})) == [TOO_LONG]


def test_the_last_that_is_accepted_is_one_that_can_be_sent() -> None:
    accepted = [
        size
        for size in range(3_600, MAX_PAYLOAD, 8)
        if problems(content=saying(body="é" * 100, payload={"fill": "x" * size})) == []
    ]
    assert accepted == list(range(3_600, accepted[-1] + 1, 8))
    assert 3_600 < accepted[-1] < MAX_PAYLOAD - 200


@pytest.mark.parametrize("letter", ["x", "é", "中", "\U0001f600"])
def test_a_long_text_is_cut_to_what_a_phone_shows_and_fits(letter: str) -> None:
    assert problems(content=ContentRequest(subject=letter * 255, body=letter * 20_000)) == []


def test_long_links_count_too() -> None:
    assert problems(content=saying(image_url=LONG, deep_link=LONG)) == [("/content", "too_long")]
    assert problems(content=saying(image_url=LONG)) == []


def test_what_the_template_says_counts_when_it_is_rendered() -> None:
    content = ContentRequest(payload={"fill": "x" * 3_200})
    data = {"order_id": 1, "video_title": "Sunrise"}
    for amount, expected in (("49.90", []), ("中 " * 200, [TOO_LONG])):
        asked = {"type": "payment_confirmed", "data": data | {"amount": amount}}
        assert problems(content=content, **asked) == expected


@pytest.mark.parametrize("channels", [["email"], ["in_app"], ["email", "in_app"]])
def test_other_channels_may_carry_more(channels: list[str]) -> None:
    big = saying(payload={"fill": "x" * 10_000})
    assert problems(channels=channels, content=big) == []
    assert problems(channels=[*channels, "push"], content=big) == [TOO_LONG]


def test_a_push_that_goes_to_no_device_holds_nothing_back() -> None:
    """Nobody named the channel and there is no device: it is skipped, and the mail goes."""
    asked = {
        "type": "order_shipped",
        "user_id": None,
        "recipient": NotificationRecipientRequest(email="ada@example.com"),
        "content": saying(payload={"fill": "x" * 10_000}),
    }
    assert problems(channels=None, **asked) == []
    assert problems(**asked | {"user_id": "ada", "channels": None}) == [TOO_LONG]


def test_a_secret_counts_as_what_it_is_and_not_as_its_mask() -> None:
    fill = {"fill": "x" * 3_750}
    for code, expected in (("1", []), ("中 " * 200, [TOO_LONG])):
        asked = {"type": "mfa_code", "data": {"code": code}}
        assert problems(content=ContentRequest(payload=fill), **asked) == expected
