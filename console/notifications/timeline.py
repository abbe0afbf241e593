"""Everything that happened to one notification, and what happens next, in order of time."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bson import ObjectId
from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from domain.errors import RECEIPT_FAILURES
from domain.states import SUCCEEDED, AttemptStatus, Channel, DeliveryStatus
from domain.wait_reasons import find_waits
from notifications import queries
from notifications.models import Notification
from notifications.store import Document
from notifyproject.db.collections import collection
from providers.contract import ReceiptKind
from recipients.masking import mask_text

from ..texts.failure_codes import explain
from ..texts.labels import (
    ATTEMPT_LABELS,
    CHANNEL_ICONS,
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
from ..widgets.waits import Pauses, find_pauses, wait_text

S, K = DeliveryStatus, ReceiptKind
_OWN_TIMES = (
    ("marked_read_at", "Marked as read", "success"),
    ("unread_at", "Marked as unread", "calm"),
    ("acted_at", "Acted on", "success"),
    ("resurfaced_at", "Back in the inbox after a snooze", "calm"),
    ("deleted_at", "Deleted by its client", "calm"),
    ("erased_at", "Recipient erased", "calm"),
    ("content_removed_at", "Content removed by retention", "calm"),
)
_DELIVERY_TIMES = (
    ("delivered_at", "Delivered", K.DELIVERED, "delivered_at"),
    ("read_at", "Read", K.READ, "opened_at"),
)
"""Times of a delivery, unless a receipt of this kind or of a device shows them."""
_NOT_SENT = frozenset({S.SUPPRESSED, S.CANCELLED, S.EXPIRED})


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What is stored about one notification, beside its document."""

    attempts: Sequence[Document]
    receipts: Sequence[Document]
    audit: Sequence[Mapping[str, Any]]
    resends: Sequence[Document]
    carriers: Sequence[Document]
    """The notifications that were sent in place of its merged deliveries."""
    suppressions: Sequence[Document]
    device_names: Mapping[str, str]
    client_name: str
    pauses: Pauses

    def version(self, document: Document) -> str:
        """Return a text that changes whenever the page shows something new."""
        others = (*self.resends, *self.carriers)
        resends = [f"{one['updated_at']:%s%f}" for one in others]
        counts = [len(self.attempts), len(self.receipts), len(self.audit), len(self.suppressions)]
        return "-".join(map(str, [f"{document['updated_at']:%s%f}", *counts, *resends]))


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEvent:
    """One line of the timeline."""

    at: datetime
    title: SafeString | str
    color: str = "calm"
    channel: Channel | None = None
    note: SafeString | str = ""
    """Who, by which provider, to which device, how long."""
    detail: str | None = ""
    """What the provider or the service said."""
    ids: Sequence[str] = ()
    response: str | None = None
    is_timed: bool = True
    """False if the time wasn't recorded; ``at`` is then only its place."""
    is_next: bool = False

    @property
    def channel_label(self) -> str:
        """The name of the channel; empty for an event of the notification."""
        return CHANNELS[self.channel] if self.channel else ""

    @property
    def channel_icon(self) -> str:
        """The icon of the channel."""
        return CHANNEL_ICONS[self.channel] if self.channel else ""


def read_history(document: Document, suppressions: Sequence[Document]) -> History:
    """Read what happened to a notification. Raises PyMongoError."""
    attempts = queries.attempts_of(document["_id"])
    device_ids = sorted({one["device_id"] for one in attempts if one.get("device_id")})
    client_id = document["client_id"]
    carried_by = [one["carried_by"] for one in document["delivery"] if one.get("carried_by")]
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
    found = collection("devices").find(
        {"_id": {"$in": list(device_ids)}}, {"device_model": 1, "platform": 1}
    )
    return {
        one["_id"]: one.get("device_model") or f"{code_label(one['platform'])} {one['_id'][:12]}…"
        for one in found
    }


