"""Bulk operations in the console."""

from typing import Any

from bson import ObjectId
from django.test import Client

from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.bulk import repository, runner
from notifications.bulk.operation import Operation
from tests.support.factories import notifications as factories

FAILED = "/admin/notifications/failednotification/"
BULK = "/admin/notifications/bulkoperation/"
NEW = f"{BULK}new/"
S = DeliveryStatus


def failed(**fields: Any) -> Any:
    now = utc_now()
    return factories.settled(S.FAILED, at=now, created_at=now, **fields)


def open_form(client: Client, query: str = "", **fields: Any) -> Operation:
    """Open the bulk form for a list with this query, and preview. Return the operation."""
    form = {"list": "failednotification", "query": query, "action": "retry"}
    channels = ["email", "push", "whatsapp", "in_app"]
    response = client.post(NEW, {**form, "channels": channels, **fields})
    assert response.status_code == 302, response.content.decode()
    operation_id = ObjectId(response["Location"].split("/")[-3])
    runner.run(operation_id)
    return stored(operation_id)


def stored(operation_id: ObjectId) -> Operation:
    found = repository.get(operation_id)
    assert found is not None
    return found


def start(client: Client, operation: Operation, **fields: Any) -> Any:
    """Start a previewed operation. Return the response."""
    form = {"include": "safe", "per_second": "500", "reason": "SendGrid is back"}
    return client.post(f"{BULK}{operation.id}/start/", {**form, **fields}, follow=True)


def text(response: Any) -> str:
    return str(response.content.decode())
