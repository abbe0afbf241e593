"""One notification as its page shows it: channels, content, contact. Independent of requests."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from domain import content as domain_content
from domain.channels import INBOX, Channel
from domain.channels.spec import Shape
from domain.states import OPEN, SUCCEEDED, DeliveryStatus
from domain.wait_reasons import wait_reason
from notifications.actions.risk import ResendRisk, RiskKind
from notifications.catalog import types
from notifications.content import redaction, rendering
from notifications.content.engine import TemplateError
from notifications.documents.notification import DeliveryDocument, NotificationDocument
from notifications.store import removal
from notifications.store.reading import content_of, recipient_of
from providers.contract import Message
from recipients.masking import mask_text

from ..texts.failure_codes import Step, explain, explain_cause
from ..texts.labels import (
    CHANNELS,
    RESEND_RISKS,
    delivery_state,
    notification_state,
    provider_label,
)
from ..texts.wait_reasons import HELD_ADVICE
from ..widgets import columns
from ..widgets.formats import timestamp
from ..widgets.links import DIGEST, NOTIFICATION
from ..widgets.waits import Pauses
from .summary import problems_first, summarize_delivery

S = DeliveryStatus
ONLY_IF_ACCEPTABLE = "Resend only if a duplicate is acceptable."
CANT_BE_RETRIED = "It can't be retried any more. Resend it if it is still relevant."


WITHOUT_SUBJECT = frozenset({Shape.TEXT, Shape.PARTS})
"""Shapes of messages that are a text alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedMessage:
    """The message of one channel."""

    channel: str
    icon: str
    subject: str | None
    text: str
    html: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedContent:
    """The message of each channel, sensitive values masked."""

    messages: Sequence[RenderedMessage]
    problem: str | None = None
    removed: str | None = None


def render_content(document: NotificationDocument) -> RenderedContent:
    """Return the message as each channel sends it, sensitive values masked."""
    content = content_of(document)
    if removal.is_content_removed(document):
        return _remaining_content(document, content)
    channels = [Channel(name) for name in document["channels"]]
    recipient = replace(recipient_of(document), email=None, phone=None)
    data = variables(document, unmasked=True)
    # What remained until a reminder's event when it was sent.
    sent_at = min(
        (at for delivery in document["delivery"] if (at := delivery.get("sent_at"))), default=None
    )
    try:
        messages = [
            rendering.render_message(
                channel=channel, content=content, data=data, recipient=recipient, now=sent_at
            )
            for channel in channels
        ]
    except TemplateError as problem:
        stored = Message(subject=content.subject, text=content.body or "")
        return RenderedContent(
            messages=[_rendered_message(channels[0], stored)], problem=str(problem)
        )
    return RenderedContent(
        messages=[_rendered_message(*pair) for pair in zip(channels, messages, strict=True)]
    )


def _remaining_content(
    document: NotificationDocument, content: domain_content.Content
) -> RenderedContent:
    """Return the inbox item, which remains after retention has removed the other content."""
    removed = format_html(
        "Content removed on {} by retention: subject, body, template variables, addresses, and "
        "provider responses.",
        timestamp(document["content_removed_at"]),
    )
    if not document.get("inbox_at") or content.body is None:
        return RenderedContent(messages=(), removed=removed)
    stored = Message(subject=content.subject, text=content.body)
    return RenderedContent(
        messages=[_rendered_message(INBOX, stored)],
        removed=format_html("{} The inbox item stays in the recipient's inbox.", removed),
    )


def _rendered_message(channel: Channel, message: Message) -> RenderedMessage:
    return RenderedMessage(
        channel=channel.spec.label,
        icon=channel.spec.icon,
        subject=None if channel.spec.shape in WITHOUT_SUBJECT else message.subject,
        text=message.text,
        html=message.html,
    )


def variables(document: NotificationDocument, *, unmasked: bool) -> dict[str, Any]:
    """Return the template variables. Masks sensitive values and, unless ``unmasked``, addresses."""
    data = document["data"]
    if types.find_type(document["type"]) is None:
        return dict.fromkeys(data, types.MASK)
    names = types.sensitive_variables(document["type"], document["content"].get("template_id"))
    return {
        name: _value(value, unmasked=unmasked)
        for name, value in redaction.mask(data, names).items()
    }


def contact(document: NotificationDocument, *, unmasked: bool) -> list[tuple[str, str]]:
    """Return the recipient's contact data as of acceptance."""
    recipient = document["recipient"]
    facts = (
        ("Name", recipient.get("name")),
        ("Language", recipient.get("locale")),
        ("Time zone", recipient.get("timezone")),
        ("Email", columns.address(recipient.get("email"), unmasked=unmasked)),
        ("Phone", columns.address(recipient.get("phone"), unmasked=unmasked)),
        ("Devices", str(len(recipient["device_ids"]) or "")),
    )
    return [(label, value) for label, value in facts if value]


