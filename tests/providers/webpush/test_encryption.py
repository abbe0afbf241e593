"""Encryption: the example of RFC 8291, and another implementation as the judge."""

import os

import http_ece
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from domain.web_push import decode_base64url, encode_base64url
from providers.webpush.encryption import MAX_PLAIN, RECORD_SIZE, encrypt

CURVE = ec.SECP256R1()
RFC = {
    "plain": b"When I grow up, I want to be a watermelon",
    "sender": "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw",
    "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcx"
    "aOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    "salt": "DGv6ra1nlYgDCS1FRnbzlw",
    "body": "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIg"
    "Dll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXL"
    "WyouBWLVWGNWQexSgSxsj_Qulcy4a-fN",
}


def public(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def test_body_is_that_of_the_standard() -> None:
    sender = ec.derive_private_key(int.from_bytes(decode_base64url(RFC["sender"])), CURVE)
    body = encrypt(
        RFC["plain"],
        p256dh=decode_base64url(RFC["p256dh"]),
        auth=decode_base64url(RFC["auth"]),
        sender=sender,
        salt=decode_base64url(RFC["salt"]),
    )
    assert encode_base64url(body) == RFC["body"]


@given(plain=st.binary(max_size=MAX_PLAIN))
def test_another_implementation_reads_every_body(plain: bytes) -> None:
    browser, auth = ec.generate_private_key(CURVE), os.urandom(16)
    body = encrypt(plain, p256dh=public(browser), auth=auth)
    assert len(body) <= RECORD_SIZE
    found = http_ece.decrypt(body, private_key=browser, auth_secret=auth, version="aes128gcm")
    assert found == plain


def test_no_two_bodies_are_equal() -> None:
    browser = public(ec.generate_private_key(CURVE))
    bodies = {encrypt(b"Paid", p256dh=browser, auth=bytes(16)) for _ in range(10)}
    assert len(bodies) == 10


def test_longest_text_fills_the_longest_body() -> None:
    browser = public(ec.generate_private_key(CURVE))
    assert len(encrypt(bytes(MAX_PLAIN), p256dh=browser, auth=bytes(16))) == RECORD_SIZE
    with pytest.raises(ValueError, match="at most 3993 bytes"):
        encrypt(bytes(MAX_PLAIN + 1), p256dh=browser, auth=bytes(16))
