"""What of a broadcast needs no database: ids, pages of named people, what is stored, words."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from bson import ObjectId

from console.broadcasts.labels import summarize
from domain.states import AudienceKind, BroadcastStatus, Priority
from notifications.broadcasts import repository
from notifications.broadcasts.documents import Audience, NewBroadcast, fields_of, request_of
from notifications.broadcasts.fan_out import notification_id
from notifications.intake.requests import Caller, ContentRequest, NotificationRequest

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMED = Audience(kind=AudienceKind.USER_IDS, user_ids=["ada", "bob", "eve"])
NEW = NewBroadcast(
    id=ObjectId(),
    caller=Caller(client_id=ObjectId()),
    type="marketing",
    priority=Priority.LOW,
    request=NotificationRequest(
        type="marketing",
        content=ContentRequest(subject="Spring", body="It is spring."),
        data={"tags": ["a", 1, None]},
        ttl=60,
    ),
    audience=NAMED,
    audience_size=3,
    scheduled_at=None,
    expires_at=None,
    created_at=NOON,
)


def test_an_id_follows_from_the_broadcast_and_the_person_alone() -> None:
    one, other = ObjectId(), ObjectId()
    ids = [notification_id(one, f"user-{n}") for n in range(1_000)]
    assert max(Counter(ids).values()) == 1
    assert notification_id(one, "user-0") == ids[0]
    assert notification_id(other, "user-0") != ids[0]


def test_ids_of_a_broadcast_lie_together() -> None:
    one = ObjectId()
    assert {notification_id(one, f"user-{n}").generation_time for n in range(100)} == {
        one.generation_time
    }


@pytest.mark.parametrize(
    ("after", "limit", "ids"),
    [
        (None, 2, ["ada", "bob"]),
        ("bob", 2, ["eve"]),
        ("b", 9, ["bob", "eve"]),
        ("eve", 2, []),
        (None, 3, ["ada", "bob", "eve"]),
    ],
)
def test_named_people_are_read_behind_the_last_one(
    after: str | None, limit: int, ids: list[str]
) -> None:
    assert repository.next_user_ids(NAMED, after=after, limit=limit) == ids


def test_what_everybody_is_told_comes_back_as_it_was() -> None:
    assert request_of(fields_of(NEW)) == NEW.request


def test_what_is_not_said_is_not_stored() -> None:
    fields = fields_of(replace(NEW, audience=Audience(kind=AudienceKind.ALL), audience_size=None))
    assert None not in fields.values()
    assert not fields.keys() & {"user_ids", "topic", "scheduled_at", "is_test", "cursor", "claim"}


@pytest.mark.parametrize(
    ("ahead", "status"),
    [(timedelta(0), "running"), (timedelta(minutes=1), "scheduled")],
)
def test_it_runs_at_once_unless_its_time_lies_ahead(ahead: timedelta, status: str) -> None:
    fields = fields_of(replace(NEW, scheduled_at=NOON + ahead))
    assert (fields["status"], fields["due_at"]) == (status, NOON + ahead)


@pytest.mark.parametrize("status", BroadcastStatus)
def test_every_status_has_a_sentence(status: BroadcastStatus) -> None:
    document = {**fields_of(NEW), "status": status.value, "scheduled_at": NOON, "accepted": 1_200}
    assert summarize(document)
    assert "{" not in summarize(document)


def test_one_that_ended_early_says_why() -> None:
    document = {
        **fields_of(NEW),
        "status": "failed",
        "failure_reason": "The type is disabled.",
    }
    assert summarize(document) == "Failed: 0 created. The type is disabled."
