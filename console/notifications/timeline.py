"""Everything that happened to one notification, and what happens next, in order of cause and time.

A provider's clock may be off, and many providers give whole seconds. So an event never stands
before its cause: a receipt comes after the attempt that it reports, whatever its own time is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any

from bson import ObjectId
from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from devices.documents import DEVICES
from domain.channels import Channel
from domain.errors import RECEIPT_FAILURES
from domain.states import SUCCEEDED, AttemptStatus, DeliveryStatus
from domain.wait_reasons import HELD, describe_hold, find_waits
from notifications import queries
from notifications.catalog.texts import price_of_text
from notifications.documents.notification import DeliveryDocument, NotificationDocument
from notifications.documents.records import DeliveryAttemptDocument, ProviderEventDocument
from notifications.models import Notification
from notifications.store.reading import holds_of, recipient_of
from providers.contract import ReceiptKind
from providers.labels import provider_name
from recipients.documents import SuppressionDocument
from recipients.masking import mask_text

from ..texts.failure_codes import explain
from ..texts.labels import (
    ATTEMPT_LABELS,
    CHANNELS,
    DELIVERY_LABELS,
    RECEIPT_LABELS,
    code_label,
    notification_state,
    provider_label,
)
from ..texts.wait_reasons import WAIT_LABELS
from ..widgets import names, panels
from ..widgets.columns import chip, link
from ..widgets.formats import clock, latency
from ..widgets.links import DEVICE, NOTIFICATION
from ..widgets.prices import short_price
from ..widgets.waits import Pauses, find_pauses, wait_text

S, K = DeliveryStatus, ReceiptKind
_NOT_SENT = frozenset({S.SUPPRESSED, S.CANCELLED, S.EXPIRED})
DELETED = "Deleted."
"""The audit entry of a deletion by the client."""
SECOND = timedelta(seconds=1)
MAX_CLOCK_ERROR = timedelta(minutes=5)
"""A suppression that is at most this much earlier than a receipt was caused by it."""


class Rank(IntEnum):
    """What happens first of the events of one moment."""

    ACCEPTED = 0
    HELD = 1
    ATTEMPT = 2
    QUEUED = 3
    SENT = 4
    DEFERRED = 5
    DELIVERED = 6
    OPENED = 7
    CLICKED = 8
    ENDED = 9
    COMPLAINED = 10
    SUPPRESSED = 11
    OWN = 12
    STAFF = 13
    RESENT = 14


_RECEIPT_RANKS: Mapping[str, Rank] = {
    K.QUEUED: Rank.QUEUED,
    K.SENT: Rank.SENT,
    K.DEFERRED: Rank.DEFERRED,
    K.DELIVERED: Rank.DELIVERED,
    K.OPENED: Rank.OPENED,
    K.READ: Rank.OPENED,
    K.CLICKED: Rank.CLICKED,
    K.BOUNCED: Rank.ENDED,
    K.BLOCKED: Rank.ENDED,
    K.REJECTED: Rank.ENDED,
    K.FAILED: Rank.ENDED,
    K.COMPLAINED: Rank.COMPLAINED,
    K.UNSUBSCRIBED: Rank.COMPLAINED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What is stored about one notification, beside its document."""

    attempts: Sequence[DeliveryAttemptDocument]
    receipts: Sequence[ProviderEventDocument]
    audit: Sequence[Mapping[str, Any]]
    resends: Sequence[NotificationDocument]
    carriers: Sequence[NotificationDocument]
    """The notifications that were sent in place of its merged deliveries."""
    suppressions: Sequence[SuppressionDocument]
    device_names: Mapping[str, str]
    client_name: str
    pauses: Pauses

    def version(self, document: NotificationDocument) -> str:
        """Return a text that changes whenever the page shows something new."""
        others = (*self.resends, *self.carriers)
        resends = [f"{other['updated_at']:%s%f}" for other in others]
        counts = [len(self.attempts), len(self.receipts), len(self.audit), len(self.suppressions)]
        return "-".join(map(str, [f"{document['updated_at']:%s%f}", *counts, *resends]))


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEvent:
    """One line of the timeline."""

    at: datetime
    title: SafeString | str
    rank: Rank
    color: str = "calm"
    channel: Channel | None = None
    is_reported: bool = False
    """Its time is that of a provider or a device, whose clock may be off."""
    note: SafeString | str = ""
    """Who, by which provider, to which device, how long."""
    detail: str | None = ""
    """What the provider or the service said."""
    ids: Sequence[str] = ()
    response: str | None = None
    is_timed: bool = True
    """False if the time wasn't recorded; ``at`` is then only its place."""
    is_next: bool = False
    is_held: bool = False
    """It waits for a reason that its text names."""

    @property
    def channel_label(self) -> str:
        """The name of the channel; empty for an event of the notification."""
        return CHANNELS[self.channel] if self.channel else ""

    @property
    def channel_icon(self) -> str:
        """The icon of the channel."""
        return self.channel.spec.icon if self.channel else ""