def timeline(
    document: Document, history: History, *, unmasked: bool, now: datetime
) -> list[TimelineEvent]:
    """Return the events, oldest first, and then what each open delivery waits for."""
    events = [
        _accepted(document, history),
        *(_attempt(one, history, unmasked=unmasked) for one in history.attempts),
        *(_receipt(one, unmasked=unmasked) for one in history.receipts),
        *_device_receipts(history),
        *_outcomes(document, history, unmasked=unmasked),
        *_own_events(document),
        *_suppressed(document, history),
        *_staff_events(history, now=now),
    ]
    return [*sorted(events, key=lambda event: event.at), *_next_steps(document, history, now=now)]


def _accepted(document: Document, history: History) -> TimelineEvent:
    title: SafeString | str = "Accepted"
    if document.get("resent_from") is not None:
        title = format_html("Resent from {}", notification_link(document["resent_from"]))
    elif document.get("scheduled_at") is not None:
        at = clock(document["scheduled_at"], now=document["created_at"])
        title = format_html("Accepted, scheduled for {}", at)
    return TimelineEvent(
        at=document["created_at"],
        title=title,
        note=f"by {history.client_name}",
        ids=[document["request_id"]] if document.get("request_id") else (),
    )


def _attempt(attempt: Document, history: History, *, unmasked: bool) -> TimelineEvent:
    response, duration = attempt.get("platform_response"), attempt.get("duration_ms")
    label, color = ATTEMPT_LABELS[AttemptStatus(attempt["status"])]
    parts = [
        provider_label(attempt.get("provider")) or "",
        _device_link(attempt.get("device_id"), history),
        latency(duration / 1000) if duration is not None else "",
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
        color=color,
        channel=Channel(attempt["channel"]),
        note=note,
        detail=_masked(detail, unmasked=unmasked),
        ids=[attempt["provider_message_id"]] if attempt.get("provider_message_id") else (),
        response=_masked(text, unmasked=unmasked),
    )


def _device_link(device_id: str | None, history: History) -> SafeString | str:
    if device_id is None:
        return ""
    if device_id not in history.device_names:
        return f"device {device_id[:12]}…"
    return link(reverse(DEVICE, args=[quote(device_id)]), history.device_names[device_id])


def _receipt(receipt: Document, *, unmasked: bool) -> TimelineEvent:
    title, color = RECEIPT_LABELS[K(receipt["kind"])]
    return TimelineEvent(
        at=receipt["at"],
        title=title,
        color=color,
        channel=Channel(receipt["channel"]),
        note="receipt",
        detail=_masked(receipt.get("reason"), unmasked=unmasked),
    )


def _device_receipts(history: History) -> Iterator[TimelineEvent]:
    for attempt in history.attempts:
        for name, title in (("delivered_at", "Delivered"), ("opened_at", "Opened")):
            if attempt.get(name):
                yield TimelineEvent(
                    at=attempt[name],
                    title=title,
                    color="success",
                    channel=Channel(attempt["channel"]),
                    note=_device_link(attempt.get("device_id"), history),
                )


def _outcomes(document: Document, history: History, *, unmasked: bool) -> Iterator[TimelineEvent]:
    """Yield what the deliveries record and neither an attempt nor a receipt shows."""
    for delivery in document["delivery"]:
        channel, status = Channel(delivery["channel"]), S(delivery["status"])
        kinds = {K(one["kind"]) for one in history.receipts if one["channel"] == channel}
        attempts = [one for one in history.attempts if one["channel"] == channel]
        attempted = {one.get("error_code") for one in attempts}
        for name, title, kind, by_device in _DELIVERY_TIMES:
            is_shown = kind in kinds or any(by_device in one for one in attempts)
            if delivery.get(name) and not is_shown:
                yield TimelineEvent(
                    at=delivery[name], title=title, color="success", channel=channel
                )
        if status is S.MERGED and delivery.get("merged_at"):
            label, color = DELIVERY_LABELS[S.MERGED]
            yield TimelineEvent(
                at=delivery["merged_at"], title=chip(label, color), color=color, channel=channel
            )
        code = delivery.get("failure_code")
        is_reported = code in RECEIPT_FAILURES and bool(kinds)
        is_attempt = code in attempted
        if status is S.FAILED and not is_reported and not is_attempt:
            yield _ending(delivery, delivery.get("failed_at"), document, unmasked=unmasked)
        elif status in _NOT_SENT:
            yield _ending(delivery, None, document, unmasked=unmasked)