def channel_rows(
    document: NotificationDocument,
    risks: Mapping[Channel, ResendRisk],
    suppressions: Sequence[Mapping[str, Any]],
    *,
    carriers: Sequence[NotificationDocument],
    pauses: Pauses,
    unmasked: bool,
    now: datetime,
) -> list[dict[str, Any]]:
    """Return the state of each delivery, problems first."""
    rows = []
    for delivery in problems_first(document["delivery"]):
        channel = Channel(delivery["channel"])
        row = _row(
            delivery,
            risks[channel],
            goal=document.get("plan_until"),
            pauses=pauses,
            unmasked=unmasked,
            now=now,
        )
        row["suppressions"] = [
            suppression for suppression in suppressions if suppression["channel"] == channel
        ]
        row["digest"] = _digest_line(delivery, carriers, now=now)
        rows.append(row)
    return rows


def _row(
    delivery: DeliveryDocument,
    risk: ResendRisk,
    *,
    goal: str | None,
    pauses: Pauses,
    unmasked: bool,
    now: datetime,
) -> dict[str, Any]:
    channel, status = Channel(delivery["channel"]), DeliveryStatus(delivery["status"])
    has_error = delivery.get("failure_code") and status not in SUCCEEDED
    used = delivery["attempt_count"] - delivery["uncounted_attempts"]
    label, color = delivery_state(delivery, now=now)
    row: dict[str, Any] = {
        "name": CHANNELS[channel],
        "icon": channel.spec.icon,
        "status": label,
        "color": color,
        "summary": summarize_delivery(delivery, goal=goal, pauses=pauses, now=now),
        "attempts": f"{used} of {delivery['max_attempts']}" if delivery["attempt_count"] else None,
        "provider": provider_label(delivery.get("provider")),
        "message_id": delivery.get("provider_message_id"),
    }
    # The summary already says which outage it expired in.
    if has_error and not (status is S.EXPIRED and delivery.get("held_reason")):
        row["provider_message"] = _text(delivery.get("failure_reason"), unmasked=unmasked)
    if status not in OPEN | SUCCEEDED:
        row["resend_risk"], row["resend_risk_color"] = RESEND_RISKS[risk.kind]
        row["resend_risk_reason"] = risk.reason
    return row


def _digest_line(
    delivery: DeliveryDocument, carriers: Sequence[NotificationDocument], *, now: datetime
) -> SafeString | None:
    """Return the digest that a delivery waits for or is part of, with the state of its carrier."""
    if (digest_id := delivery.get("digest_id")) is None:
        return None
    digest = columns.link(reverse(DIGEST, args=[digest_id]), "digest")
    if delivery["status"] != S.MERGED:
        return format_html("Part of a {}", digest) if delivery["status"] in OPEN else None
    carrier = next(
        (carrier for carrier in carriers if carrier["_id"] == delivery.get("carried_by")), None
    )
    if carrier is None:
        return format_html("Sent in a {}", digest)
    return format_html(
        "Sent in a {} as {} {}",
        digest,
        columns.link(reverse(NOTIFICATION, args=[carrier["_id"]]), carrier["_id"]),
        columns.chip(*notification_state(carrier["status"], carrier["delivery"], now=now)),
    )


def advice(
    delivery: DeliveryDocument,
    risk: ResendRisk,
    *,
    can_retry: bool,
    may: Callable[[Step], bool],
    now: datetime,
) -> str | None:
    """Return the next step for a failed delivery, or for one that is held for its provider.

    It never contradicts the resend risk. ``may`` returns whether the user may take a step.
    """
    # Other pending deliveries need no advice: the service sends them.
    if delivery["status"] == S.PENDING:
        return HELD_ADVICE.get(wait_reason(delivery, now=now))
    code = delivery.get("failure_code")
    if delivery["status"] in SUCCEEDED or not code:
        return None
    explanation = explain_cause(code, None) if delivery.get("held_reason") else explain(code)
    text, step = explanation.advice, explanation.step
    is_about_address = step in (Step.CORRECT, Step.LIFT)
    if not risk.is_by_failure and not (risk.kind is RiskKind.SUPPRESSED and is_about_address):
        may_duplicate = risk.kind is RiskKind.MAY_DUPLICATE
        return f"{risk.reason} {ONLY_IF_ACCEPTABLE}" if may_duplicate else risk.reason
    if step is Step.RETRY and not can_retry and risk.kind is not RiskKind.WILL_FAIL_AGAIN:
        text, step = CANT_BE_RETRIED, Step.RESEND
    if step is not None and not may(step):
        return f"Ask an operator: {text[:1].lower()}{text[1:]}"
    return text


def _text(text: str | None, *, unmasked: bool) -> str | None:
    return text if text is None or unmasked else mask_text(text)


def _value(value: Any, *, unmasked: bool) -> Any:
    if unmasked or isinstance(value, int | float | bool) or value is None:
        return value
    return mask_text(value if isinstance(value, str) else json.dumps(value, default=str))
