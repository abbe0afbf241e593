"""The timeline of a notification's page, and how the page refreshes it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from access.models import APIClient
from console.notifications.timeline import Rank, TimelineEvent, in_order
from delivery import provider_pauses
from domain.channels import Channel
from domain.content import Content, Recipient
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from domain.time import utc_now
from domain.wait_reasons import WaitReason
from notifications.actions import actions
from notifications.models import Notification
from notifications.receipts import device_receipts
from notifications.receipts.device_receipts import DeviceEvent
from notifications.receipts.processor import apply_receipts
from notifications.store import leases, removal
from notifications.store.claims import NotSent
from notifyproject.db.collections import collection
from notifyproject.platform import audit
from privacy import erasure
from providers.contract import Receipt, ReceiptKind
from tests.support.clients.console import make_staff, signed_in
from tests.support.factories import notifications as factories
from tests.support.factories.push import deliver, push
from tests.support.fakes.provider import ScriptedProvider
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST = "/admin/notifications/notification/"
ADA = "ada@example.com"
VIEW = "notifications.view_notification"
SECOND = timedelta(seconds=1)
S, K = DeliveryStatus, ReceiptKind


def lines(client: Client, document: Any) -> list[str]:
    """Return the events as text: channel, title, note, detail."""
    events = client.get(f"{LIST}{document['_id']}/change/").context["timeline"]
    parts = (
        (
            "Next:" if event.is_next else "",
            event.channel_label,
            unescape(strip_tags(event.title)),
            unescape(strip_tags(event.note)),
            event.detail or "",
        )
        for event in events
    )
    return [" ".join(filter(None, line)) for line in parts]


def report(
    document: Any, kind: ReceiptKind, *, reason: str | None = None, at: datetime | None = None
) -> None:
    """Apply a provider's receipt on the first attempt to email a notification."""
    receipt = Receipt(
        reference=f"{document['_id']}.email.1",
        provider_id="sg-1",
        kind=kind,
        at=at or utc_now(),
        reason=reason,
        event_id=f"{document['_id']}-{kind}",
        address=ADA,
    )
    apply_receipts([receipt], provider="sendgrid", now=utc_now())


def sent(**fields: Any) -> Any:
    now = utc_now()
    return factories.settled(S.SENT, at=now, created_at=now, **fields)


def test_timeline_tells_why_an_email_bounced_and_who_resent_it(console: Client) -> None:
    document = sent(request_id="req-7")
    report(document, K.QUEUED)
    report(document, K.BOUNCED, reason="550 no such user")
    assert lines(console, document) == [
        f"Accepted by {factories.CLIENT}",
        "Email Attempt 1 Sent SendGrid · 12 ms",
        "Email Queued by the provider receipt",
        "Email Bounced receipt 550 no such user",
        "Email Address suppressed: hard bounce",
    ]
    form = {"channel": "email", "address": "ada@home.example", "confirmed": "yes"}
    console.post(f"{LIST}{document['_id']}/correct/", form)
    (resent,) = collection("notifications").find({"resent_from": document["_id"]})
    last = lines(console, document)[-1]
    assert last == f"Resent as {resent['_id']} Queued on Email by maria"
    assert lines(console, resent)[0].startswith(f"Resent from {document['_id']}")
    assert lines(console, resent)[-1] == "Next: Email Queued"


@each_case("provider_clock", [0, -3, 2])
@each_case(
    "kinds, shown",
    [
        ((K.DELIVERED, K.QUEUED), ["Queued by the provider", "Delivered"]),
        (
            (K.CLICKED, K.OPENED, K.DELIVERED, K.DEFERRED, K.QUEUED),
            [
                "Queued by the provider",
                "Deferred by the receiving server",
                "Delivered",
                "Opened",
                "Clicked",
            ],
        ),
        ((K.BOUNCED, K.QUEUED), ["Queued by the provider", "Bounced", "Address suppressed"]),
        ((K.BLOCKED, K.DEFERRED), ["Deferred by the receiving server", "Blocked by the receiving"]),
        ((K.REJECTED,), ["Dropped by the provider"]),
        ((K.READ, K.DELIVERED, K.SENT), ["Sent by the provider", "Delivered", "Read"]),
        ((K.COMPLAINED, K.DELIVERED), ["Delivered", "Spam complaint", "Address suppressed"]),
    ],
)
def test_events_of_one_second_stand_in_the_order_of_their_causes(
    console: Client, provider_clock: int, kinds: Sequence[ReceiptKind], shown: list[str]
) -> None:
    collection("suppressions").delete_many({})
    accepted_at = utc_now().replace(microsecond=600_000) - 10 * SECOND
    sent_at = accepted_at + SECOND / 10
    document = factories.settled(S.SENT, at=sent_at, created_at=accepted_at)
    whole_second = accepted_at.replace(microsecond=0) + provider_clock * SECOND
    for kind in kinds:
        report(document, kind, at=whole_second)
    found = [line.removeprefix("Email ") for line in lines(console, document)]
    expected = ["Accepted", "Attempt 1", *shown]
    assert [line[: len(text)] for line, text in zip(found, expected, strict=True)] == expected