def _ending(
    delivery: Mapping[str, Any], at: datetime | None, document: Document, *, unmasked: bool
) -> TimelineEvent:
    label, color = DELIVERY_LABELS[S(delivery["status"])]
    reason = delivery.get("failure_reason")
    meaning = explain(delivery.get("failure_code")).meaning
    place = delivery.get("last_attempt_at") or delivery["first_due_at"]
    return TimelineEvent(
        at=at or max(place, document["created_at"]),
        is_timed=at is not None,
        title=chip(label, color),
        color=color,
        channel=Channel(delivery["channel"]),
        detail=_masked(reason, unmasked=unmasked) or meaning[:1].upper() + meaning[1:],
    )


def _own_events(document: Document) -> Iterator[TimelineEvent]:
    for name, title, color in _OWN_TIMES:
        if document.get(name):
            chosen = document.get("action") if name == "acted_at" else None
            yield TimelineEvent(
                at=document[name], title=f"{title}: {chosen}" if chosen else title, color=color
            )


def _suppressed(document: Document, history: History) -> Iterator[TimelineEvent]:
    for one in history.suppressions:
        if one["created_at"] >= document["created_at"]:
            yield TimelineEvent(
                at=one["created_at"],
                title=f"Address suppressed: {one['reason'].replace('_', ' ')}",
                color="danger",
                channel=Channel(one["channel"]),
            )


def _staff_events(history: History, *, now: datetime) -> Iterator[TimelineEvent]:
    resends = {str(one["_id"]): one for one in history.resends}
    resenders: dict[str, str] = {}
    for entry in history.audit:
        resend_id = next((one for one in resends if one in entry["what"]), None)
        if resend_id is not None:
            resenders[resend_id] = entry["who"]
        else:
            yield TimelineEvent(at=entry["at"], title=entry["what"], note=f"by {entry['who']}")
    for resend_id, resend in resends.items():
        state = notification_state(resend["status"], resend["delivery"], now=now)
        to_channels = ", ".join(CHANNELS[Channel(one)] for one in resend["channels"])
        by = f" by {resenders[resend_id]}" if resend_id in resenders else ""
        yield TimelineEvent(
            at=resend["created_at"],
            title=format_html("Resent as {} {}", notification_link(resend["_id"]), chip(*state)),
            color=state[1],
            note=f"on {to_channels}{by}",
        )


def _next_steps(document: Document, history: History, *, now: datetime) -> Iterator[TimelineEvent]:
    statuses = {one["channel"]: one["status"] for one in document["delivery"]}
    for wait in find_waits(document["delivery"], now=now):
        text = wait_text(
            *(wait.reason, wait.channel, wait.until),
            goal=document.get("plan_until"),
            pauses=history.pauses,
            now=now,
        )
        is_sending = statuses[wait.channel] == S.SENDING
        yield TimelineEvent(
            at=wait.until or now,
            is_timed=wait.until is not None and wait.until > now,
            is_next=True,
            title=DELIVERY_LABELS[S.SENDING][0] if is_sending else text,
            color=WAIT_LABELS[wait.reason][1],
            channel=wait.channel,
        )


def notification_link(notification_id: ObjectId) -> SafeString:
    """Return a link to the page of a notification."""
    url = reverse(NOTIFICATION, args=[notification_id])
    return format_html('<a class="text-link id" href="{}">{}</a>', url, notification_id)


def resend_in_effect(history: History, channel: Channel) -> Document | None:
    """Return the resend that is open or has succeeded on a channel, if there is one."""
    open_or_done = (S.PENDING, S.SENDING, S.UNKNOWN, *SUCCEEDED)
    found = (
        one
        for one in history.resends
        for delivery in one["delivery"]
        if delivery["channel"] == channel and delivery["status"] in open_or_done
    )
    return next(found, None)


def _masked(text: str | None, *, unmasked: bool) -> str | None:
    return text if text is None or unmasked else mask_text(text)
