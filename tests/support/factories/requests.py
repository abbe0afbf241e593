"""A request of an app's that knows Ada, and what is made of it."""

from datetime import datetime
from typing import Any

import pytest
from bson import ObjectId

from notifications.intake.preparation import Prepared, prepare
from notifications.intake.requests import Caller, ContentRequest
from notifications.validation import InvalidRequestError
from recipients.queries import ActiveSuppression, RecipientSnapshot, RegisteredRecipient
from tests.support.factories.records import NOON, request

ID = ObjectId("b" * 24)
CALLER = Caller(client_id=ObjectId("c" * 24), request_id="request-1", idempotency_key="key-1")
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
    now: datetime = NOON,
    **fields: Any,
) -> Prepared:
    """Return what is made of a request; ``fields`` replace its own."""
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
    """Return the pointers and codes of what is wrong with a request."""
    with pytest.raises(InvalidRequestError) as invalid:
        prepared(**fields)
    return [(p.pointer, p.code) for p in invalid.value.problems]