def read_history(
    document: NotificationDocument, suppressions: Sequence[SuppressionDocument]
) -> History:
    """Read what happened to a notification. Raises PyMongoError."""
    attempts = queries.attempts_of(document["_id"])
    device_ids = sorted({attempt["device_id"] for attempt in attempts if attempt.get("device_id")})
    client_id = document["client_id"]
    carried_by = [id_ for delivery in document["delivery"] if (id_ := delivery.get("carried_by"))]
    return History(
        attempts=attempts,
        receipts=queries.receipts_of(document["_id"]),
        audit=panels.audit_log(Notification, document["_id"]),
        resends=queries.get_many(document["resent_as"]) if document["resent_as"] else [],
        carriers=queries.get_many(carried_by) if carried_by else [],
        suppressions=suppressions,
        device_names=_device_names(device_ids) if device_ids else {},
        client_name=names.client_names([client_id])[client_id],
        pauses=find_pauses(),
    )


def _device_names(device_ids: Sequence[str]) -> dict[str, str]:
    found = DEVICES().find({"_id": {"$in": list(device_ids)}}, {"device_model": 1, "platform": 1})
    return {
        device["_id"]: device.get("device_model")
        or f"{code_label(device['platform'])} {device['_id'][:12]}…"
        for device in found
    }


def timeline(
    document: NotificationDocument, history: History, *, unmasked: bool, now: datetime
) -> list[TimelineEvent]:
    """Return the events, the first first, and then what each open delivery waits for."""
    events = [
        _accepted(document, history),
        *(_attempt(attempt, document, history, unmasked=unmasked) for attempt in history.attempts),
        *(_receipt(receipt, unmasked=unmasked) for receipt in history.receipts),
        *_device_receipts(history),
        *_outcomes(document, history, unmasked=unmasked),
        *_own_events(document),
        *_suppressed(document, history),
        *_staff_events(history, now=now),
    ]
    return [*in_order(events), *_next_steps(document, history, now=now)]


def in_order(events: Sequence[TimelineEvent]) -> list[TimelineEvent]:
    """Return the events by time, but none before its cause.

    Of the events that a provider reports for one second, the cause comes first: it may have written
    whole seconds.
    """
    accepted_at = min((event.at for event in events if event.rank is Rank.ACCEPTED), default=None)
    places = [event.at if accepted_at is None else max(event.at, accepted_at) for event in events]
    for index, event in enumerate(events):
        if event.is_reported:
            places[index] = max(places[index], _attempt_before(event, events))
    # A stable order of the places of one channel: within a second, by cause.
    latest: dict[Channel | None, datetime] = {}
    reported = (index for index, event in enumerate(events) if event.is_reported)
    for index in sorted(
        reported,
        key=lambda index: (places[index].replace(microsecond=0), events[index].rank, places[index]),
    ):
        channel = events[index].channel
        latest[channel] = places[index] = max(places[index], latest.get(channel, places[index]))
    for index, event in enumerate(events):
        if event.rank is Rank.SUPPRESSED:
            causes = [
                place
                for earlier, place in zip(events, places, strict=True)
                if earlier.channel == event.channel
                and earlier.rank in (Rank.ENDED, Rank.COMPLAINED)
                and place - event.at <= MAX_CLOCK_ERROR
            ]
            places[index] = max([places[index], *causes])
    order = sorted(range(len(events)), key=lambda index: (places[index], events[index].rank))
    return [events[index] for index in order]


