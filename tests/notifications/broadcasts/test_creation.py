"""New broadcasts: stored fields, the IDs of their notifications, and summaries."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from bson import ObjectId

from console.broadcasts.labels import summarize
from domain.states import AudienceKind, BroadcastStatus, Priority
from notifications.broadcasts.audiences import Audience
from notifications.broadcasts.creation import new_document
from notifications.broadcasts.requests import request_of
from notifications.intake.addressees import notification_id
from notifications.intake.requests import Caller, ContentRequest, NotificationRequest
from tests.support.tables import each_case

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMED = Audience(kind=AudienceKind.USER_IDS, user_ids=["ada", "bob", "eve"])
REQUEST = NotificationRequest(
    type="marketing",
    content=ContentRequest(subject="Spring", body="It is spring."),
    data={"tags": ["a", 1, None]},
    ttl=60,
)


def new(**fields: Any) -> dict[str, Any]:
    default: dict[str, Any] = {
        "caller": Caller(client_id=ObjectId()),
        "priority": Priority.LOW,
        "audience": NAMED,
        "audience_size": 3,
        "scheduled_at": None,
        "expires_at": None,
    }
    return new_document(REQUEST, type_slug="marketing", now=NOON, **default | fields)


def test_notification_id_depends_only_on_broadcast_and_user() -> None:
    first, other = ObjectId(), ObjectId()
    ids = [notification_id(first, f"user-{n}") for n in range(1_000)]
    assert max(Counter(ids).values()) == 1
    assert notification_id(first, "user-0") == ids[0]
    assert notification_id(other, "user-0") != ids[0]


def test_ids_of_a_broadcast_share_their_timestamp() -> None:
    digest_id = ObjectId()
    assert {notification_id(digest_id, f"user-{n}").generation_time for n in range(100)} == {
        digest_id.generation_time
    }


def test_stored_request_is_read_back() -> None:
    assert request_of(new()) == REQUEST


def test_missing_fields_are_not_stored() -> None:
    fields = new(audience=Audience(kind=AudienceKind.ALL), audience_size=None)
    assert None not in fields.values()
    assert not fields.keys() & {"user_ids", "topic", "scheduled_at", "is_test", "cursor", "claim"}


@each_case("ahead, status", [(timedelta(0), "running"), (timedelta(minutes=1), "scheduled")])
def test_broadcast_runs_at_once_unless_scheduled(ahead: timedelta, status: str) -> None:
    fields = new(scheduled_at=NOON + ahead)
    assert (fields["status"], fields["due_at"]) == (status, NOON + ahead)


@each_case("status", BroadcastStatus)
def test_each_status_has_a_summary(status: BroadcastStatus) -> None:
    document = {**new(), "status": status.value, "scheduled_at": NOON, "accepted": 1_200}
    assert summarize(document)
    assert "{" not in summarize(document)


def test_failed_broadcast_states_its_reason() -> None:
    document = {**new(), "status": "failed", "failure_reason": "The type is disabled."}
    assert summarize(document) == "Failed: 0 created. The type is disabled."
