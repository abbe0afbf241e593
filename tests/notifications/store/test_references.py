"""References to attempts: their text, and what isn't one."""

from bson import ObjectId
from hypothesis import given
from hypothesis import strategies as st

from domain.channels import Channel
from notifications.store.references import AttemptReference
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


def test_reference_may_name_a_channel_of_another_version() -> None:
    reference = AttemptReference.parse(f"{ID}.pigeon.1")
    assert reference == AttemptReference(ID, Channel("pigeon"), 1)


@each_case(
    "text",
    [
        "",
        ".",
        "..",
        "x",
        f"{ID}",
        f"{ID}.email",
        f"{ID}.email.",
        f"{ID}.email.1.2",
        f"{ID}.{'x' * 41}.1",
        f"{ID}._sms.1",
        f"{ID}.EMAIL.1",
        f"{ID}.email.-1",
        f"{ID}.email.1234567",
        f"{str(ID).upper()}.email.1",
        f"{str(ID)[:-1]}.email.1",
        f" {ID}.email.1",
        f"{ID}.email.1\n",
        f"{ID}.email.\u0661",
        f"{ID}_email_1",
        "null",
        '{"$gt": ""}',
    ],
)
def test_malformed_reference_is_rejected(text: str) -> None:
    assert AttemptReference.parse(text) is None


@given(st.text(max_size=60))
def test_any_text_is_a_reference_or_rejected(text: str) -> None:
    reference = AttemptReference.parse(text)
    assert reference is None or str(reference).split(".")[:2] == text.split(".")[:2]
