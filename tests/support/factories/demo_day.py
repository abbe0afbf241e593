"""A realistic day of a shop, for tests and screenshots of the console."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from domain.channels import Channel
from domain.content import Content, Recipient
from domain.errors import FailureCode
from domain.states import DeliveryStatus, Priority
from monitoring import rollup
from notifications.content import rendering
from notifications.store import acceptance, leases, receipts
from notifications.store.claims import ClaimedDelivery, Settlement
from notifications.store.new_notifications import NewNotification
from notifications.store.receipts import DeliveryReceipt
from notifications.store.references import AttemptReference
from notifyproject.db.collections import collection
from tests.support.factories import demo_shop as shop
from tests.support.factories import notifications as factories

EMAIL, PUSH, WHATSAPP, IN_APP = Channel.EMAIL, Channel.PUSH, Channel.WHATSAPP, Channel.IN_APP
S, F = DeliveryStatus, FailureCode
PROVIDERS = {EMAIL: "sendgrid", PUSH: "fcm", WHATSAPP: "whatsapp"}
PAYMENT = {"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"}
WAVE = timedelta(minutes=30)
WAVES = 47
OUTAGE = range(5, 9)
"""Half-hours, counted back from now, of the email provider's outage."""
SPOILED = 0.4
"""Share of mail that failed in the outage."""
REFUSED = 0.03
"""Share that is refused at any time."""
DOWN = (F.PROVIDER_ERROR, "SendGrid had a problem of its own. (503)")
REFUSALS = {
    EMAIL: (F.BLOCKED, "421 4.7.0 Too many messages for this mailbox at once."),
    PUSH: (F.INVALID_RECIPIENT, "UNREGISTERED: the app is gone from this device."),
    WHATSAPP: (F.WINDOW_CLOSED, "131047: more than 24 hours since the person last wrote."),
}
HOST = "worker@notify-1"
FAILED_ORDER = 86_412


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    slug: str
    channels: tuple[Channel, ...]
    share: int
    data: dict[str, Any]
    priority: Priority = Priority.HIGH


