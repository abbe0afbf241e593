"""Renders the messages of a batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog
from bson import ObjectId

from domain.channels.spec import Shape
from domain.content import SecretExpiredError, SensitiveContent
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.catalog import types
from notifications.content import engine, redaction, reminders, rendering
from notifications.store.claims import ClaimedDelivery, NotSent
from notifications.store.encrypted_content import decrypt
from notifyproject.platform.encryption import DecryptionError
from privacy import unsubscribe
from providers import senders
from providers.contract import Message

from .accounts import hold_brand
from .eligibility import KEY_RETRY_DELAY, defer_or_fail

log = structlog.get_logger(__name__)
S = DeliveryStatus
NOT_ALLOWED = "The sender of its brand isn't one of EMAIL_SENDERS here."
SENDER_WITHDRAWN = "its sender isn't one of EMAIL_SENDERS"


@dataclass(frozen=True, slots=True)
class RenderedMessage:
    """A message, and the sensitive values in it."""

    message: Message
    secret: SensitiveContent | None = None


def render_batch(
    claims: Sequence[ClaimedDelivery], *, now: datetime
) -> tuple[Mapping[ObjectId, RenderedMessage], list[NotSent]]:
    """Return the messages by notification, and the deliveries that can't be rendered now."""
    messages: dict[ObjectId, RenderedMessage] = {}
    not_sent: list[NotSent] = []
    for claimed in claims:
        secret = None
        try:
            secret = decrypt(
                notification_id=claimed.notification_id,
                content=claimed.content,
                encrypted=claimed.encrypted_content,
            )
            message = _message(claimed, secret, now)
            if message.sender is not None and not senders.is_allowed(message.sender):
                not_sent.append(hold_brand(claimed, NOT_ALLOWED, SENDER_WITHDRAWN, now=now))
                continue
            messages[claimed.notification_id] = RenderedMessage(message, secret)
        except (engine.TemplateError, SecretExpiredError) as problem:
            reason = redaction.remove_secrets(str(problem), secret.secrets if secret else ())
            not_sent.append(NotSent(claimed, S.FAILED, FailureCode.RENDER_FAILED, reason))
        except DecryptionError as problem:
            not_sent.append(_defer_undecryptable(claimed, problem, now))
    return messages, not_sent


def _message(claimed: ClaimedDelivery, secret: SensitiveContent | None, now: datetime) -> Message:
    content, data = claimed.content, claimed.data
    if secret is not None:
        content, data = secret.unmask(content), secret.data
    message = rendering.render_message(
        channel=claimed.channel,
        content=content,
        data=data,
        recipient=claimed.reader,
        accepted_recipient=claimed.recipient,
        unsubscribe_url=unsubscribe.unsubscribe_url(claimed),
        actions=types.actions_of(claimed.type) if claimed.channel.spec.shape is Shape.CARD else (),
        now=now,
    )
    if not claimed.channel.spec.has_service_window:
        return message
    templates = types.whatsapp_templates(claimed.type)
    locale = claimed.recipient.locale
    return replace(
        message,
        whatsapp_template=rendering.choose_whatsapp_template(
            templates,
            locale=locale,
            data=reminders.data_at(content, data, now=now),
            content=content,
        ),
    )


def _defer_undecryptable(
    claimed: ClaimedDelivery, problem: DecryptionError, now: datetime
) -> NotSent:
    log.error("decryption_failed", delivery_id=claimed.delivery_id, reason=str(problem))
    reason = f"Sensitive data can't be decrypted: {problem}."
    return defer_or_fail(
        claimed, FailureCode.DECRYPTION_FAILED, reason, until=now + KEY_RETRY_DELAY
    )
