"""Messages of the service itself to its staff: of incidents, and of what awaits an approval."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog

from access.clients import registry
from devices import queries as devices
from domain.addresses import EMAIL_ADDRESS
from domain.channels import INBOX, PUSH, Channel, channels_of

from .intake import acceptance
from .intake.requests import (
    AlreadyNotifiedError,
    Caller,
    ContentRequest,
    KeyReusedError,
    NotificationRecipientRequest,
    NotificationRequest,
)
from .validation import InvalidRequestError

log = structlog.get_logger(__name__)
STAFF_TYPE = "system_alert"
"""Type of these messages."""
STAFF_PREFIX = "staff:"
MAX_SUBJECT = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class StaffAddress:
    """How to reach one person, or a room in place of a person."""

    user_id: str | None = None
    """User ID of a staff user or recipient, who can be reached in-app and by push."""
    email: str | None = None
    room: str | None = None
    """ID of a room."""

    @property
    def key(self) -> str:
        """The end of the idempotency key. No user ID makes that of a room."""
        return f"/{self.room}" if self.room else f":{self.user_id or self.email}"


def address_of(username: str, email: str) -> StaffAddress:
    """Return how to reach a member of staff."""
    return StaffAddress(user_id=f"{STAFF_PREFIX}{username}", email=email or None)


def possible_channels(address: StaffAddress) -> list[Channel]:
    """Return the channels that reach a person."""
    possible: list[Channel] = []
    if address.email:
        possible += channels_of(EMAIL_ADDRESS)
    if address.user_id:
        possible.append(INBOX)
        if devices.find_push_targets(user_ids=[address.user_id]).by_user:
            possible.append(PUSH)
    return possible


def send(
    address: StaffAddress,
    *,
    subject: str,
    body: str,
    key: str,
    channels: Sequence[Channel],
    now: datetime,
) -> str | None:
    """Send a message once per key and address. Return why it wasn't sent, or None."""
    request = NotificationRequest(
        type=STAFF_TYPE,
        user_id=address.user_id,
        recipient=NotificationRecipientRequest(email=address.email, room=address.room),
        channels=[channel.value for channel in channels],
        content=ContentRequest(subject=subject[:MAX_SUBJECT], body=body),
    )
    caller = Caller(
        client_id=registry.system_client_id(now=now),
        may_send_critical=True,
        idempotency_key=f"{key}{address.key}",
    )
    try:
        acceptance.accept(request, caller=caller, now=now)
    except KeyReusedError:
        # Sent before, with other details.
        return None
    except (InvalidRequestError, AlreadyNotifiedError) as error:
        return type(error).__name__
    return None