def _attempt_before(event: TimelineEvent, events: Sequence[TimelineEvent]) -> datetime:
    """Return when the attempt was made that a provider reports on."""
    made = sorted(
        other.at
        for other in events
        if other.rank is Rank.ATTEMPT and other.channel == event.channel
    )
    # The report may have whole seconds. The first attempt is before all reports.
    earlier = [at for at in made if at < event.at + SECOND]
    return max(earlier or made[:1], default=event.at)


def _accepted(document: NotificationDocument, history: History) -> TimelineEvent:
    title: SafeString | str = "Accepted"
    if document.get("resent_from") is not None:
        title = format_html("Resent from {}", notification_link(document["resent_from"]))
    elif document.get("scheduled_at") is not None:
        at = clock(document["scheduled_at"], now=document["created_at"])
        title = format_html("Accepted, scheduled for {}", at)
    return TimelineEvent(
        at=document["created_at"],
        title=title,
        rank=Rank.ACCEPTED,
        note=f"by {history.client_name}",
        ids=[document["request_id"]] if document.get("request_id") else (),
    )


def _attempt(
    attempt: DeliveryAttemptDocument,
    document: NotificationDocument,
    history: History,
    *,
    unmasked: bool,
) -> TimelineEvent:
    response, duration = attempt.get("platform_response"), attempt.get("duration_ms")
    label, color = ATTEMPT_LABELS[AttemptStatus(attempt["status"])]
    parts = [
        provider_label(attempt.get("provider")) or "",
        _device_link(attempt.get("device_id"), history),
        latency(duration / 1000) if duration is not None else "",
        _parts(attempt.get("units")),
        _price(attempt, document),
    ]
    note = SafeString("")
    for part in filter(None, parts):
        note = format_html("{} · {}", note, part) if note else format_html("{}", part)
    code, message = attempt.get("error_code"), attempt.get("error_message") or ""
    detail = f"{code_label(code)}: {message}" if code and message else code and code_label(code)
    text = json.dumps(response, indent=2, default=str) if response else None
    return TimelineEvent(
        at=attempt["attempted_at"],
        title=format_html("Attempt {} {}", attempt["attempt_number"], chip(label, color)),
        rank=Rank.ATTEMPT,
        color=color,
        channel=Channel(attempt["channel"]),
        note=note,
        detail=_masked(detail, unmasked=unmasked),
        ids=[attempt["provider_message_id"]] if attempt.get("provider_message_id") else (),
        response=_masked(text, unmasked=unmasked),
    )


def _parts(units: int | None) -> str:
    return "" if units is None else f"{units} {'part' if units == 1 else 'parts'}"


def _price(attempt: DeliveryAttemptDocument, document: NotificationDocument) -> str:
    """Return what an attempt costs by SMS_PRICES; empty if it sent no parts."""
    if not (units := attempt.get("units")):
        return ""
    number = recipient_of(document).address(Channel(attempt["channel"]))
    return short_price(price_of_text(number, units=units))


def _device_link(device_id: str | None, history: History) -> SafeString | str:
    if device_id is None:
        return ""
    if device_id not in history.device_names:
        return f"device {device_id[:12]}…"
    return link(reverse(DEVICE, args=[quote(device_id)]), history.device_names[device_id])


def _receipt(receipt: ProviderEventDocument, *, unmasked: bool) -> TimelineEvent:
    kind = receipt["kind"]
    title, color = RECEIPT_LABELS.get(kind, (kind, "calm"))
    cost = f"{receipt['cost']} {receipt['currency']}" if "cost" in receipt else ""
    parts = ("receipt", _parts(receipt.get("units")), cost)
    return TimelineEvent(
        at=receipt["at"],
        title=title,
        rank=_RECEIPT_RANKS.get(kind, Rank.SENT),
        is_reported=True,
        color=color,
        channel=Channel(receipt["channel"]),
        note=" · ".join(filter(None, parts)),
        detail=_masked(receipt.get("reason"), unmasked=unmasked),
    )


