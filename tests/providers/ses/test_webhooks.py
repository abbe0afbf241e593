"""Events of SES: what each says of a mail, and of an address."""

import json
from typing import Any

import pytest

from providers.contract import AddressEffect, ReceiptKind
from tests.support.providers import aws
from tests.support.providers.ses import (
    MESSAGE_ID,
    REFERENCE,
    account,
    bounce,
    event,
    parsed,
    receipt_of,
)
from tests.support.providers.webhook_requests import webhook_request
from tests.support.tables import each_case

K, E = ReceiptKind, AddressEffect
UNKNOWN_USER = "550 5.1.1 user unknown"
GROUP = "550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup; authentication required"


def complaint(**fields: Any) -> dict[str, Any]:
    return event(
        "Complaint",
        complaint={
            "complainedRecipients": [{"emailAddress": "ada@example.com"}],
            "timestamp": "2026-11-21T11:59:59.000Z",
            "complaintFeedbackType": "abuse",
            **fields,
        },
    )


@each_case(
    "found, kind, effect",
    [
        (event("Send", send={}), K.SENT, None),
        (event("Delivery", delivery={"timestamp": "2026-11-21T11:59:59Z"}), K.DELIVERED, None),
        (
            event(
                "DeliveryDelay",
                deliveryDelay={
                    "timestamp": "2026-11-21T11:59:59Z",
                    "delayType": "MailboxFull",
                    "delayedRecipients": [{"emailAddress": "ada@example.com"}],
                },
            ),
            K.DEFERRED,
            None,
        ),
        (event("Reject", reject={"reason": "Bad content"}), K.REJECTED, None),
        (event("Rendering Failure", failure={"errorMessage": "No"}), K.REJECTED, None),
        (event("Open", open={"timestamp": "2026-11-21T11:59:59Z"}), K.OPENED, None),
        (event("Click", click={"timestamp": "2026-11-21T11:59:59Z"}), K.CLICKED, None),
        (bounce("Permanent", "General", UNKNOWN_USER), K.BOUNCED, E.HARD_BOUNCE),
        (bounce("Permanent", "General"), K.BOUNCED, E.HARD_BOUNCE),
        (bounce("Permanent", "NoEmail", UNKNOWN_USER), K.BOUNCED, E.HARD_BOUNCE),
        (bounce("Permanent", "Suppressed"), K.BOUNCED, E.HARD_BOUNCE),
        (bounce("Permanent", "OnAccountSuppressionList"), K.BOUNCED, E.HARD_BOUNCE),
        (bounce("Permanent", "UnsubscribedRecipient"), K.BOUNCED, E.UNSUBSCRIBED),
        # Our servers or the content, not the address.
        (bounce("Permanent", "General", "550 5.7.1 blocked using a blocklist"), K.BLOCKED, None),
        (bounce("Permanent", "General", "552 5.3.4 message too big"), K.BLOCKED, None),
        # The mailbox exists, and takes no mail of ours.
        (bounce("Permanent", "General", GROUP), K.BLOCKED, None),
        (bounce("Permanent", "General", "550 5.7.1 members only list"), K.BLOCKED, None),
        # The mailbox may exist.
        (bounce("Permanent", "General", "552 5.2.2 mailbox full"), K.BOUNCED, E.SOFT_BOUNCE),
        (bounce("Permanent", "General", "550 5.7.1 local policy"), K.BOUNCED, E.SOFT_BOUNCE),
        (bounce("Permanent", "General", "550 5.4.4 no route to host"), K.BOUNCED, E.SOFT_BOUNCE),
        # SES sent nothing: the text is its own.
        (bounce("Permanent", "OnAccountSuppressionList", "not sent"), K.BOUNCED, E.HARD_BOUNCE),
        (bounce("Transient", "General", "450 4.4.7 expired"), K.BLOCKED, None),
        (bounce("Transient", "General", "550 5.3.0 denied"), K.BLOCKED, None),
        (bounce("Transient", "ContentRejected", "550 spam"), K.BLOCKED, None),
        (bounce("Transient", "MailboxFull", "552 5.2.2 full"), K.BOUNCED, E.SOFT_BOUNCE),
        (bounce("Undetermined", "Undetermined"), K.BLOCKED, None),
        (bounce("Another", "General", UNKNOWN_USER), K.BLOCKED, None),
        (complaint(), K.COMPLAINED, E.COMPLAINT),
        (complaint(complaintFeedbackType=None), K.COMPLAINED, E.COMPLAINT),
        # SES sent nothing, because of an earlier complaint.
        (complaint(complaintSubType="OnAccountSuppressionList"), K.REJECTED, E.COMPLAINT),
    ],
)
def test_event_has_its_kind_and_effect(
    found: dict[str, Any], kind: ReceiptKind, effect: AddressEffect | None
) -> None:
    receipt = receipt_of(found)
    assert (receipt.kind, receipt.address_effect) == (kind, effect)
    assert (receipt.reference, receipt.provider_id) == (REFERENCE, MESSAGE_ID)
    assert (receipt.event_id, receipt.address) == (aws.ID, "ada@example.com")


