"""SendGrid's event webhook: signatures and events."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from providers.contract import AddressEffect, InvalidSignatureError, Receipt, ReceiptKind
from providers.http import EXCERPT_LENGTH
from providers.sendgrid.provider import SendGrid
from providers.sendgrid.webhooks import REPLAY_WINDOW, SIGNATURE_HEADER, TIMESTAMP_HEADER
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers import sendgrid
from tests.support.providers.webhook_requests import receipts_of
from tests.support.tables import each_case

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = ec.generate_private_key(ec.SECP256R1())
REFERENCE = f"{'a' * 24}.email.1"
EPOCH = str(int(FIXED_NOON.timestamp()))
K = ReceiptKind


def public(key: ec.EllipticCurvePrivateKey) -> str:
    return base64.b64encode(
        key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    ).decode()


def account(public_key: str | None = None, now: datetime = FIXED_NOON) -> SendGrid:
    key = public(KEY) if public_key is None else public_key
    return sendgrid.account(webhook_public_key=key, clock=lambda: now)


def signed(
    raw: bytes, *, timestamp: str = EPOCH, key: ec.EllipticCurvePrivateKey = KEY
) -> dict[str, str]:
    signature = key.sign(timestamp.encode() + raw, ec.ECDSA(hashes.SHA256()))
    return {SIGNATURE_HEADER: base64.b64encode(signature).decode(), TIMESTAMP_HEADER: timestamp}


def event(**fields: Any) -> dict[str, Any]:
    return {
        "event": "delivered",
        "timestamp": int(FIXED_NOON.timestamp()),
        "sg_event_id": "e-1",
        "sg_message_id": "sg-1.filter0001.123.ABC-0",
        "reference": REFERENCE,
        "email": "ada@example.com",
        "smtp-id": "<x@y>",
        "unique_args": {"more": [1, 2]},
    } | fields


def received(*events: Any) -> list[Receipt]:
    raw = json.dumps(events).encode()
    return receipts_of(account(), signed(raw), raw)


@each_case(
    "age",
    [timedelta(0), REPLAY_WINDOW, -REPLAY_WINDOW, timedelta(minutes=9), timedelta(minutes=-9)],
)
def test_webhook_of_the_last_ten_minutes_is_read(age: timedelta) -> None:
    raw = b"[]"
    assert receipts_of(account(now=FIXED_NOON + age), signed(raw), raw) == []


@each_case("age", [REPLAY_WINDOW + timedelta(seconds=1), -REPLAY_WINDOW - timedelta(seconds=1)])
def test_old_webhook_is_refused(age: timedelta) -> None:
    with pytest.raises(InvalidSignatureError, match="10 minutes"):
        receipts_of(account(now=FIXED_NOON + age), signed(b"[]"), b"[]")


def test_webhook_needs_a_public_key() -> None:
    with pytest.raises(InvalidSignatureError, match="no public key"):
        receipts_of(account(public_key=""), signed(b"[]"), b"[]")


EMPTY_SIGNATURE = base64.b64encode(b"\x30\x06\x02\x01\x00\x02\x01\x00").decode()


@each_case(
    "headers",
    [
        signed(b"[]", key=OTHER_KEY),
        signed(b"[]") | {TIMESTAMP_HEADER: str(int(EPOCH) + 1)},
        {TIMESTAMP_HEADER: EPOCH},
        {SIGNATURE_HEADER: signed(b"[]")[SIGNATURE_HEADER]},
        *(
            {TIMESTAMP_HEADER: EPOCH, SIGNATURE_HEADER: signature}
            for signature in (
                "",
                " ",
                "x",
                "====",
                "not base64!",
                "AAAA",
                "\u00e9\u00e8",
                "\u0661\u0662",
                "\ud800",
                "A" * 100_000,
                "MEUCIQ==",
                EMPTY_SIGNATURE,
            )
        ),
    ],
)
def test_foreign_missing_or_malformed_signature_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidSignatureError):
        receipts_of(account(), headers, b"[]")


@given(st.text(max_size=100) | st.binary(max_size=80).map(lambda b: base64.b64encode(b).decode()))
def test_random_signature_is_refused(signature: str) -> None:
    with pytest.raises(InvalidSignatureError):
        receipts_of(
            account(),
            {SIGNATURE_HEADER: signature, TIMESTAMP_HEADER: EPOCH},
            b'[{"event": "delivered"}]',
        )


@each_case(
    "timestamp",
    [
        "",
        "now",
        "0",
        "-1",
        "1763726400000",
        "17637264",
        "1763726400.5",
        " 1763726400",
        "1763726400 ",
        "\u0661" * 10,
        "0x69205700",
        "1763726400\n",
        "9999999999",
        "NaN",
    ],
)
def test_malformed_timestamp_is_refused(timestamp: str) -> None:
    raw = b"[]"
    with pytest.raises(InvalidSignatureError):
        receipts_of(account(), signed(raw, timestamp=timestamp), raw)


@each_case(
    "public_key",
    ["x", "AAAA", "not base64!", "\u00e9", base64.b64encode(b"x" * 91).decode(), public(OTHER_KEY)],
)
def test_wrong_public_key_refuses_everything(public_key: str) -> None:
    with pytest.raises(InvalidSignatureError):
        receipts_of(account(public_key), signed(b"[]"), b"[]")


def test_invalid_public_key_has_its_own_message() -> None:
    with pytest.raises(InvalidSignatureError, match="configured public key"):
        receipts_of(account("not a key"), signed(b"[]"), b"[]")


def test_non_utf8_body_is_refused() -> None:
    raw = b"\xff\xfe["
    with pytest.raises(InvalidSignatureError):
        receipts_of(account(), signed(raw), raw)


@each_case(
    "fields, kind",
    [
        ({"event": "processed"}, K.QUEUED),
        ({"event": "deferred"}, K.DEFERRED),
        ({"event": "delivered"}, K.DELIVERED),
        ({"event": "open"}, K.OPENED),
        ({"event": "click"}, K.CLICKED),
        ({"event": "bounce"}, K.BOUNCED),
        ({"event": "bounce", "type": "bounce"}, K.BOUNCED),
        ({"event": "bounce", "type": "blocked"}, K.BLOCKED),
        ({"event": "delivered", "type": "blocked"}, K.DELIVERED),
        ({"event": "dropped"}, K.REJECTED),
        ({"event": "spamreport"}, K.COMPLAINED),
        ({"event": "unsubscribe"}, K.UNSUBSCRIBED),
        ({"event": "group_unsubscribe"}, K.UNSUBSCRIBED),
    ],
)
def test_event_has_its_kind(fields: dict[str, str], kind: ReceiptKind) -> None:
    (receipt,) = received(event(**fields))
    assert receipt.kind is kind


@each_case("name", ["group_resubscribe", "account_status_change", "", "DELIVERED"])
def test_unknown_event_is_ignored(name: str) -> None:
    assert [r.event_id for r in received(event(event=name), event(sg_event_id="e-2"))] == ["e-2"]


def test_event_becomes_a_receipt() -> None:
    (receipt,) = received(event(event="bounce", reason="550 no mailbox for ada@example.com"))
    assert receipt == Receipt(
        reference=REFERENCE,
        provider_id="sg-1",
        other_ids=(
            "sg-1.filter0001.123.ABC-0",
            "sg-1.filter0001.123",
            "sg-1.filter0001",
        ),
        kind=K.BOUNCED,
        at=FIXED_NOON,
        reason="550 no mailbox for [address]",
        event_id="e-1",
        address="ada@example.com",
        effect=AddressEffect.HARD_BOUNCE,
    )


@each_case(
    "sg_message_id, provider_id, other_ids",
    [
        (
            "14c5d75ce93.dfd.64b469.filter0001.0",
            "14c5d75ce93.dfd.64b469",
            (
                "14c5d75ce93.dfd.64b469.filter0001.0",
                "14c5d75ce93.dfd.64b469.filter0001",
                "14c5d75ce93.dfd",
                "14c5d75ce93",
            ),
        ),
        ("sg-1", "sg-1", ()),
        ("sg-1.new.0", "sg-1", ("sg-1.new.0", "sg-1.new")),
        ("", None, ()),
    ],
)
def test_message_id_ends_at_the_name_of_a_server(
    sg_message_id: str, provider_id: str | None, other_ids: tuple[str, ...]
) -> None:
    (receipt,) = received(event(sg_message_id=sg_message_id))
    assert (receipt.provider_id, receipt.other_ids) == (provider_id, other_ids)


def test_event_may_lack_our_fields() -> None:
    bare = {"event": "delivered", "timestamp": 1, "sg_event_id": "e-1"}
    (receipt,) = received(bare)
    assert (receipt.reference, receipt.provider_id, receipt.address) == (None, None, None)
    assert receipt.at == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


def test_events_keep_order_and_duplicates() -> None:
    ids = ["e-3", "e-1", "e-1", "e-2"]
    assert [r.event_id for r in received(*[event(sg_event_id=i) for i in ids])] == ids


@each_case("raw", [b"", b"{}", b"null", b'"x"', b"["])
def test_signed_body_of_another_shape_is_a_value_error(raw: bytes) -> None:
    with pytest.raises(ValueError, match="list"):
        receipts_of(account(), signed(raw), raw)


@each_case("timestamp", [10**12, 10**17, -(10**17), "soon", None])
def test_event_without_a_possible_time_is_skipped(timestamp: Any) -> None:
    assert [r.event_id for r in received(event(timestamp=timestamp), event(sg_event_id="e-2"))] == [
        "e-2"
    ]


def test_reason_is_truncated() -> None:
    (receipt,) = received(event(event="bounce", reason="x" * 100_000))
    assert receipt.reason == "x" * EXCERPT_LENGTH
