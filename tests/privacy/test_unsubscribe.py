"""The link by which somebody unsubscribes: what is in it, for whom, and for how long."""

import base64
import re
from typing import Any

import msgspec
import pytest
from bson import ObjectId
from hypothesis import given
from hypothesis import strategies as st

from domain.content import Recipient
from domain.states import Category, Channel
from notifyproject.platform.encryption import encrypt_token
from privacy import unsubscribe
from privacy.unsubscribe import (
    MAX_TOKEN_LENGTH,
    UnknownLinkError,
    parse_link,
    unsubscribe_url,
    url_for,
)
from tests.support.factories.records import claimed

ID = ObjectId("a" * 24)
ADA = "ada@example.com"


def token(address: str = ADA, *, locale: str | None = "pt", **fields: Any) -> str:
    """Return the last part of a link."""
    given = {"channel": Channel.EMAIL, "notification_id": ID} | fields
    return url_for(address=address, locale=locale, **given).rpartition("/")[2]


# Who gets one.


def test_a_marketing_mail_has_one() -> None:
    url = unsubscribe_url(claimed(category=Category.MARKETING))
    assert url is not None
    assert parse_link(url.rpartition("/")[2]).address == ADA


@pytest.mark.parametrize("category", [Category.TRANSACTIONAL, Category.ALERT])
def test_nobody_subscribes_to_receipts_and_alerts(category: Category) -> None:
    assert unsubscribe_url(claimed(category=category)) is None


@pytest.mark.parametrize("channel", [Channel.PUSH, Channel.WHATSAPP, Channel.IN_APP])
def test_only_a_mail_has_one(channel: Channel) -> None:
    assert unsubscribe_url(claimed(category=Category.MARKETING, channel=channel)) is None


def test_without_an_address_there_is_none() -> None:
    one = claimed(category=Category.MARKETING, recipient=Recipient(phone="+351912345678"))
    assert unsubscribe_url(one) is None


@pytest.mark.parametrize("is_test", [True, False])
def test_it_says_whether_its_mail_was_a_test(is_test: bool) -> None:
    url = unsubscribe_url(claimed(category=Category.MARKETING, is_test=is_test))
    assert url is not None
    assert parse_link(url.rpartition("/")[2]).is_test is is_test


def test_a_link_from_before_links_said_so_is_no_test() -> None:
    told = ("email", ADA, ID.binary, "pt")
    text = encrypt_token(msgspec.msgpack.encode(told), purpose=unsubscribe.PURPOSE)
    found = parse_link(text)
    assert (found.address, found.locale, found.is_test) == (ADA, "pt", False)


def test_links_of_earlier_releases_open() -> None:
    found = parse_link(
        "i0AuEfXTPRr5kZv3uq-TpissnnkCRfNcxdaOIV4PG6ymMJ-Um3gISRmKOANCkCDvQ5_LTabgEC3M"
    )
    assert (found.address, found.notification_id, found.locale) == (ADA, ID, "pt")


def test_it_is_where_people_reach_the_web(settings: Any) -> None:
    settings.PUBLIC_URL = "https://notify.example.com"
    url = unsubscribe_url(claimed(category=Category.MARKETING))
    assert url is not None
    assert re.fullmatch(r"https://notify\.example\.com/u/[A-Za-z0-9_-]{60,200}", url)


# What it says, and to whom.


@given(
    address=st.emails(),
    channel=st.sampled_from(Channel),
    raw=st.binary(min_size=12, max_size=12),
    locale=st.none() | st.sampled_from(["pt", "pt-BR", "en"]),
)
def test_it_tells_us_who_is_meant(
    address: str, channel: Channel, raw: bytes, locale: str | None
) -> None:
    one = parse_link(token(address, channel=channel, notification_id=ObjectId(raw), locale=locale))
    assert (one.address, one.channel, one.locale) == (address, channel, locale)
    assert one.notification_id == ObjectId(raw)


def test_it_tells_nobody_else() -> None:
    text = token()
    raw = base64.urlsafe_b64decode(text + "==")
    for word in (b"ada", b"example", b"email", b"pt", ID.binary):
        assert word not in raw
        assert word not in text.encode()


def test_the_same_mail_has_the_same_link_and_another_has_another() -> None:
    assert token() == token()
    others = [token("bob@example.com"), token(notification_id=ObjectId()), token(locale="en")]
    assert len({token(), *others}) == 4


def test_the_longest_address_has_one() -> None:
    address = "a" * 64 + "@" + "\u00e9" * 180 + ".example"
    assert len(token(address, locale="x" * 35)) <= MAX_TOKEN_LENGTH
    assert parse_link(token(address, locale="x" * 35)).address == address


def test_whoever_is_meant_is_not_shown() -> None:
    assert "ada" not in repr(parse_link(token()))


# Which are ours.


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "abc", "A" * 22, "A" * 100, "A" * (MAX_TOKEN_LENGTH + 1), "%%%%", "a/b", "="),
        *("\u00e9" * 40, "\x00" * 40, "aaaa aaaa", "null", "../../etc/passwd"),
    ],
)
def test_any_text_may_come_from_outside(text: str) -> None:
    with pytest.raises(UnknownLinkError):
        parse_link(text)


@given(st.text(max_size=200) | st.from_regex(r"[A-Za-z0-9_-]{20,200}", fullmatch=True))
def test_nobody_makes_one_up(text: str) -> None:
    with pytest.raises(UnknownLinkError):
        parse_link(text)


@given(place=st.integers(0, 200), character=st.sampled_from("ABCxyz019_-"))
def test_one_that_was_changed_is_none(place: int, character: str) -> None:
    text = token()
    place %= len(text) - 1
    changed = text[:place] + character + text[place + 1 :]
    if changed != text:
        with pytest.raises(UnknownLinkError):
            parse_link(changed)


@pytest.mark.parametrize("cut", [1, 2, 3, 10, 50])
def test_one_that_was_cut_off_is_none(cut: int) -> None:
    with pytest.raises(UnknownLinkError):
        parse_link(token()[:-cut])


def test_one_of_another_installation_is_none(settings: Any) -> None:
    text = token()
    settings.SECRET_KEY = "another-secret" + "1" * 40
    with pytest.raises(UnknownLinkError):
        parse_link(text)


def test_a_new_secret_key_leaves_the_old_links_alone(settings: Any) -> None:
    text, old = token(), settings.SECRET_KEY
    settings.SECRET_KEY = "another-secret" + "1" * 40
    settings.SECRET_KEY_FALLBACKS = ["in-between" + "2" * 40, old]
    assert parse_link(text).address == ADA
    assert token() != text