KINDS = (
    Kind(slug="payment_confirmed", channels=(EMAIL, IN_APP), share=5, data=PAYMENT),
    Kind(slug="order_shipped", channels=(EMAIL, PUSH, IN_APP), share=4, data={"order": "12345"}),
    Kind(slug="new_sale", channels=(WHATSAPP, IN_APP), share=3, data=PAYMENT),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The objects of the day that tests look for."""

    failed: ObjectId
    """A mail that failed after four attempts. Its in-app message arrived."""
    customer: shop.Customer


def store_day(*, now: datetime, busy: int, waves: int = WAVES) -> Day:
    """Store a day that ends now, with at most ``busy`` notifications per half-hour."""
    chance = random.Random(7)
    app = shop.open_up(now=now)
    for wave in range(waves, 0, -1):
        # The shop is busiest by day: twelve hours ago it was night.
        count = max(2, round(busy * (0.2 + 0.8 * abs(WAVES / 2 - wave) / (WAVES / 2))))
        at = now - wave * WAVE
        _send([_any(chance, app, at) for _ in range(count)], wave=wave, chance=chance)
    customer = shop.CUSTOMERS[0]
    failed = _tried_four_times(customer, app, at=now - 7 * WAVE)
    _leave_open(chance, app, now)
    _log_a_call(now)
    rollup.rebuild(since=now - waves * WAVE, until=now, now=now)
    rollup.run(now=now)
    collection("heartbeats").insert_many(
        [{"_id": name, "at": now - timedelta(seconds=12)} for name in ("sweep", "canary")]
    )
    return Day(failed=failed, customer=customer)


def new(
    kind: Kind, customer: shop.Customer, app: ObjectId, *, at: datetime, order: int, **fields: Any
) -> NewNotification:
    recipient = Recipient(email=customer.email, phone=customer.phone, name=customer.name)
    data = {**kind.data, "order_id": order}
    subject, body = rendering.render_text(name=kind.slug, data=data, recipient=recipient)
    usual = {
        "user_id": customer.user_id,
        "client_id": app,
        "recipient": recipient,
        "type": kind.slug,
        "priority": kind.priority,
        "content": Content(subject=subject, body=body, template_id=kind.slug, template_version=0),
        "data": data,
        "entity_id": f"order-{order}",
        "created_at": at,
    }
    return factories.new(**{**usual, "channels": kind.channels, **fields})


def _any(chance: random.Random, app: ObjectId, at: datetime) -> NewNotification:
    (kind,) = chance.choices(KINDS, weights=[kind.share for kind in KINDS])
    order = chance.randrange(84_000, 88_000)
    return new(kind, chance.choice(shop.CUSTOMERS), app, at=at, order=order)


def _send(some: Sequence[NewNotification], *, wave: int, chance: random.Random) -> None:
    """Send notifications, and apply their receipts."""
    at = some[0].created_at
    acceptance.accept(some, now=at)
    for channel, provider in PROVIDERS.items():
        ids = [item.id for item in some if channel in {d.channel for d in item.deliveries}]
        claims = leases.claim(ids=ids, channel=channel, worker=HOST, now=at)
        begun = leases.start(claims, provider=provider, worker=HOST, now=at)
        is_down = channel is EMAIL and wave in OUTAGE
        ended = [_end(delivery, _problem(delivery, is_down, chance), chance) for delivery in begun]
        leases.settle(ended, now=at + timedelta(seconds=1))
        if channel is not PUSH:
            for end in ended:
                if end.status is S.SENT and chance.random() < 0.93:
                    _arrive(end, at=at + timedelta(seconds=3))


def _problem(
    claim: ClaimedDelivery, is_down: bool, chance: random.Random
) -> tuple[FailureCode, str] | None:
    if is_down and chance.random() < SPOILED:
        return DOWN
    return REFUSALS[claim.channel] if chance.random() < REFUSED else None


def _end(
    claim: ClaimedDelivery, problem: tuple[FailureCode, str] | None, chance: random.Random
) -> Settlement:
    code, reason = problem or (None, None)
    took = round(chance.lognormvariate(4.9, 0.45))
    status = 503 if code is F.PROVIDER_ERROR else 404 if code else 202
    return factories.settlement(
        claim,
        S.FAILED if code else S.SENT,
        at=claim.first_due_at + timedelta(milliseconds=300 + took),
        duration_ms=took,
        provider=PROVIDERS[claim.channel],
        provider_message_id=None if code else f"{claim.notification_id}-{claim.channel}",
        response={"status": status},
        code=code,
        reason=reason,
    )


def _arrive(end: Settlement, *, at: datetime) -> None:
    claim = end.claimed
    report = DeliveryReceipt(
        reference=AttemptReference(claim.notification_id, claim.channel, claim.attempt_count),
        status=S.DELIVERED,
        at=at,
        provider=end.provider,
        provider_message_id=end.provider_message_id,
        code=None,
        reason="",
    )
    receipts.apply_receipt(report, now=at)


def _tried_four_times(customer: shop.Customer, app: ObjectId, *, at: datetime) -> ObjectId:
    """Return a notification whose mail failed after four attempts."""
    notification = new(KINDS[0], customer, app, at=at, order=FAILED_ORDER)
    acceptance.accept([notification], now=at)
    begins = at
    for wait in (1, 5, 25, None):
        begun = factories.start(factories.claim(notification.id, at=begins), at=begins)
        ends = begins + timedelta(milliseconds=420)
        begins = begins + timedelta(minutes=wait or 0)
        settled = factories.settlement(
            begun,
            S.PENDING if wait else S.FAILED,
            at=ends,
            duration_ms=420,
            next_attempt_at=begins if wait else None,
            reason=DOWN[1],
        )
        leases.settle([settled], now=ends)
    return notification.id


def _leave_open(chance: random.Random, app: ObjectId, now: datetime) -> None:
    """Store scheduled, retrying, unknown, and due notifications."""
    people = shop.CUSTOMERS
    later = [now + timedelta(hours=hours) for hours in (2, 5, 20)]
    scheduled = [
        new(KINDS[0], people[n], app, at=now, order=88_001 + n, send_at=at, scheduled_at=at)
        for n, at in enumerate(later)
    ]
    open_ones = [new(KINDS[0], people[n + 4], app, at=now, order=88_010 + n) for n in range(4)]
    acceptance.accept([*scheduled, *open_ones], now=now)
    for waiting, status in zip(open_ones, (S.PENDING, S.PENDING, S.UNKNOWN), strict=False):
        begun = factories.start(factories.claim(waiting.id, at=now), at=now)
        code = F.TIMEOUT if status is S.UNKNOWN else F.RATE_LIMITED
        reason = (
            "SendGrid gave no answer in time." if code is F.TIMEOUT else "Too much at once. (429)"
        )
        leases.settle(
            [factories.settlement(begun, status, at=now, code=code, reason=reason)], now=now
        )


def _log_a_call(now: datetime) -> None:
    """Store two processed webhooks and one unprocessed."""
    counts = {"event_count": 12, "applied_count": 12, "unmatched_count": 0, "processed_at": now}
    calls: list[dict[str, Any]] = [
        {"provider": "sendgrid", "received_at": now - timedelta(minutes=9), "body": "[]", **counts},
        {"provider": "whatsapp", "received_at": now - timedelta(minutes=4), "body": "{}", **counts},
        {"provider": "sendgrid", "received_at": now - timedelta(minutes=2), "body": "[]"}
        | {"event_count": 3, "applied_count": 0, "unmatched_count": 0},
    ]
    collection("webhook_log").insert_many(calls)
