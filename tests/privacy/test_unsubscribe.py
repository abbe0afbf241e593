"""Unsubscribe links: contents, encryption, and validity."""

import base64
import re
from typing import Any

import msgspec
import pytest
from bson import ObjectId
from hypothesis import given
from hypothesis import strategies as st

from domain.channels import Channel
from domain.content import Recipient
from domain.states import Category
from notifyproject.platform.encryption import encrypt_token
from privacy import unsubscribe
from privacy.unsubscribe import MAX_TOKEN_LENGTH, UnknownLinkError, parse_link, unsubscribe_url
from tests.support.factories.notifications import claimed_delivery as claimed
from tests.support.tables import each_case

ID = ObjectId("a" * 24)
ADA = "ada@example.com"


def token(address: str = ADA, *, locale: str | None = "pt", **fields: Any) -> str:
    fields = {"channel": Channel.EMAIL, "notification_id": ID} | fields
    return unsubscribe.url_for(address=address, locale=locale, **fields).rpartition("/")[2]


@pytest.mark.parametrize("is_test", [True, False])
def test_marketing_email_has_a_link_with_address_and_test_flag(is_test: bool) -> None:
    url = unsubscribe_url(claimed(category=Category.MARKETING, is_test=is_test))
    assert url is not None
    found = parse_link(url.rpartition("/")[2])
    assert (found.address, found.is_test) == (ADA, is_test)


@each_case(
    "fields",
    [
        {"category": Category.TRANSACTIONAL},
        {"category": Category.ALERT},
        {"channel": Channel.PUSH},
        {"channel": Channel.WHATSAPP},
        {"channel": Channel.IN_APP},
        {"recipient": Recipient(phone="+351912345678")},
    ],
)
def test_other_delivery_has_no_link(fields: dict[str, Any]) -> None:
    assert unsubscribe_url(claimed(**({"category": Category.MARKETING} | fields))) is None


def test_link_without_a_test_flag_is_no_test() -> None:
    payload = ("email", ADA, ID.binary, "pt")
    found = parse_link(encrypt_token(msgspec.msgpack.encode(payload), purpose=unsubscribe.PURPOSE))
    assert (found.address, found.locale, found.is_test) == (ADA, "pt", False)


def test_links_of_earlier_releases_open() -> None:
    found = parse_link(
        "i0AuEfXTPRr5kZv3uq-TpissnnkCRfNcxdaOIV4PG6ymMJ-Um3gISRmKOANCkCDvQ5_LTabgEC3M"
    )
    assert (found.address, found.notification_id, found.locale) == (ADA, ID, "pt")


def test_link_uses_the_public_url(settings: Any) -> None:
    settings.PUBLIC_URL = "https://notify.example.com"
    url = unsubscribe_url(claimed(category=Category.MARKETING))
    assert url is not None
    assert re.fullmatch(r"https://notify\.example\.com/u/[A-Za-z0-9_-]{60,200}", url)


@given(
    address=st.emails(),
    channel=st.sampled_from(Channel),
    raw=st.binary(min_size=12, max_size=12),
    locale=st.none() | st.sampled_from(["pt", "pt-BR", "en"]),
)
def test_link_identifies_address_channel_and_notification(
    address: str, channel: Channel, raw: bytes, locale: str | None
) -> None:
    link = parse_link(token(address, channel=channel, notification_id=ObjectId(raw), locale=locale))
    assert (link.address, link.channel, link.locale) == (address, channel, locale)
    assert link.notification_id == ObjectId(raw)


def test_link_is_encrypted() -> None:
    text = token()
    raw = base64.urlsafe_b64decode(text + "==")
    for word in (b"ada", b"example", b"email", b"pt", ID.binary):
        assert word not in raw
        assert word not in text.encode()


def test_link_is_deterministic() -> None:
    assert token() == token()
    others = [token("bob@example.com"), token(notification_id=ObjectId()), token(locale="en")]
    assert len({token(), *others}) == 4


def test_longest_address_fits() -> None:
    address = "a" * 64 + "@" + "\u00e9" * 180 + ".example"
    assert len(token(address, locale="x" * 35)) <= MAX_TOKEN_LENGTH
    assert parse_link(token(address, locale="x" * 35)).address == address


def test_parsed_link_hides_the_address_in_its_repr() -> None:
    assert "ada@" not in repr(parse_link(token()))


@each_case(
    "text",
    [
        "",
        "a",
        "abc",
        "A" * 22,
        "A" * 100,
        "A" * (MAX_TOKEN_LENGTH + 1),
        "%%%%",
        "a/b",
        "=",
        "\u00e9" * 40,
        "\x00" * 40,
        "aaaa aaaa",
        "null",
        "../../etc/passwd",
    ],
)
def test_malformed_token_is_refused(text: str) -> None:
    with pytest.raises(UnknownLinkError):
        parse_link(text)


@given(st.text(max_size=200) | st.from_regex(r"[A-Za-z0-9_-]{20,200}", fullmatch=True))
def test_random_token_is_refused(text: str) -> None:
    with pytest.raises(UnknownLinkError):
        parse_link(text)


@given(place=st.integers(0, 200), character=st.sampled_from("ABCxyz019_-"))
def test_changed_token_is_refused(place: int, character: str) -> None:
    text = token()
    place %= len(text) - 1
    changed = text[:place] + character + text[place + 1 :]
    if changed != text:
        with pytest.raises(UnknownLinkError):
            parse_link(changed)


@pytest.mark.parametrize("cut", [1, 2, 3, 10, 50])
def test_truncated_token_is_refused(cut: int) -> None:
    with pytest.raises(UnknownLinkError):
        parse_link(token()[:-cut])


def test_token_of_another_secret_key_is_refused(settings: Any) -> None:
    text = token()
    settings.SECRET_KEY = "another-secret" + "1" * 40
    with pytest.raises(UnknownLinkError):
        parse_link(text)


def test_fallback_secret_key_accepts_old_links(settings: Any) -> None:
    text, old = token(), settings.SECRET_KEY
    settings.SECRET_KEY = "another-secret" + "1" * 40
    settings.SECRET_KEY_FALLBACKS = ["in-between" + "2" * 40, old]
    assert parse_link(text).address == ADA
    assert token() != text
