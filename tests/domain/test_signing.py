"""Signatures of the Standard Webhooks specification."""

import base64

import pytest

from domain import signing
from tests.support.tables import each_case

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE = "msg_p5jXN8AQM9LWM0D4loKWxJek"
SENT = 1614265330
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
"""The test vector of the standard's libraries."""


def test_known_message_has_the_known_signature() -> None:
    assert signing.sign(MESSAGE, SENT, BODY, secret=SECRET) == SIGNATURE


def test_headers_hold_the_id_and_the_send_time() -> None:
    assert signing.sign_headers(
        message_id=MESSAGE, timestamp=SENT, body=BODY, secrets=[SECRET]
    ) == {"webhook-id": MESSAGE, "webhook-timestamp": "1614265330", "webhook-signature": SIGNATURE}


def test_every_secret_signs() -> None:
    other = signing.new_secret()
    found = signing.sign_headers(
        message_id=MESSAGE, timestamp=SENT, body=BODY, secrets=[other, SECRET]
    )
    new, old = found["webhook-signature"].split(" ")
    assert old == SIGNATURE
    assert new == signing.sign(MESSAGE, SENT, BODY, secret=other)


@each_case(
    "message_id, timestamp, body",
    [
        ("msg_p5jXN8AQM9LWM0D4loKWxJel", SENT, BODY),
        (MESSAGE, SENT + 1, BODY),
        (MESSAGE, SENT, b'{"test":2432232314}'),
    ],
)
def test_any_difference_changes_the_signature(message_id: str, timestamp: int, body: bytes) -> None:
    assert signing.sign(message_id, timestamp, body, secret=SECRET) != SIGNATURE


def test_id_with_a_full_stop_is_not_signed() -> None:
    with pytest.raises(ValueError, match="full stop"):
        signing.sign_headers(message_id="evt_1.2", timestamp=SENT, body=BODY, secrets=[SECRET])


def test_new_secret_is_32_random_bytes_in_base64() -> None:
    first, second = signing.new_secret(), signing.new_secret()
    assert first != second
    assert first.startswith("whsec_")
    assert len(base64.b64decode(first.removeprefix("whsec_"), validate=True)) == 32


@each_case("text", ["", "whsec_not base64", "c2VjcmV0"])
def test_invalid_secret_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid secret"):
        signing.decode_secret(text)
