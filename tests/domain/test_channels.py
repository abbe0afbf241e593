"""Traits of channels."""

from typing import Any

from domain.addresses import ADDRESS_KINDS, PHONE_NUMBER
from domain.addresses import ROOM as ROOM_ID
from domain.channels import (
    ADDRESS_CHANNELS,
    INBOX,
    PARTS,
    PUSH,
    ROOM,
    Channel,
    address_digest,
    address_key,
    addresses_in,
    channels_of,
)
from domain.channels.spec import Role, Targets
from tests.support.tables import each_case


def test_channels_are_in_the_order_of_lists() -> None:
    assert [channel.value for channel in Channel] == [
        "email",
        "push",
        "whatsapp",
        "sms",
        "room",
        "in_app",
    ]


@each_case("channel", list(Channel))
def test_exactly_channels_to_addresses_have_a_kind_of_address(channel: Channel) -> None:
    is_addressed = channel.spec.targets is Targets.ADDRESS
    assert (channel in ADDRESS_CHANNELS) is is_addressed
    assert (channel.spec.address in ADDRESS_KINDS.values()) is is_addressed
    assert (channel.spec.address is ROOM_ID) is (channel is ROOM)


def test_a_room_is_no_person() -> None:
    assert [channel for channel in Channel if not channel.is_personal] == [ROOM]
    assert addresses_in({"room": "ops"}) == []


def test_one_channel_is_the_inbox_and_one_has_devices() -> None:
    assert [channel for channel in Channel if channel.is_inbox] == [INBOX]
    assert [channel for channel in Channel if channel.has_devices] == [PUSH]


def test_a_part_belongs_to_one_channel_and_each_role_to_one_part() -> None:
    parts = [part for channel in Channel for part in channel.spec.parts]
    assert len(parts) == len(PARTS)
    for channel in Channel:
        roles = [part.role for part in channel.spec.parts]
        assert len(roles) == len(set(roles))
        assert set(roles) <= set(Role)


def test_channels_of_one_kind_of_address_share_its_field() -> None:
    assert channels_of(PHONE_NUMBER) == (Channel.WHATSAPP, Channel.SMS)
    stored = {"email": "ada@example.com", "phone": "+351912345678", "name": "Ada"}
    assert addresses_in(stored) == [
        (Channel.EMAIL, "ada@example.com"),
        (Channel.WHATSAPP, "+351912345678"),
        (Channel.SMS, "+351912345678"),
    ]
    assert addresses_in({"email": None}) == []


def test_an_address_is_compared_as_its_channel_folds_it() -> None:
    assert address_key("email", "Ada@Example.com") == "email:ada@example.com"
    assert address_key("whatsapp", "+5511987654321") == "whatsapp:+551187654321"
    # Each channel has its own suppressions, of one number too.
    assert address_key("sms", "+5511987654321") == "sms:+551187654321"
    # Stored by a version that has another channel.
    assert address_key("pigeon", "Loft 7") == "pigeon:Loft 7"
    assert address_digest("email", "ADA@example.com") == address_digest("email", "ada@example.com")


REACHED_BY = {
    Targets.ADDRESS: {"address"},
    Targets.DEVICES: {"has_device"},
    Targets.INBOX: {"user_id"},
    Targets.ROOM: {"address"},
    Targets.NOTHING: set[str](),
}
KNOWN = {"address": "ada@example.com", "user_id": "ada", "has_device": True}
UNKNOWN = {"address": None, "user_id": None, "has_device": False}


@each_case("channel", [*Channel, Channel("pigeon")])
@each_case("name", list(KNOWN))
def test_channel_reaches_who_has_what_it_sends_to(channel: Channel, name: str) -> None:
    facts: Any = UNKNOWN | {name: KNOWN[name]}
    assert channel.can_reach(**facts) == (name in REACHED_BY[channel.spec.targets])