def test_receipt_of_a_retry_stands_after_the_retry() -> None:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def event(seconds: float, title: str, rank: Rank, *, is_reported: bool = False) -> Any:
        return TimelineEvent(
            at=at + seconds * SECOND,
            title=title,
            rank=rank,
            channel=Channel.EMAIL,
            is_reported=is_reported,
        )

    events = [
        event(61, "delivered", Rank.DELIVERED, is_reported=True),
        event(61, "queued", Rank.QUEUED, is_reported=True),
        event(1, "deferred", Rank.DEFERRED, is_reported=True),
        event(61.5, "attempt 2", Rank.ATTEMPT),
        event(1.5, "attempt 1", Rank.ATTEMPT),
        event(0.9, "accepted", Rank.ACCEPTED),
        event(62.1, "resent", Rank.RESENT),
    ]
    assert [event.title for event in in_order(events)] == [
        "accepted",
        "attempt 1",
        "deferred",
        "attempt 2",
        "queued",
        "delivered",
        "resent",
    ]


def test_repeated_deletion_by_a_client_is_one_line(console: Client) -> None:
    shop = APIClient.objects.create(name="shop")
    document = factories.accepted(created_at=utc_now(), client_id=shop.pk)
    for _ in range(2):
        removal.delete(notification_id=document["_id"], client_id=shop.pk, now=utc_now())
        audit.record_client_action(
            shop, model=Notification, object_id=str(document["_id"]), message="Deleted."
        )
    for _ in range(2):
        audit.record_client_action(
            shop, model=Notification, object_id=str(document["_id"]), message="Cancelled: email."
        )
    shown = lines(console, document)
    assert sum(line.startswith("Deleted") for line in shown) == 1
    assert [line for line in shown if "Cancelled:" in line] == ["Cancelled: email. by client shop"]


def test_receipts_that_change_no_state_are_shown(console: Client) -> None:
    document = sent()
    for kind in (K.DELIVERED, K.OPENED, K.CLICKED, K.COMPLAINED):
        report(document, kind)
        report(document, kind)
    shown = [line for line in lines(console, document) if line.endswith("receipt")]
    assert shown == [
        "Email Delivered receipt",
        "Email Opened receipt",
        "Email Clicked receipt",
        "Email Spam complaint receipt",
    ]


def test_in_app_delivery_and_reading_are_shown(console: Client) -> None:
    document = factories.accepted(created_at=utc_now(), channels=(Channel.IN_APP,))
    marked = {"$set": {"marked_read_at": utc_now() + SECOND}}
    collection("notifications").update_one({"_id": document["_id"]}, marked)
    assert lines(console, document)[1:] == ["In-app Delivered", "Marked as read"]


def test_push_names_the_device_of_each_attempt_and_receipt(
    console: Client, fcm: ScriptedProvider
) -> None:
    now = utc_now()
    phone = factories.device("phone", at=now, device_model="Pixel 9")
    factories.device("tablet", at=now, device_model="Galaxy Tab")
    notification_id = push(created_at=now, send_at=now)
    deliver(notification_id, at=now)
    device_receipts.apply_device_receipt(
        device_id=phone,
        notification_id=notification_id,
        client_id=factories.CLIENT,
        event=DeviceEvent.OPENED,
        now=now + 5 * SECOND,
    )
    shown = lines(console, factories.read(notification_id))
    assert sum(line.startswith("Push Attempt 1 Sent") for line in shown) == 2
    assert any("Galaxy Tab" in line for line in shown)
    assert "Push Opened Pixel 9" in shown


@each_case(
    "code, reason, expected",
    [
        (FailureCode.QUIET_HOURS, None, "Next: Email Quiet hours until "),
        (
            FailureCode.CHANNEL_UNAVAILABLE,
            WaitReason.PROVIDER_PAUSED,
            "Next: Email Held: SendGrid paused by maria (OPS-12)",
        ),
    ],
)
def test_wait_is_the_last_line(
    console: Client, code: FailureCode, reason: WaitReason | None, expected: str
) -> None:
    now = utc_now()
    provider_pauses.pause("sendgrid", by="maria", reason="OPS-12", now=now)
    claim = factories.claimed(at=now, created_at=now)
    held = NotSent(
        claimed=claim,
        status=S.PENDING,
        code=code,
        reason="Later.",
        held_reason=reason,
        next_attempt_at=now + 60 * SECOND,
    )
    leases.settle_not_sent([held], now=now)
    assert lines(console, factories.read(claim.notification_id))[-1].startswith(expected)


