"""VAPID: keys, the sender's address, and tokens."""

from datetime import timedelta

import jwt
import pytest

from devices.push_keys import PRIVATE_LENGTH, InvalidKeysError, new_key, read_keys
from domain.web_push import decode_base64url, read_point
from providers.webpush.vapid import MAX_TOKENS, Signer
from tests.support.factories.notifications import FIXED_NOON
from tests.support.tables import each_case

ORIGIN = "https://updates.push.services.mozilla.com"
SUBJECT = "mailto:push@example.com"


def token_of(header: str) -> str:
    assert header.startswith("vapid t=")
    return header.removeprefix("vapid t=").partition(", k=")[0]


def test_token_names_the_origin_the_sender_and_an_end_within_a_day() -> None:
    key = new_key()
    signer = Signer([key], subject=SUBJECT)
    header = signer.authorization(key, origin=ORIGIN, now=FIXED_NOON)
    assert header.endswith(f", k={key.public_text}")
    claims = jwt.decode(
        token_of(header),
        key.private.public_key(),
        algorithms=["ES256"],
        audience=ORIGIN,
        options={"verify_exp": False},
    )
    end = FIXED_NOON + timedelta(hours=12)
    assert claims == {"aud": ORIGIN, "exp": int(end.timestamp()), "sub": SUBJECT}
    assert jwt.get_unverified_header(token_of(header)) == {"typ": "JWT", "alg": "ES256"}


def test_token_serves_one_origin_and_key_for_half_of_its_life() -> None:
    keys = [new_key(), new_key()]
    signer = Signer(keys, subject=SUBJECT)

    def header(minutes: float, *, key: int = 0, origin: str = ORIGIN) -> str:
        now = FIXED_NOON + timedelta(minutes=minutes)
        return signer.authorization(keys[key], origin=origin, now=now)

    first = header(0)
    assert header(359) == first
    assert header(0, origin="https://fcm.googleapis.com") != first
    assert header(0, key=1) != first
    assert header(360) != first


def test_tokens_of_any_number_of_origins_are_kept_within_bounds() -> None:
    key = new_key()
    signer = Signer([key], subject=SUBJECT)
    for number in range(MAX_TOKENS + 5):
        origin = f"https://x{number}.notify.windows.com"
        signer.authorization(key, origin=origin, now=FIXED_NOON)
    assert len(signer._tokens) == MAX_TOKENS


def test_token_of_the_future_is_not_used_after_the_clock_was_set_back() -> None:
    key = new_key()
    signer = Signer([key], subject=SUBJECT)
    first = signer.authorization(key, origin=ORIGIN, now=FIXED_NOON)
    earlier = FIXED_NOON - timedelta(days=2)
    assert signer.authorization(key, origin=ORIGIN, now=earlier) != first


def test_device_gets_the_key_it_subscribed_with_or_else_the_newest() -> None:
    newest, earlier, removed = new_key(), new_key(), new_key()
    signer = Signer([newest, earlier], subject=SUBJECT)
    assert signer.key_for(earlier.fingerprint) is earlier
    assert signer.key_for(removed.fingerprint) is newest


def test_key_is_read_as_it_is_written() -> None:
    key = new_key()
    (found,) = read_keys([key.private_text])
    assert (found.public, found.fingerprint) == (key.public, key.fingerprint)
    assert len(key.private_text) == 43
    assert read_point(key.public_text) == key.public


@each_case("text", ["", "a", "A" * 43, "_" * 43, "A" * 42 + "E=junk", "no key", "AQ" * 30])
def test_other_text_is_no_key_and_is_not_repeated(text: str) -> None:
    with pytest.raises(InvalidKeysError) as raised:
        read_keys([new_key().private_text, text])
    assert str(raised.value).startswith("Key 2 of WEBPUSH_KEYS is no private key")
    assert not text or len(text) < 3 or text not in str(raised.value)


@each_case(
    "subject, is_taken",
    [
        ("mailto:push@example.com", True),
        ("https://example.com", True),
        ("https://example.com:8443/contact", True),
        # All of these made Apple answer BadJwtToken.
        ("mailto: push@example.com", False),
        ("mailto:<push@example.com>", False),
        ("mailto:push@localhost", False),
        ("push@example.com", False),
        ("https://localhost:8080", False),
        ("http://example.com", False),
        ("", False),
    ],
)
def test_sender_is_an_address_that_every_service_takes(subject: str, *, is_taken: bool) -> None:
    if is_taken:
        assert Signer([new_key()], subject=subject)
    else:
        with pytest.raises(InvalidKeysError, match="WEBPUSH_SUBJECT"):
            Signer([new_key()], subject=subject)


def test_no_key_is_a_configuration_error() -> None:
    with pytest.raises(InvalidKeysError, match="no key"):
        Signer([], subject=SUBJECT)


def test_secret_is_in_no_text() -> None:
    key = new_key()
    assert key.private_text not in repr(key)
    assert len(decode_base64url(key.private_text)) == PRIVATE_LENGTH
