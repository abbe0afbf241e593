"""A request about a registered recipient, and the notification prepared from it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.content import Content, Recipient
from domain.time import utc_now
from notifications.intake.content import compose_content
from notifications.intake.preparation import Prepared, prepare
from notifications.intake.requests import Caller, ContentRequest
from notifications.validation import InvalidRequestError, ProblemCollector
from recipients.queries import ActiveSuppression, RecipientSnapshot, RegisteredRecipient
from tests.support.factories.notifications import FIXED_NOON, SHIPPED, request

ID = ObjectId("b" * 24)
CALLER = Caller(
    client_id=ObjectId("c" * 24),
    request_id="request-1",
    idempotency_key="key-1",
    may_send_critical=True,
)
ADA = RegisteredRecipient(
    user_id="ada",
    email="ada@example.com",
    phone="+351912345678",
    timezone="Europe/Lisbon",
    preferences={},
)
HELLO = ContentRequest(subject="Hello", body="There")


def prepared(
    *,
    person: RegisteredRecipient | None = ADA,
    suppressed: dict[tuple[str, str], ActiveSuppression] | None = None,
    now: datetime = FIXED_NOON,
    **fields: Any,
) -> Prepared:
    return prepare(
        request(**({"content": HELLO} | fields)),
        notification_id=ID,
        caller=CALLER,
        snapshot=RecipientSnapshot(
            registered={"ada": person} if person else {}, suppressed=suppressed or {}
        ),
        now=now,
    )


def problems(**fields: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidRequestError) as invalid:
        prepared(**fields)
    return [(p.pointer, p.code) for p in invalid.value.problems]


ADA_RECIPIENT = Recipient(email="ada@example.com", name="Ada")
PAID = {"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"}


def composed(
    *,
    kind: str = "payment_confirmed",
    data: dict[str, Any] | None = None,
    recipient: Recipient = ADA_RECIPIENT,
    channels: Sequence[Channel] = (Channel.EMAIL,),
    **content: Any,
) -> tuple[Content, list[tuple[str, str]]]:
    """Return a request's content, and the pointers and codes of its problems."""
    problems = ProblemCollector()
    result = compose_content(
        request(type=kind, data=PAID if data is None else data, content=ContentRequest(**content)),
        type_config=SHIPPED[kind],
        recipient=recipient,
        channels=channels,
        problems=problems,
    )
    return result, [(p.pointer, p.code) for p in problems.problems]


def next_clock_change(zone: str) -> str:
    """Return the next day on which the clocks of a zone go forward."""
    days = [utc_now().replace(hour=0) + timedelta(days=n) for n in range(1, 366)]
    offsets = [(day, f"{day.astimezone(ZoneInfo(zone)):%z}") for day in days]
    return next(f"{d:%Y-%m-%d}" for (d, before), (_, after) in pairwise(offsets) if before < after)