def _device_receipts(history: History) -> Iterator[TimelineEvent]:
    for attempt in history.attempts:
        for at, title, rank in (
            (attempt.get("delivered_at"), "Delivered", Rank.DELIVERED),
            (attempt.get("opened_at"), "Opened", Rank.OPENED),
        ):
            if at is not None:
                yield TimelineEvent(
                    at=at,
                    title=title,
                    rank=rank,
                    is_reported=True,
                    color="success",
                    channel=Channel(attempt["channel"]),
                    note=_device_link(attempt.get("device_id"), history),
                )


def _outcomes(
    document: NotificationDocument, history: History, *, unmasked: bool
) -> Iterator[TimelineEvent]:
    """Yield what the deliveries record and neither an attempt nor a receipt shows."""
    for delivery in document["delivery"]:
        channel, status = Channel(delivery["channel"]), S(delivery["status"])
        kinds = {receipt["kind"] for receipt in history.receipts if receipt["channel"] == channel}
        attempts = [attempt for attempt in history.attempts if attempt["channel"] == channel]
        attempted = {attempt.get("error_code") for attempt in attempts}
        for at, title, kind, by_device in (
            (delivery.get("delivered_at"), "Delivered", K.DELIVERED, "delivered_at"),
            (delivery.get("read_at"), "Read", K.READ, "opened_at"),
        ):
            # Unless a receipt of this kind or of a device shows it.
            is_shown = kind in kinds or any(by_device in attempt for attempt in attempts)
            if at is not None and not is_shown:
                yield TimelineEvent(
                    at=at,
                    title=title,
                    rank=_RECEIPT_RANKS[kind],
                    color="success",
                    channel=channel,
                    is_reported=True,
                )
        if status is S.MERGED and (merged_at := delivery.get("merged_at")):
            label, color = DELIVERY_LABELS[S.MERGED]
            yield TimelineEvent(
                at=merged_at,
                title=chip(label, color),
                rank=Rank.ENDED,
                color=color,
                channel=channel,
            )
        for hold in holds_of(delivery):
            outage = describe_hold(hold, provider=provider_name(hold.provider), is_over=False)
            yield TimelineEvent(
                at=hold.since,
                title=_masked(f"Held: {outage}", unmasked=unmasked) or "",
                rank=Rank.HELD,
                color="warning",
                channel=channel,
            )
        code = delivery.get("failure_code")
        is_reported = code in RECEIPT_FAILURES and bool(kinds)
        is_attempt = code in attempted
        if status is S.FAILED and not is_reported and not is_attempt:
            yield _ending(delivery, delivery.get("failed_at"), document, unmasked=unmasked)
        elif status in _NOT_SENT:
            yield _ending(delivery, delivery.get("ended_at"), document, unmasked=unmasked)


def _ending(
    delivery: DeliveryDocument,
    at: datetime | None,
    document: NotificationDocument,
    *,
    unmasked: bool,
) -> TimelineEvent:
    label, color = DELIVERY_LABELS[S(delivery["status"])]
    reason = delivery.get("failure_reason")
    meaning = explain(delivery.get("failure_code")).meaning
    place = delivery.get("last_attempt_at") or delivery["first_due_at"]
    return TimelineEvent(
        at=at or max(place, document["created_at"]),
        is_timed=at is not None,
        title=chip(label, color),
        rank=Rank.ENDED,
        color=color,
        channel=Channel(delivery["channel"]),
        detail=_masked(reason, unmasked=unmasked) or meaning[:1].upper() + meaning[1:],
    )