@each_case(
    "found",
    [
        # Out of office: the mail was delivered.
        bounce("Transient", "General"),
        complaint(complaintFeedbackType="not-spam"),
        event("Subscription", subscription={}),
        event("New", new={}),
        {"notificationType": "AmazonSnsSubscriptionSucceeded", "message": "Hello"},
    ],
)
def test_event_that_says_nothing_changes_nothing(found: dict[str, Any]) -> None:
    result = parsed(found)
    assert (result.receipts, result.unreadable_count) == ((), 0)
    assert result.reply is not None
    assert result.reply.status == 200


def test_sentence_of_a_new_destination_is_counted_and_acknowledged() -> None:
    result = parsed("Successfully validated SNS topic for Amazon SES event publishing.")
    assert (result.receipts, result.unreadable_count, result.logged) == ((), 1, None)


def test_times_and_reasons_are_those_of_the_event() -> None:
    receipt = receipt_of(bounce("Permanent", "General", "550 5.1.1 <ada@example.com>: unknown"))
    assert receipt.at.isoformat() == "2026-11-21T11:59:59+00:00"
    assert receipt.reason == "Permanent. General. smtp; 550 5.1.1 <[address]>: unknown"
    assert receipt_of(event("Send")).at.isoformat() == "2026-11-21T11:59:30.123000+00:00"


def test_notification_of_an_identity_names_its_type_otherwise() -> None:
    found = bounce("Permanent", "General", UNKNOWN_USER)
    found["notificationType"] = found.pop("eventType")
    assert receipt_of(found).kind is K.BOUNCED


@each_case(
    "mail, reference",
    [
        ({"headers": None}, REFERENCE),
        ({"headers": [], "headersTruncated": True}, REFERENCE),
        ({"tags": None}, REFERENCE),
        ({"headers": None, "tags": None}, None),
        ({"headers": [7, {"name": "X"}], "tags": {"reference": []}}, None),
    ],
)
def test_reference_is_read_from_the_header_or_the_tag(
    mail: dict[str, Any], reference: str | None
) -> None:
    receipt = receipt_of(event("Delivery", mail=mail))
    assert (receipt.reference, receipt.provider_id) == (reference, MESSAGE_ID)


def test_each_recipient_has_a_receipt_with_an_id_of_its_own() -> None:
    found = bounce("Permanent", "General", UNKNOWN_USER)
    found["bounce"]["bouncedRecipients"] *= 2
    assert [receipt.event_id for receipt in parsed(found).receipts] == [aws.ID, f"{aws.ID}:1"]


@each_case(
    "address, expected",
    [
        ("Ada <ada@example.com>", "ada@example.com"),
        ("ada@example.com, eve@example.com", None),
        ("nobody", None),
        (7, None),
    ],
)
def test_odd_address_is_none(address: Any, expected: str | None) -> None:
    found = bounce("Permanent", "General", UNKNOWN_USER, emailAddress=address)
    assert receipt_of(found).address == expected


def test_log_has_neither_subject_nor_headers_and_is_read_again() -> None:
    result = parsed(bounce("Permanent", "General", UNKNOWN_USER))
    logged = result.logged or ""
    assert "secret" not in logged
    assert json.loads(logged)["reference"] == REFERENCE
    assert account().parse_logged(logged.encode()).receipts == result.receipts


@each_case(
    "found",
    [
        event("Delivery", mail={"timestamp": None}),
        event("Delivery", mail={"timestamp": "soon"}),
        event("Delivery", delivery={"timestamp": "2026-11-21T11:59:59"}),
        {"mail": {}},
        {"eventType": 7},
    ],
)
def test_unreadable_event_is_refused(found: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"time|event"):
        parsed(found)


def test_half_of_an_emoji_stops_nothing() -> None:
    found = bounce("Permanent", "General", "550 5.1.1 \ud83d")
    raw = aws.envelope(json.dumps(found))
    result = account().parse_webhook(webhook_request(raw, aws.headers()))
    assert [receipt.kind for receipt in result.receipts] == [K.BOUNCED]