def test_suppressed_delivery_without_an_attempt_says_why(console: Client) -> None:
    now = utc_now()
    claim = factories.claimed(at=now, created_at=now)
    suppressed = NotSent(
        claimed=claim, status=S.SUPPRESSED, code=FailureCode.SUPPRESSED, reason="Hard bounce."
    )
    leases.settle_not_sent([suppressed], now=now)
    document = factories.read(claim.notification_id)
    assert lines(console, document)[-1] == "Email Suppressed Hard bounce."
    page = console.get(f"{LIST}{claim.notification_id}/change/").content.decode()
    assert "Time not recorded" not in page


def test_reason_of_a_receipt_is_masked_and_removed_by_an_erasure(
    console: Client, support: Client
) -> None:
    document = sent()
    report(document, K.BOUNCED, reason=f"550 {ADA} unknown")
    assert any(ADA in line for line in lines(console, document))
    assert not any(ADA in line for line in lines(support, document))
    erasure.erase("ada", now=utc_now())
    assert collection("provider_events").count_documents({"reason": {"$exists": True}}) == 0
    assert "Email Bounced receipt" in lines(console, document)


def test_receipt_of_a_newer_version_is_shown_as_it_is(console: Client) -> None:
    document = sent()
    report(document, K.BOUNCED)
    collection("provider_events").update_many({}, {"$set": {"kind": "teleported"}})
    assert "Email teleported receipt" in lines(console, document)


def refresh(client: Client, document: Any, was: str = "") -> Any:
    return client.get(f"{LIST}{document['_id']}/refresh/", {"was": was})


def test_page_is_refreshed_only_after_a_change(console: Client) -> None:
    document = sent()
    version = console.get(f"{LIST}{document['_id']}/change/").context["version"]
    assert refresh(console, document, version).status_code == 204
    report(document, K.OPENED)
    changed = refresh(console, document, version)
    assert (changed.status_code, changed.context["version"] != version) == (200, True)
    text = changed.content.decode()
    assert 'id="state"' in text
    assert 'hx-swap-oob="true"' in text
    assert "<html" not in text


def test_refreshes_stop_once_everything_has_ended(console: Client) -> None:
    document = sent()
    assert 'hx-trigger="every 2s"' in refresh(console, document).content.decode()
    report(document, K.DELIVERED)
    assert "hx-trigger" not in refresh(console, document).content.decode()
    page = console.get(f"{LIST}{document['_id']}/change/").content.decode()
    assert "every 2s" not in page
    actions.resend(notification_id=document["_id"], channels=None, now=utc_now())
    # The state of the resend is on the page too.
    assert 'hx-trigger="every 2s"' in refresh(console, document).content.decode()


def test_page_is_refreshed_slowly_until_the_send_time(console: Client) -> None:
    later = utc_now() + timedelta(hours=1)
    document = factories.accepted(created_at=utc_now(), send_at=later, scheduled_at=later)
    assert 'hx-trigger="every 30s"' in refresh(console, document).content.decode()


def test_refresh_requires_the_view_permission_and_a_notification(console: Client) -> None:
    document = sent()
    assert refresh(signed_in(make_staff("nobody")), document).status_code == 403
    assert refresh(console, {"_id": "0" * 24}).status_code == 404
    assert refresh(console, {"_id": "nonsense"}).status_code == 404


def test_reading_the_page_masks_addresses_without_the_permission(support: Client) -> None:
    document = sent()
    assert ADA not in refresh(support, document).content.decode()


def test_preview_of_a_text_shows_no_subject(console: Client) -> None:
    document = sent(
        channel=Channel.SMS,
        recipient=Recipient(phone="+351912345678"),
        content=Content(subject="A subject", body="A text"),
    )
    page = console.get(f"{LIST}{document['_id']}/change/").content.decode()
    assert '<div class="bubble">A text</div>' in page


def test_attempt_shows_what_its_parts_cost(console: Client, settings: Any) -> None:
    settings.SMS_PRICES, settings.SMS_CURRENCY = {"PT": Decimal("0.036")}, "EUR"
    document = sent(channel=Channel.SMS, recipient=Recipient(phone="+351912345678"))
    collection("delivery_attempts").update_many({}, {"$set": {"units": 2}})
    (line,) = [line for line in lines(console, document) if "Attempt 1" in line]
    assert "2 parts · about 0.072 EUR" in line
    settings.SMS_PRICES = {}
    (line,) = [line for line in lines(console, document) if "Attempt 1" in line]
    assert "2 parts · price unknown" in line
