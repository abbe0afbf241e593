"""What each delivery of a batch says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog
from bson import ObjectId

from domain import retry
from domain.content import SecretExpiredError, SensitiveContent
from domain.errors import FailureCode
from domain.retry import RetryAt
from domain.states import Channel, DeliveryStatus
from notifyproject.platform.encryption import DecryptionError
from providers.contract import Message

from . import approved, rendering, secrecy, types, unsubscribing
from .store import Claimed, Parked, secret_of

log = structlog.get_logger(__name__)

ANOTHER_KEY = timedelta(seconds=30)
"""When to look again at what this process has no key for: another one may, or a newer release."""


@dataclass(frozen=True, slots=True)
class Worded:
    """What a delivery says, and what of that nobody else may read."""

    message: Message
    secret: SensitiveContent | None = None


def render(
    claims: Sequence[Claimed], *, now: datetime
) -> tuple[Mapping[ObjectId, Worded], list[Parked]]:
    """Return the messages by notification, and what cannot be made into one, or not here."""
    messages: dict[ObjectId, Worded] = {}
    parked: list[Parked] = []
    for claimed in claims:
        secret = None
        try:
            secret = _secret(claimed)
            messages[claimed.notification_id] = Worded(_message(claimed, secret), secret)
        except rendering.TemplateProblem as problem:
            reason = secrecy.without(str(problem), secret.values if secret else ())
            parked.append(_failed(claimed, FailureCode.RENDER_FAILED, reason))
        except SecretExpiredError as problem:
            parked.append(_failed(claimed, FailureCode.RENDER_FAILED, str(problem)))
        except DecryptionError as problem:
            parked.append(_unopened(claimed, problem, now))
    return messages, parked


def _secret(claimed: Claimed) -> SensitiveContent | None:
    """Return what a delivery hides; raises SecretExpiredError, SealBroken."""
    return secret_of(
        notification_id=claimed.notification_id, content=claimed.content, sealed=claimed.sealed
    )


def _message(claimed: Claimed, secret: SensitiveContent | None) -> Message:
    """Return what a delivery says; raises TemplateProblem."""
    content, data = claimed.content, claimed.data
    if secret is not None:
        content, data = secret.reveal(content), secret.data
    message = rendering.render_message(
        channel=claimed.channel,
        content=content,
        data=data,
        recipient=claimed.recipient,
        unsubscribe_url=unsubscribing.url_of(claimed),
    )
    if claimed.channel is not Channel.WHATSAPP:
        return message
    known = types.find(claimed.type)
    wordings = known.approved if known else ()
    locale = claimed.recipient.locale
    return replace(message, approved=approved.choose(wordings, locale=locale, data=data))


def _unopened(claimed: Claimed, problem: DecryptionError, now: datetime) -> Parked:
    """Return what becomes of a delivery whose secret this process does not open: it waits."""
    log.error("secret_not_opened", delivery_id=claimed.reference, reason=str(problem))
    reason = f"Its secret cannot be opened here: {problem}."
    decision = retry.defer_or_give_up(until=now + ANOTHER_KEY, standing=claimed.standing, now=now)
    if not isinstance(decision, RetryAt):
        return _failed(claimed, decision.code, reason)
    return Parked(
        claimed=claimed,
        status=DeliveryStatus.PENDING,
        code=FailureCode.CHANNEL_UNAVAILABLE,
        reason=reason,
        next_attempt_at=decision.at,
    )


def _failed(claimed: Claimed, code: FailureCode, reason: str) -> Parked:
    return Parked(claimed=claimed, status=DeliveryStatus.FAILED, code=code, reason=reason)
