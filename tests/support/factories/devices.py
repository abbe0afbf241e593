"""A device, and evidence about its token by minute after noon."""

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
    return NOON + timedelta(minutes=minutes)


def register(token: str = TOKEN, *, minute: float = 0) -> str:
    """Register Ada's device. Return its id."""
    new = Registration(user_id="ada", token=token, platform=Platform.IOS)
    return str(registration.register(new, now=at(minute))["_id"])


def suspect(*, began: float) -> int:
    """Record a malformed-token answer to a send that began at this minute."""
    evidence = Evidence(at=at(began), source="fcm", code="INVALID_ARGUMENT")
    return status.record_suspicion(device_ids=[ID], evidence=evidence, now=at(began))


def accept(*, answered: float) -> int:
    """Record an accepted push."""
    return status.record_success(accepted={ID: at(answered)})


def device(one: str = ID) -> Document:
    document = queries.get(one)
    assert document is not None
    return document