def _own_events(document: NotificationDocument) -> Iterator[TimelineEvent]:
    chosen = document.get("action")
    for at, title, color in (
        (document.get("marked_read_at"), "Marked as read", "success"),
        (document.get("unread_at"), "Marked as unread", "calm"),
        (document.get("acted_at"), f"Acted on: {chosen}" if chosen else "Acted on", "success"),
        (document.get("resurfaced_at"), "Back in the inbox after a snooze", "calm"),
        (document.get("deleted_at"), "Deleted by its client", "calm"),
        (document.get("erased_at"), "Recipient erased", "calm"),
        (document.get("content_removed_at"), "Content removed by retention", "calm"),
    ):
        if at is not None:
            yield TimelineEvent(at=at, title=title, rank=Rank.OWN, color=color)


def _suppressed(document: NotificationDocument, history: History) -> Iterator[TimelineEvent]:
    for suppression in history.suppressions:
        if suppression["created_at"] >= document["created_at"]:
            yield TimelineEvent(
                at=suppression["created_at"],
                title=f"Address suppressed: {suppression['reason'].replace('_', ' ')}",
                rank=Rank.SUPPRESSED,
                color="danger",
                channel=Channel(suppression["channel"]),
            )


def _staff_events(history: History, *, now: datetime) -> Iterator[TimelineEvent]:
    resends = {str(resend["_id"]): resend for resend in history.resends}
    resenders: dict[str, str] = {}
    own_client = f"client {history.client_name}"
    for entry in history.audit:
        if entry["who"] == own_client and entry["what"] == DELETED:
            # The notification has the time of its deletion.
            continue
        resend_id = next((resend for resend in resends if resend in entry["what"]), None)
        if resend_id is not None:
            resenders[resend_id] = entry["who"]
        else:
            yield TimelineEvent(
                at=entry["at"], title=entry["what"], rank=Rank.STAFF, note=f"by {entry['who']}"
            )
    for resend_id, resend in resends.items():
        state = notification_state(resend["status"], resend["delivery"], now=now)
        to_channels = ", ".join(CHANNELS[Channel(channel)] for channel in resend["channels"])
        by = f" by {resenders[resend_id]}" if resend_id in resenders else ""
        yield TimelineEvent(
            at=resend["created_at"],
            title=format_html("Resent as {} {}", notification_link(resend["_id"]), chip(*state)),
            rank=Rank.RESENT,
            color=state[1],
            note=f"on {to_channels}{by}",
        )


def _next_steps(
    document: NotificationDocument, history: History, *, now: datetime
) -> Iterator[TimelineEvent]:
    statuses = {delivery["channel"]: delivery["status"] for delivery in document["delivery"]}
    for wait in find_waits(document["delivery"], now=now):
        text = wait_text(
            wait.reason,
            wait.channel,
            wait.until,
            goal=document.get("plan_until"),
            limit=wait.limit,
            pauses=history.pauses,
            now=now,
        )
        is_sending = statuses[wait.channel] == S.SENDING
        yield TimelineEvent(
            at=wait.until or now,
            is_timed=wait.until is not None and wait.until > now,
            is_next=True,
            is_held=wait.reason in HELD,
            rank=Rank.OWN,
            title=DELIVERY_LABELS[S.SENDING][0] if is_sending else text,
            color=WAIT_LABELS[wait.reason][1],
            channel=wait.channel,
        )


def notification_link(notification_id: ObjectId) -> SafeString:
    """Return a link to the page of a notification."""
    url = reverse(NOTIFICATION, args=[notification_id])
    return format_html('<a class="text-link id" href="{}">{}</a>', url, notification_id)


def resend_in_effect(history: History, channel: Channel) -> NotificationDocument | None:
    """Return the resend that is open or has succeeded on a channel, if there is one."""
    open_or_done = (S.PENDING, S.SENDING, S.UNKNOWN, *SUCCEEDED)
    found = (
        resend
        for resend in history.resends
        for delivery in resend["delivery"]
        if delivery["channel"] == channel and delivery["status"] in open_or_done
    )
    return next(found, None)


def _masked(text: str | None, *, unmasked: bool) -> str | None:
    return text if text is None or unmasked else mask_text(text)
