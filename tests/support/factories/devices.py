"""A device, and what a provider says of its token, minute by minute from noon on."""

from datetime import datetime, timedelta

from devices import queries, registration, status
from devices.models import Platform
from devices.registration import Registration
from devices.status import Evidence
from devices.tokens import device_id
from notifyproject.db.collections import Document
from tests.support.factories.notifications import NOON

TOKEN = "token"
ID = device_id(TOKEN)


def at(minutes: float) -> datetime:
    """Return so many minutes past noon."""
    return NOON + timedelta(minutes=minutes)


def register(token: str = TOKEN, *, minute: float = 0) -> str:
    """Register a token of Ada's; return the device's id."""
    new = Registration(user_id="ada", token=token, platform=Platform.IOS)
    return str(registration.register(new, now=at(minute))["_id"])


def suspect(*, began: float) -> int:
    """Let a send that began then be told that the token is malformed."""
    evidence = Evidence(at=at(began), source="fcm", code="INVALID_ARGUMENT")
    return status.record_suspicion(device_ids=[ID], evidence=evidence, now=at(began))


def accept(*, answered: float) -> int:
    """Let the provider take a push at that minute."""
    return status.record_success(accepted={ID: at(answered)})


def device(one: str = ID) -> Document:
    """Return a device as it is stored."""
    document = queries.get(one)
    assert document is not None
    return document
