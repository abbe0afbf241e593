"""References to attempts, and reading of stored documents."""

from typing import Any

import pytest
from bson import ObjectId
from hypothesis import given
from hypothesis import strategies as st

from domain.content import Content, Recipient
from domain.states import Channel
from notifications.store.documents import AttemptReference, content_of, recipient_of
from tests.support.factories.notifications import claimed_delivery as claimed
from tests.support.tables import each_case

ID = ObjectId("65f0c0ffee65f0c0ffee65f0")


@given(
    raw=st.binary(min_size=12, max_size=12),
    channel=st.sampled_from(Channel),
    number=st.integers(0, 999_999),
)
def test_reference_is_parsed_from_its_text(raw: bytes, channel: Channel, number: int) -> None:
    reference = AttemptReference(ObjectId(raw), channel, number)
    assert AttemptReference.parse(str(reference)) == reference


def test_reference_names_notification_channel_attempt_and_device() -> None:
    assert str(AttemptReference(ID, Channel.IN_APP, 3)) == "65f0c0ffee65f0c0ffee65f0.in_app.3"
    device_id = "0f" * 32
    text = f"{ID}.push.3.{device_id}"
    assert str(AttemptReference(ID, Channel.PUSH, 3, device_id)) == text
    assert AttemptReference.parse(text) == AttemptReference(ID, Channel.PUSH, 3, device_id)


@each_case(
    "text",
    [
        *("", ".", "..", "x", f"{ID}", f"{ID}.email", f"{ID}.email.", f"{ID}.email.1.2"),
        *(f"{ID}.sms.1", f"{ID}.EMAIL.1", f"{ID}.email.-1", f"{ID}.email.1234567"),
        *(f"{str(ID).upper()}.email.1", f"{str(ID)[:-1]}.email.1", f" {ID}.email.1"),
        *(f"{ID}.email.1\n", f"{ID}.email.\u0661", f"{ID}_email_1", "null", '{"$gt": ""}'),
    ],
)
def test_malformed_reference_is_rejected(text: str) -> None:
    assert AttemptReference.parse(text) is None


@given(st.text(max_size=60))
def test_any_text_is_a_reference_or_rejected(text: str) -> None:
    reference = AttemptReference.parse(text)
    assert reference is None or str(reference).split(".")[:2] == text.split(".")[:2]


def test_claim_has_the_reference_of_its_attempt() -> None:
    claim = claimed(notification_id=ID, attempt_count=2, channel=Channel.PUSH)
    assert claim.reference == f"{ID}.push.2"


def test_claim_has_the_retry_state() -> None:
    claim = claimed(attempt_count=3, uncounted_attempts=1)
    assert claim.retry_state.counted_attempts == 2
    assert claim.retry_state.priority is claim.priority
    assert claim.retry_state.first_due_at == claim.first_due_at


@pytest.mark.parametrize(
    ("channel", "address"),
    [
        (Channel.EMAIL, "ada@example.com"),
        (Channel.WHATSAPP, "+351912345678"),
        (Channel.PUSH, None),
        (Channel.IN_APP, None),
    ],
)
def test_only_email_and_whatsapp_have_addresses(channel: Channel, address: str | None) -> None:
    recipient = Recipient(email="ada@example.com", phone="+351912345678", device_ids=("d",))
    assert recipient.address(channel) == address


def test_stored_recipient_and_content_can_be_empty() -> None:
    stored: Any = {"recipient": {}, "content": {}}
    assert recipient_of(stored) == Recipient()
    assert content_of(stored) == Content()
    stored["recipient"] = {"device_ids": ["a", "b"]}
    assert recipient_of(stored).device_ids == ("a", "b")
