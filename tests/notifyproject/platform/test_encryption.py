"""Encrypted values can be decrypted only with the service's keys and their associated data."""

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
ASSOCIATED_DATA = "notification:5:code"


@pytest.fixture(autouse=True, scope="module")
def two_keys() -> Iterator[None]:
    with override_settings(FIELD_ENCRYPTION_KEYS={"new": NEW, "old": OLD}):
        yield


def listed(text: str) -> Any:
    return configure(read({"FIELD_ENCRYPTION_KEYS": text}))["FIELD_ENCRYPTION_KEYS"]


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


@given(plain=st.binary(max_size=200), about=st.text(max_size=50))
def test_encrypted_value_is_decrypted(plain: bytes, about: str) -> None:
    encrypted = encrypt(plain, associated_data=about)
    assert re.fullmatch(r"v1\.new\.[A-Za-z0-9_-]+", encrypted)
    assert decrypt(encrypted, associated_data=about) == plain


@given(plain=st.binary(max_size=50), about=st.text(max_size=20), other=st.text(max_size=20))
def test_other_associated_data_is_refused(plain: bytes, about: str, other: str) -> None:
    if about != other:
        with pytest.raises(DecryptionError, match="other associated data"):
            decrypt(encrypt(plain, associated_data=about), associated_data=other)


@cache
def encrypted_code() -> str:
    """Return an encrypted code, the same in all tests, although encryption is random."""
    return encrypt(b"493021", associated_data=ASSOCIATED_DATA)


@given(data=st.data())
def test_changed_ciphertext_is_refused(data: st.DataObject) -> None:
    encrypted = encrypted_code()
    place = data.draw(st.integers(0, len(encrypted) - 1))
    letter = data.draw(st.sampled_from("abcXYZ019-_. =").filter(lambda x: x != encrypted[place]))
    with pytest.raises(DecryptionError) as caught:
        decrypt(
            encrypted[:place] + letter + encrypted[place + 1 :], associated_data=ASSOCIATED_DATA
        )
    assert "493021" not in str(caught.value)


@given(text=st.text(max_size=80))
def test_any_other_text_raises_the_same_error(text: str) -> None:
    encrypted = encrypt(b"x", associated_data=ASSOCIATED_DATA)
    for tried in (text, f"v1.new.{text}", encrypted[: min(len(text), len(encrypted) - 1)]):
        with pytest.raises(DecryptionError):
            decrypt(tried, associated_data=ASSOCIATED_DATA)


def test_encryption_is_randomized() -> None:
    assert encrypt(b"1", associated_data=ASSOCIATED_DATA) != encrypt(
        b"1", associated_data=ASSOCIATED_DATA
    )


def test_old_key_decrypts_until_it_is_removed() -> None:
    with override_settings(FIELD_ENCRYPTION_KEYS={"old": OLD}):
        encrypted = encrypt(b"1", associated_data=ASSOCIATED_DATA)
    assert encrypted.startswith("v1.old.")
    assert decrypt(encrypted, associated_data=ASSOCIATED_DATA) == b"1"
    with (
        override_settings(FIELD_ENCRYPTION_KEYS={"new": NEW}),
        pytest.raises(DecryptionError, match="does not list its key, old"),
    ):
        decrypt(encrypted, associated_data=ASSOCIATED_DATA)


def test_changed_key_of_the_same_name_is_refused() -> None:
    encrypted = encrypt(b"1", associated_data=ASSOCIATED_DATA)
    with (
        override_settings(FIELD_ENCRYPTION_KEYS={"new": OLD}),
        pytest.raises(DecryptionError, match="changed"),
    ):
        decrypt(encrypted, associated_data=ASSOCIATED_DATA)


def test_encryption_needs_a_key() -> None:
    with override_settings(FIELD_ENCRYPTION_KEYS={}), pytest.raises(NoEncryptionKeyError):
        encrypt(b"1", associated_data=ASSOCIATED_DATA)


def test_keys_are_listed_newest_first() -> None:
    text = f"2026-a:{b64(NEW)},2025:{b64(OLD)}"
    assert list(listed(text).items()) == [("2026-a", NEW), ("2025", OLD)]
    assert listed("") == {}


@pytest.mark.parametrize(
    "text",
    [
        "secret",
        "a:",
        ":c2VjcmV0",
        "A:c2VjcmV0",
        "a.b:c2VjcmV0",
        "a:se!cret",
        "a:secre",
        f"b:{b64(NEW)}",  # a second key of this name
    ],
)
def test_invalid_or_repeated_key_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="FIELD_ENCRYPTION_KEYS: key 2 is not") as caught:
        listed(f"b:{b64(OLD)},{text}")
    assert text not in str(caught.value)


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
def test_weak_and_shared_keys_are_errors(
    settings: Any, keys: dict[str, bytes], found: list[str]
) -> None:
    settings.SECRET_KEY, settings.INBOX_SIGNING_KEY = "s" * 40, "i" * 40
    settings.FIELD_ENCRYPTION_KEYS = keys
    assert [problem.id for problem in check_keys()] == found


def test_base64_of_the_secret_key_counts_as_shared(settings: Any) -> None:
    settings.SECRET_KEY = b64(NEW)
    assert [problem.id for problem in check_keys()] == ["notifyproject.E003"]
