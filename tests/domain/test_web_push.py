"""Subscriptions of browsers: which endpoints and keys are taken."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from domain.web_push import (
    MAX_ENDPOINT_LENGTH,
    decode_base64url,
    encode_base64url,
    endpoint_host,
    read_auth,
    read_point,
)
from tests.support.tables import each_case

SERVICES = ("fcm.googleapis.com", "push.services.mozilla.com", "push.apple.com")
SANDBOX = "http://127.0.0.1:8001"


@each_case(
    "endpoint, host",
    [
        ("https://fcm.googleapis.com/fcm/send/dHIo:APA91b-_", "fcm.googleapis.com"),
        (
            "https://updates.push.services.mozilla.com/wpush/v2/gAAA_-==",
            "updates.push.services.mozilla.com",
        ),
        ("https://web.push.apple.com/QF8w7V0M5Z", "web.push.apple.com"),
        ("https://fcm.googleapis.com/w/?token=BQY%2bA%3d", "fcm.googleapis.com"),
        (f"{SANDBOX}/push/web.push.apple.com/ada.0123", "web.push.apple.com"),
    ],
)
def test_endpoint_of_a_push_service_is_taken(endpoint: str, host: str) -> None:
    assert endpoint_host(endpoint, services=SERVICES, stand_in=SANDBOX) == host


@each_case(
    "endpoint",
    [
        "http://fcm.googleapis.com/x",
        "https://fcm.googleapis.com:8443/x",
        "https://fcm.googleapis.com:443/x",
        "https://fcm.googleapis.com",
        "https://ada@fcm.googleapis.com/x",
        "https://fcm.googleapis.com@evil.example/x",
        "https://fcm.googleapis.com.evil.example/x",
        "https://evilfcm.googleapis.com/x",
        # A pattern over the URL takes these.
        "https://evil.example/fcm.googleapis.com/",
        "https://evil.example/x.google.com/",
        "https://evil.example#fcm.googleapis.com/",
        "https://evil.example\\@fcm.googleapis.com/x",
        "https://fcm.googleapis.com\\.evil.example/x",
        "https://FCM.googleapis.com/x",
        "https://fcm.googleapis.com/x y",
        "https://fcm.googleapis.com/x\n",
        "https://fcm.googleapis.com/x#y",
        "https://fcm.googleapis.com/é",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        f"https://fcm.googleapis.com/{'x' * MAX_ENDPOINT_LENGTH}",
        f"{SANDBOX}/push/evil.example/x",
        f"{SANDBOX}.evil.example/push/fcm.googleapis.com/x",
        f"{SANDBOX}/v1/fcm.googleapis.com/x",
        "",
    ],
)
def test_any_other_endpoint_is_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match=r"an https URL|a host of"):
        endpoint_host(endpoint, services=SERVICES, stand_in=SANDBOX)


def test_sandbox_stands_in_for_no_service_where_none_is_configured() -> None:
    with pytest.raises(ValueError, match="an https URL"):
        endpoint_host("/push/fcm.googleapis.com/x", services=SERVICES)


@given(raw=st.binary(min_size=1, max_size=80))
def test_base64url_is_read_with_and_without_padding(raw: bytes) -> None:
    text = encode_base64url(raw)
    assert decode_base64url(text) == raw
    assert decode_base64url(text + "=" * (-len(text) % 4)) == raw


def test_every_key_of_the_curve_is_a_point_and_its_neighbours_are_none() -> None:
    for _ in range(50):
        key = ec.generate_private_key(ec.SECP256R1()).public_key()
        point = key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        assert read_point(encode_base64url(point)) == point
        with pytest.raises(ValueError, match="a point on P-256"):
            read_point(encode_base64url(point[:-1] + bytes([point[-1] ^ 1])))


@each_case(
    "raw, problem",
    [
        (bytes(65), "begin with 4"),
        (b"\x04" + bytes(64), "a point on P-256"),
        (b"\x04" + b"\xff" * 64, "a point on P-256"),
        (b"\x04" + bytes(63), "65 bytes"),
        (b"\x02" + bytes(32), "65 bytes"),
    ],
)
def test_other_bytes_are_no_key(raw: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_point(encode_base64url(raw))


@each_case("text", ["", "AA", "A" * 24, "BTBZMqHH6r4Tts7J/aSIgg", "BTBZMqHH6r4Tts7J_aSIg!", "é"])
def test_secret_has_16_bytes_of_base64url(text: str) -> None:
    assert read_auth("BTBZMqHH6r4Tts7J_aSIgg==") == read_auth("BTBZMqHH6r4Tts7J_aSIgg")
    with pytest.raises(ValueError, match=r"16 bytes|base64url"):
        read_auth(text)
