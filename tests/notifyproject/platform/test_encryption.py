"""What is sealed opens with our keys only, unchanged, and for what it is about."""

import base64
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from notifyproject.platform.encryption import (
    DecryptionError,
    NoEncryptionKeyError,
    check_keys,
    decrypt,
    encrypt,
)
from notifyproject.settings.base import configure
from notifyproject.settings.environment import read

OLD, NEW = b"o" * 32, b"n" * 48
ABOUT = "notification:5:code"


@pytest.fixture(autouse=True, scope="module")
def two_keys() -> Iterator[None]:
    with override_settings(FIELD_ENCRYPTION_KEYS={"new": NEW, "old": OLD}):
        yield


def listed(text: str) -> Any:
    """Return the setting that a variable makes."""
    return configure(read({"FIELD_ENCRYPTION_KEYS": text}))["FIELD_ENCRYPTION_KEYS"]


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


@given(plain=st.binary(max_size=200), about=st.text(max_size=50))
def test_what_is_sealed_opens(plain: bytes, about: str) -> None:
    sealed = encrypt(plain, associated_data=about)
    assert re.fullmatch(r"v1\.new\.[A-Za-z0-9_-]+", sealed)
    assert decrypt(sealed, associated_data=about) == plain


@given(plain=st.binary(max_size=50), about=st.text(max_size=20), other=st.text(max_size=20))
def test_it_does_not_open_about_something_else(plain: bytes, about: str, other: str) -> None:
    if about != other:
        with pytest.raises(DecryptionError, match="other associated data"):
            decrypt(encrypt(plain, associated_data=about), associated_data=other)


@cache
def a_code() -> str:
    """Return a sealed code, the same each time: it begins with a random number."""
    return encrypt(b"493021", associated_data=ABOUT)


@given(data=st.data())
def test_a_text_that_was_changed_anywhere_does_not_open(data: st.DataObject) -> None:
    sealed = a_code()
    place = data.draw(st.integers(0, len(sealed) - 1))
    letter = data.draw(st.sampled_from("abcXYZ019-_. =").filter(lambda x: x != sealed[place]))
    with pytest.raises(DecryptionError) as caught:
        decrypt(sealed[:place] + letter + sealed[place + 1 :], associated_data=ABOUT)
    assert "493021" not in str(caught.value)


@given(text=st.text(max_size=80))
def test_any_other_text_is_refused_with_the_one_error(text: str) -> None:
    whole = encrypt(b"x", associated_data=ABOUT)
    for tried in (text, f"v1.new.{text}", whole[: min(len(text), len(whole) - 1)]):
        with pytest.raises(DecryptionError):
            decrypt(tried, associated_data=ABOUT)


def test_the_same_sealed_twice_are_two_texts() -> None:
    assert encrypt(b"1", associated_data=ABOUT) != encrypt(b"1", associated_data=ABOUT)


def test_an_old_key_opens_until_it_is_taken_away() -> None:
    with override_settings(FIELD_ENCRYPTION_KEYS={"old": OLD}):
        sealed = encrypt(b"1", associated_data=ABOUT)
    assert sealed.startswith("v1.old.")
    assert decrypt(sealed, associated_data=ABOUT) == b"1"
    with (
        override_settings(FIELD_ENCRYPTION_KEYS={"new": NEW}),
        pytest.raises(DecryptionError, match="does not list its key, old"),
    ):
        decrypt(sealed, associated_data=ABOUT)


def test_another_key_of_the_same_name_does_not_open() -> None:
    sealed = encrypt(b"1", associated_data=ABOUT)
    with (
        override_settings(FIELD_ENCRYPTION_KEYS={"new": OLD}),
        pytest.raises(DecryptionError, match="changed"),
    ):
        decrypt(sealed, associated_data=ABOUT)


def test_without_a_key_nothing_is_sealed() -> None:
    with override_settings(FIELD_ENCRYPTION_KEYS={}), pytest.raises(NoEncryptionKeyError):
        encrypt(b"1", associated_data=ABOUT)


def test_keys_are_listed_the_newest_first() -> None:
    text = f" 2026-a:{b64(NEW)} , 2025:{b64(OLD)}"
    assert list(listed(text).items()) == [("2026-a", NEW), ("2025", OLD)]
    assert listed("") == {}


@pytest.mark.parametrize(
    "text", ["secret", "a:", ":c2VjcmV0", "A:c2VjcmV0", "a.b:c2VjcmV0", "a:se!cret", "a:secre"]
)
def test_what_is_no_key_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="FIELD_ENCRYPTION_KEYS: key 2 is not") as caught:
        listed(f"b:{b64(OLD)},{text}")
    assert text not in str(caught.value)


def test_two_keys_of_one_name_are_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="key 2 is not"):
        listed(f"a:{b64(OLD)},a:{b64(NEW)}")


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ({"a": NEW, "b": OLD}, []),
        ({}, ["notifyproject.E001"]),
        ({"a": b"x" * 31}, ["notifyproject.E002"]),
        ({"a": NEW, "b": b"x" * 31}, ["notifyproject.E002"]),
        ({"a": b"s" * 40}, ["notifyproject.E003"]),
        ({"a": b"i" * 40}, ["notifyproject.E003"]),
        ({"a": base64.b64decode("s" * 40 + "ssss")}, []),
    ],
)
def test_weak_and_shared_keys_stop_the_start(
    settings: Any, keys: dict[str, bytes], found: list[str]
) -> None:
    settings.SECRET_KEY, settings.INBOX_SIGNING_KEY = "s" * 40, "i" * 40
    settings.FIELD_ENCRYPTION_KEYS = keys
    assert [problem.id for problem in check_keys()] == found


def test_the_secret_key_read_as_base64_is_the_secret_key(settings: Any) -> None:
    settings.SECRET_KEY = b64(NEW)
    assert [problem.id for problem in check_keys()] == ["notifyproject.E003"]
