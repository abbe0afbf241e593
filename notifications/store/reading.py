"""Reads the parts of a stored notification: its recipient, its content, and its holds."""

from datetime import timedelta

from domain.content import Attachment, Content, InterruptionLevel, Look, PushOptions, Recipient
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from domain.stored import known_member
from domain.wait_reasons import Hold, WaitReason
from notifications.documents.notification import (
    DeliveryDocument,
    NotificationDocument,
    StoredLook,
    StoredPushOptions,
)

_INTERRUPTION_LEVELS = {level.value: level for level in InterruptionLevel}


def recipient_of(document: NotificationDocument) -> Recipient:
    """Return the recipient stored in a notification's document."""
    stored = document["recipient"]
    return Recipient(
        device_ids=tuple(stored.get("device_ids", ())),
        email=stored.get("email"),
        phone=stored.get("phone"),
        room=stored.get("room"),
        name=stored.get("name"),
        locale=stored.get("locale"),
        timezone=stored.get("timezone"),
        given=tuple(stored.get("given", ())),
    )


def content_of(document: NotificationDocument) -> Content:
    """Return the content stored in a notification's document."""
    stored = document["content"]
    return Content(
        subject=stored.get("subject"),
        body=stored.get("body"),
        template_id=stored.get("template_id"),
        template_version=stored.get("template_version"),
        is_masked=stored.get("is_masked", False),
        image_url=stored.get("image_url"),
        deep_link=stored.get("deep_link"),
        payload=stored.get("payload"),
        reply_to=stored.get("reply_to"),
        attachments=tuple(
            Attachment(
                url=attachment["url"],
                filename=attachment["filename"],
                content_type=attachment["content_type"],
            )
            for attachment in stored.get("attachments", ())
        ),
        has_own_subject=stored.get("has_own_subject", False),
        event_at=stored.get("event_at"),
        push=_push_options(stored["push"]) if stored.get("push") else None,
        look=_look(stored["look"]) if stored.get("look") else None,
    )


def _look(stored: StoredLook) -> Look:
    return Look(design=stored["design"], brand=stored.get("brand"), layout=stored.get("layout"))


def _push_options(stored: StoredPushOptions) -> PushOptions:
    return PushOptions(
        sound=stored.get("sound"),
        badge=stored.get("badge"),
        interruption_level=_INTERRUPTION_LEVELS.get(stored.get("interruption_level", "")),
        android_channel_id=stored.get("android_channel_id"),
    )


def holds_of(delivery: DeliveryDocument) -> tuple[Hold, ...]:
    """Return the outages that have held a delivery, oldest first."""
    return tuple(
        Hold(
            reason=known_member(hold["reason"], otherwise=WaitReason.PROVIDER_UNAVAILABLE),
            provider=hold["provider"],
            since=hold["since"],
            detail=hold.get("detail") or "",
        )
        for hold in delivery.get("holds") or ()
    )


def held_for(delivery: DeliveryDocument) -> timedelta:
    """Return how long outages have held a delivery since it last started over."""
    return timedelta(milliseconds=delivery.get("held_ms") or 0)


def current_hold(delivery: DeliveryDocument) -> Hold | None:
    """Return the outage that holds a pending delivery, or held an expired one. None without one."""
    if delivery["status"] == DeliveryStatus.PENDING:
        is_held = delivery.get("failure_code") == FailureCode.CHANNEL_UNAVAILABLE
    else:
        is_held = delivery["status"] == DeliveryStatus.EXPIRED and bool(delivery.get("held_reason"))
    holds = holds_of(delivery)
    return holds[-1] if is_held and holds else None
