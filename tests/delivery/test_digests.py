"""Digests in the pipeline: many messages to one recipient become one, and none is lost."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from bson import ObjectId
from pymongo.errors import PyMongoError

from delivery import digests, pipeline, sweeper
from delivery.digests import close_due
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.content import Content
from domain.content import Recipient as ContactDetails
from domain.digests import CLOSE_GRACE, RECHECK
from domain.states import Priority
from notifications.catalog import limits, types
from notifications.content import templates
from notifications.content.reminders import event_variables
from notifications.store import actions, inbox, removal
from notifications.store import digests as store_digests
from notifications.store.digests import LEASES
from notifyproject.db.collections import collection
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary
from privacy import erasure
from recipients.models import PersonalQuietHours, Recipient
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON
from tests.support.factories.templates import publish_version
from tests.support.fakes.mongo_failpoints import CUT, LOST_ANSWER, fail_commands
from tests.support.fakes.provider import ScriptedProvider
from tests.support.threads import at_once

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow", "broker")

EMAIL = Channel.EMAIL
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
WINDOW = 30 * MINUTE
AT_HOME = ContactDetails(email="ada@home.example.com", name="Ada")
CLOSING = NOON + WINDOW + CLOSE_GRACE
DIGEST = {
    "channels": ["email"],
    "key": None,
    "window": {"minutes": 30},
    "leading": False,
    "sliding": False,
    "max_items": 20,
    "min_items": 2,
    "only_over_limit": False,
}
PARTS: Any = {
    "default": {
        "subject": "{% if digest %}{{ digest.count }} comments{% else %}A comment{% endif %}",
        "body": "{% if digest %}{% for item in digest.items %}{{ item.data.text }}; {% endfor %}"
        "{{ digest.more }} more{% else %}{{ text }}{% endif %}",
    }
}


CLOSE_BOUNDARIES = (
    Boundary.DIGEST_SELECTED,
    Boundary.DIGEST_SEALED,
    Boundary.DIGEST_CARRIED,
    Boundary.DIGEST_MERGED,
)


class LostWorkerError(BaseException):
    """Ends a worker at a boundary."""


@pytest.fixture(autouse=True)
def comments() -> Iterator[None]:
    define()
    yield
    collection("notification_types").delete_one({"_id": "comment"})
    types.invalidate_types()


def define(**fields: Any) -> None:
    types.define_type(
        "comment",
        {
            "name": "Comment",
            "category": "transactional",
            "priority": "normal",
            "channels": ["email", "in_app"],
            "max_retries": 3,
            "on_unknown": "retry",
            "sensitive_variables": [],
            "approved_templates": [],
            "example_data": {"text": "Nice."},
            "is_active": True,
            "digest": DIGEST | fields,
        },
        now=NOON,
    )
    version = templates.create_version(
        type_slug="comment", parts=PARTS, note="", created_by="test", now=NOON
    )
    publish_version(type_slug="comment", number=version.number, now=NOON)


def comment(text: str = "Hello", *, at: datetime = NOON, **fields: Any) -> ObjectId:
    content = Content(subject="A comment", body=text, template_id="comment", template_version=1)
    document = factories.accepted(
        **{
            "type": "comment",
            "data": {"text": text},
            "content": content,
            "created_at": at,
            "user_id": "ada",
            **fields,
        }
    )
    return ObjectId(document["_id"])


def deliver(*ids: ObjectId, at: datetime = NOON) -> None:
    pipeline.dispatch(SendingRuntime(), ids, channel=EMAIL, clock=lambda: at)


def close(at: datetime = CLOSING) -> int:
    return close_due(clock=lambda: at)


def state(notification_id: ObjectId, channel: Channel = EMAIL) -> dict[str, Any]:
    return factories.delivery(factories.read(notification_id), channel)


def statuses(*ids: ObjectId) -> list[str]:
    return [state(notification_id)["status"] for notification_id in ids]


def registered(user_id: str, **fields: Any) -> None:
    given = {"preferences": {}, "created_at": NOON, "updated_at": NOON} | fields
    Recipient.objects.create(user_id=user_id, **given)


def carriers() -> list[dict[str, Any]]:
    return list(collection("notifications").find({"digest_id": {"$exists": True}}).sort("_id", 1))


def all_digests() -> list[dict[str, Any]]:
    return list(collection("digests").find().sort("opened_at", 1))


def stop_at(monkeypatch: pytest.MonkeyPatch, boundary: Boundary) -> None:
    def reach(reached: Boundary) -> None:
        if reached is boundary:
            raise LostWorkerError

    monkeypatch.setattr(crash_points, "reach", reach)


def test_messages_of_a_window_are_sent_as_one(fcm: ScriptedProvider) -> None:
    first = comment("One")
    deliver(first)
    second = comment("Two", at=NOON + 10 * MINUTE)
    deliver(second, at=NOON + 10 * MINUTE)
    held = state(first)
    assert (held["status"], held["failure_code"]) == ("pending", "in_digest")
    assert held["next_attempt_at"] == NOON + WINDOW + RECHECK
    assert state(second)["digest_id"] == held["digest_id"]
    assert close(NOON + WINDOW) == 0  # Members that joined just before the end are still stored.
    assert close() == 1
    (carrier,) = carriers()
    assert carrier["content"]["subject"] == "2 comments"
    assert carrier["content"]["body"] == "One; Two; 0 more"
    assert statuses(first, second) == ["merged", "merged"]
    assert state(first)["carried_by"] == carrier["_id"]
    assert factories.read(first)["status"] == "merged"
    assert "due_at" not in factories.read(first)
    deliver(carrier["_id"], at=CLOSING)
    assert len(fcm.seen) == 1
    (digest,) = all_digests()
    assert (digest["status"], digest["outcome"], digest["count"]) == ("closed", "sent", 2)
    assert digest["carrier_id"] == carrier["_id"]
    assert "due_at" not in digest


def test_items_say_the_time_that_is_left_when_the_digest_is_sent(fcm: ScriptedProvider) -> None:
    starts = NOON + 5 * HOUR
    parts = {
        "subject": "{% if digest %}{{ digest.count }} events{% else %}"
        "In {{ hours_until_start }} hours{% endif %}",
        "body": "{% if digest %}{% for item in digest.items %}{{ item.subject }}: "
        "{{ item.data.text }}, {{ item.data.hours_until_start }}; {% endfor %}{% endif %}"
        "{{ hours_until_start }}",
    }
    version = templates.create_version(
        type_slug="comment", parts={"default": parts}, note="", created_by="test", now=NOON
    )
    publish_version(type_slug="comment", number=version.number, now=NOON)
    for text, event_at in (("Cup", starts), ("Cup 2", starts + HOUR), ("No event", None)):
        hours = event_variables(event_at, at=NOON) if event_at else {"hours_until_start": 7}
        own = Content(
            subject=f"In {hours['hours_until_start']} hours",
            body="",
            template_id="comment",
            template_version=version.number,
            event_at=event_at,
        )
        deliver(comment(text, data={"text": text, **hours}, content=own))
    assert close(NOON + 2 * HOUR) == 1
    (carrier,) = carriers()
    assert carrier["content"]["body"] == (
        "In 3 hours: Cup, 3; In 4 hours: Cup 2, 4; In 7 hours: No event, 7; 7"
    )


def test_in_app_shows_each_message_at_once() -> None:
    notification_id = comment(channels=(EMAIL, Channel.IN_APP))
    other = comment(channels=(EMAIL, Channel.IN_APP))
    deliver(notification_id, other)
    close()
    assert [state(each, Channel.IN_APP)["status"] for each in (notification_id, other)] == [
        "delivered"
    ] * 2
    assert factories.read(notification_id)["status"] == "delivered"
    assert statuses(notification_id, other) == ["merged", "merged"]


def test_recipients_types_keys_and_modes_have_their_own_digests() -> None:
    define(key="text")
    ids = [comment("A"), comment("B"), comment("A", user_id="bob"), comment("A", is_test=True)]
    deliver(*ids)
    assert len({state(notification_id)["digest_id"] for notification_id in ids}) == 4


def test_single_message_is_sent_by_itself(fcm: ScriptedProvider) -> None:
    notification_id = comment()
    deliver(notification_id)
    close()
    assert carriers() == []
    assert (state(notification_id)["status"], state(notification_id)["skips_digest"]) == (
        "pending",
        True,
    )
    deliver(notification_id, at=CLOSING)
    assert statuses(notification_id) == ["sent"]
    assert len(fcm.seen) == 1
    assert all_digests()[0]["outcome"] == "separate"


def test_digest_that_cannot_be_rendered_is_sent_one_by_one() -> None:
    ids = [comment(), comment()]
    deliver(*ids)
    publish_version(
        type_slug="comment",
        number=templates.create_version(
            type_slug="comment",
            parts={"default": {"subject": "S", "body": "{{ missing }}"}},
            note="",
            created_by="test",
            now=NOON,
        ).number,
        now=NOON,
    )
    close()
    assert carriers() == []
    assert all(state(notification_id)["next_attempt_at"] == CLOSING for notification_id in ids)


def test_leading_message_is_sent_at_once_and_the_next_wait(fcm: ScriptedProvider) -> None:
    define(leading=True)
    ids = [comment(str(number)) for number in range(3)]
    deliver(*ids)
    assert statuses(*ids) == ["sent", "pending", "pending"]
    close()
    assert statuses(*ids) == ["sent", "merged", "merged"]
    assert len(fcm.seen) == 1


def test_sliding_window_ends_after_the_last_message_at_most_four_windows_later() -> None:
    define(sliding=True)
    for minutes in range(0, 125, 25):
        notification_id = comment(at=NOON + minutes * MINUTE)
        deliver(notification_id, at=NOON + minutes * MINUTE)
    (digest,) = all_digests()
    assert digest["closes_at"] == NOON + 4 * WINDOW
    assert digest["due_at"] == NOON + 4 * WINDOW + CLOSE_GRACE


def test_more_messages_than_max_items_are_counted() -> None:
    define(max_items=2)
    deliver(
        *[comment(str(number), at=NOON + number * MINUTE) for number in range(5)], at=NOON + HOUR
    )
    close(NOON + 2 * HOUR)
    (carrier,) = carriers()
    assert carrier["content"]["body"] == "3; 4; 3 more"


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ("read", "cancelled", "not_needed"),
        ("muted", "suppressed", "opted_out"),
        ("expired", "expired", "expired"),
        ("cancelled", "cancelled", "cancelled"),
        ("deleted", "cancelled", "cancelled"),
    ],
)
def test_message_that_is_not_needed_at_the_end_is_dropped(
    change: str, status: str, code: str
) -> None:
    dropped = comment("Dropped", expires_at=NOON + WINDOW + MINUTE)
    others = [comment("One", user_id="ada"), comment("Two", user_id="ada")]
    deliver(dropped, *others)
    closing = CLOSING
    if change == "read":
        inbox.mark_read_by_client(client_id=CLIENT, notification_id=dropped, now=NOON)
    elif change == "muted":
        preferences = {"comment": {"muted": True}}
        registered("ada", preferences=preferences)
    elif change == "expired":
        closing = NOON + WINDOW + 2 * MINUTE
    elif change == "cancelled":
        actions.cancel(notification_id=dropped, channels=[EMAIL], reason="Done.", now=NOON)
    else:
        removal.delete(notification_id=dropped, client_id=CLIENT, now=NOON)
    close(closing)
    assert (state(dropped)["status"], state(dropped)["failure_code"]) == (status, code)
    if change == "muted":
        assert carriers() == []
        assert all_digests()[0]["outcome"] == "empty"
    else:
        assert [carrier["content"]["body"] for carrier in carriers()] == ["One; Two; 0 more"]


def test_message_that_expires_before_the_end_ends_at_once() -> None:
    notification_id = comment(expires_at=NOON + 10 * MINUTE)
    deliver(notification_id)
    assert (state(notification_id)["status"], state(notification_id)["failure_code"]) == (
        "expired",
        "in_digest",
    )


def test_urgent_retried_and_resent_messages_are_sent_by_themselves(fcm: ScriptedProvider) -> None:
    urgent = comment(priority=Priority.CRITICAL)
    resent = comment(resent_from=ObjectId())
    deliver(urgent, resent)
    assert statuses(urgent, resent) == ["sent", "sent"]
    assert all_digests() == []


def test_code_of_another_types_template_is_sent_by_itself(fcm: ScriptedProvider) -> None:
    """Whatever a recipient prefers for the type, a login code doesn't wait for a digest."""
    registered("ada", preferences={"comment": {"digest": {"every": "week", "at": "18:00"}}})
    content = Content(subject="Your code", body="604271", template_id="mfa_code")
    code = comment(content=content)
    deliver(code)
    assert statuses(code) == ["sent"]
    assert all_digests() == []


def test_carrier_waits_for_the_end_of_quiet_hours() -> None:
    hours = PersonalQuietHours(enabled=True, start="12:00", end="14:00", timezone="UTC")
    registered("ada", quiet_hours=hours)
    deliver(comment(), comment())
    close()
    (carrier,) = carriers()
    deliver(carrier["_id"], at=CLOSING)
    held = state(carrier["_id"])
    assert (held["failure_code"], held["next_attempt_at"]) == ("quiet_hours", NOON + 2 * HOUR)


def test_recipient_has_an_own_schedule_or_none(fcm: ScriptedProvider) -> None:
    own = {"comment": {"digest": {"every": "day", "at": "18:00"}}}
    registered("ada", preferences=own, timezone="UTC")
    registered("bob", preferences={"comment": {"digest": "off"}})
    ada, bob = comment(), comment(user_id="bob")
    deliver(ada, bob)
    assert statuses(ada, bob) == ["pending", "sent"]
    assert all_digests()[0]["closes_at"] == NOON + 6 * HOUR


def test_scheduled_window_has_one_digest_unless_it_is_closed_early() -> None:
    define(window={"every": "day", "at": "18:00", "zone": "UTC"})
    deliver(comment(), comment())
    (first,) = all_digests()
    # Staff close it early: the next message has a digest of the same window.
    assert store_digests.end_digest(first["_id"], now=NOON + MINUTE) is not None
    deliver(comment(at=NOON + 2 * MINUTE), comment(at=NOON + 2 * MINUTE), at=NOON + 2 * MINUTE)
    second = all_digests()[1]
    assert second["closes_at"] == first["window_ends_at"] == NOON + 6 * HOUR
    # A clock that is behind: the window's digest is closing, and the next one is used.
    assert store_digests.end_digest(second["_id"], now=NOON + 6 * HOUR) is not None
    late = comment(at=NOON + 3 * MINUTE)
    deliver(late, at=NOON + 6 * HOUR - MINUTE)
    assert close(NOON + 7 * HOUR) == 2
    assert len(carriers()) == 2
    assert state(late)["status"] == "pending"


def test_two_events_in_one_millisecond_are_one_digest() -> None:
    ids = [comment(str(number)) for number in range(8)]
    at_once(*[partial(deliver, notification_id) for notification_id in ids])
    assert len({state(notification_id)["digest_id"] for notification_id in ids}) == 1
    assert len(all_digests()) == 1


def test_two_closers_make_one_carrier() -> None:
    ids = [comment(str(number), user_id=f"user-{number % 10}") for number in range(30)]
    deliver(*ids)
    at_once(*[close] * 4)
    while close(CLOSING + 2 * MINUTE):
        pass
    assert len(carriers()) == 10
    assert set(statuses(*ids)) == {"merged"}
    assert all(carrier["data"]["digest"]["count"] == 3 for carrier in carriers())


@pytest.mark.parametrize("boundary", CLOSE_BOUNDARIES)
def test_lost_closer_is_continued(boundary: Boundary, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [comment("One"), comment("Two")]
    deliver(*ids)
    with monkeypatch.context() as patch:
        stop_at(patch, boundary)
        with pytest.raises(LostWorkerError):
            close()
    assert close(CLOSING + MINUTE) == 0  # The lease still holds.
    assert close(CLOSING + LEASES.length) == 1
    assert len(carriers()) == 1
    assert statuses(*ids) == ["merged", "merged"]
    assert all_digests()[0]["status"] == "closed"


@pytest.mark.parametrize("boundary", [Boundary.DIGEST_OPENED, Boundary.DIGEST_JOINED])
def test_lost_member_joins_again(boundary: Boundary, monkeypatch: pytest.MonkeyPatch) -> None:
    first, other = comment("One"), comment("Two")
    with monkeypatch.context() as patch:
        stop_at(patch, boundary)
        with pytest.raises(LostWorkerError):
            deliver(first)
    later = NOON + 2 * MINUTE  # After the lease
    deliver(first, other, at=later)
    close(NOON + HOUR)
    assert [carrier["data"]["digest"]["count"] for carrier in carriers()] == [2]


@pytest.mark.parametrize("trouble", [CUT, LOST_ANSWER])
@pytest.mark.parametrize("name", ["digests", "notifications"])
def test_failed_write_loses_no_member(name: str, trouble: Any) -> None:
    ids = [comment("One"), comment("Two")]
    deliver(*ids)
    for command in ("update", "insert"):
        with fail_commands(command, name, trouble), pytest.MonkeyPatch.context() as patch:
            patch.setattr("notifications.store.collections.MAX_RETRY_SECONDS", 0)
            with suppress(PyMongoError):
                close()
    for minutes in range(3, 12, 3):
        close(CLOSING + minutes * MINUTE)
    assert [carrier["data"]["digest"]["count"] for carrier in carriers()] == [2]
    assert statuses(*ids) == ["merged", "merged"]


def test_frozen_closer_neither_adds_a_member_nor_takes_one() -> None:
    """A closer is frozen after it leased a digest; another one closes it; then it wakes up."""
    ids = [comment("One"), comment("Two")]
    deliver(*ids)
    frozen = store_digests.acquire_due(worker="w", now=CLOSING, limit=10)
    assert len(frozen[0].members) == 2
    later = CLOSING + LEASES.length
    assert close(later) == 1
    digests._close(frozen, lambda: later + MINUTE)
    assert len(carriers()) == 1
    assert statuses(*ids) == ["merged", "merged"]
    assert carriers()[0]["data"]["digest"]["count"] == 2


def test_member_that_was_stored_too_late_joins_the_next_digest() -> None:
    ids = [comment("One"), comment("Two")]
    late = comment("Late")
    deliver(*ids, late)
    # As if its write had come after the digest was closed.
    path = {"_id": late}
    collection("notifications").update_one(path, {"$set": {"delivery.0.status": "sending"}})
    close()
    collection("notifications").update_one(path, {"$set": {"delivery.0.status": "pending"}})
    assert len(carriers()) == 1
    again = NOON + WINDOW + RECHECK
    deliver(late, comment("Next", at=again), at=again)
    assert state(late)["digest_id"] != state(ids[0])["digest_id"]
    close(again + WINDOW + CLOSE_GRACE)
    assert statuses(late) == ["merged"]
    bodies = {carrier["content"]["body"] for carrier in carriers()}
    assert bodies == {"One; Two; 0 more", "Late; Next; 0 more"}


def test_member_of_a_digest_that_closed_meanwhile_is_due_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notification_id = comment()
    original = digests.confirm_joined

    def confirm(joined: Any, *, now: datetime) -> None:
        collection("digests").update_many({}, {"$set": {"status": "closed"}})
        original(joined, now=now)

    monkeypatch.setattr(digests, "confirm_joined", confirm)
    deliver(notification_id)
    assert state(notification_id)["next_attempt_at"] == NOON


def test_member_that_is_sent_now_leaves_its_digest(fcm: ScriptedProvider) -> None:
    first, *others = [comment(text) for text in ("One", "Two", "Three")]
    deliver(first, *others)
    assert actions.make_due_now(notification_id=first, now=NOON + MINUTE) is not None
    deliver(first, at=NOON + MINUTE)
    assert statuses(first) == ["sent"]
    close()
    assert carriers()[0]["data"]["digest"]["count"] == 2


def test_selected_member_is_neither_cancelled_nor_sent_now() -> None:
    ids = [comment("One"), comment("Two")]
    deliver(*ids)
    (closing,) = store_digests.acquire_due(worker="w", now=CLOSING, limit=10)
    member_id = ids[0]
    assert (
        actions.cancel(notification_id=member_id, channels=[EMAIL], reason="Done.", now=CLOSING)
        is None
    )
    assert actions.make_due_now(notification_id=member_id, now=CLOSING) is None
    assert actions.cancel_pending(ids=[member_id], reason="Done.", now=CLOSING) == 0
    digests._close([closing], lambda: CLOSING)
    assert statuses(*ids) == ["merged", "merged"]


def test_cancelled_digest_cancels_its_members() -> None:
    ids = [comment("One"), comment("Two")]
    deliver(*ids)
    digest = all_digests()[0]["_id"]
    assert (
        store_digests.end_digest(digest, client_id=ObjectId(), is_cancelled=True, now=NOON) is None
    )
    assert (
        store_digests.end_digest(digest, client_id=CLIENT, is_cancelled=True, now=NOON) is not None
    )
    close(NOON + CLOSE_GRACE)
    assert statuses(*ids) == ["cancelled", "cancelled"]
    assert carriers() == []
    assert all_digests()[0]["outcome"] == "cancelled"


def test_message_beyond_a_limit_goes_into_a_digest(fcm: ScriptedProvider) -> None:
    define(only_over_limit=True)
    limits.define_limit(
        "daily",
        {
            "types": ["comment"],
            "categories": [],
            "channels": ["email"],
            "max": 1,
            "period_seconds": 3_600,
            "min_gap_seconds": 0,
            "overflow": "digest",
        },
        now=NOON,
    )
    try:
        ids = [comment(str(number)) for number in range(3)]
        deliver(*ids)
        assert statuses(*ids) == ["sent", "pending", "pending"]
        assert state(ids[1])["failure_code"] == "in_digest"
        close()
        (carrier,) = carriers()
        deliver(carrier["_id"], at=CLOSING)
        assert state(carrier["_id"])["failure_code"] == "over_limit"
        deliver(carrier["_id"], at=NOON + HOUR)
        assert statuses(carrier["_id"]) == ["sent"]
    finally:
        collection("limits").delete_many({})
        limits.invalidate_limits()


def test_sweep_enqueues_due_digests() -> None:
    deliver(comment(), comment())
    assert digests.enqueue_due(now=NOON) == 0
    assert digests.enqueue_due(now=CLOSING - MINUTE / 2) == 1
    assert digests.enqueue_due(now=CLOSING) == 1
    sweeper.sweep(now=CLOSING)


def test_member_that_a_sealed_digest_missed_is_not_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    ids, late = [comment("One"), comment("Two")], comment("Late")
    deliver(*ids, late)
    # As if it were stored after the selection.
    path = {"_id": late}
    collection("notifications").update_one(path, {"$set": {"delivery.0.status": "sending"}})
    with monkeypatch.context() as patch:
        stop_at(patch, Boundary.DIGEST_CARRIED)
        with pytest.raises(LostWorkerError):
            close()
    collection("notifications").update_one(path, {"$set": {"delivery.0.status": "pending"}})
    assert close(CLOSING + LEASES.length) == 1
    assert statuses(*ids, late) == ["merged", "merged", "pending"]
    assert carriers()[0]["data"]["digest"]["count"] == 2


def test_selected_member_does_not_expire_while_its_digest_closes() -> None:
    ids = [comment(text, expires_at=NOON + WINDOW + MINUTE) for text in ("One", "Two")]
    deliver(*ids)
    (closing,) = store_digests.acquire_due(worker="w", now=CLOSING, limit=10)
    deliver(*ids, at=NOON + WINDOW + RECHECK)
    assert statuses(*ids) == ["pending", "pending"]
    digests._close([closing], lambda: CLOSING)
    assert statuses(*ids) == ["merged", "merged"]


def test_large_numbers_are_items_of_a_digest() -> None:
    ids = [comment("One", data={"text": 2**40}), comment("Two", data={"text": 2**40})]
    deliver(*ids)
    close()
    assert statuses(*ids) == ["merged", "merged"]


def test_defect_of_one_digest_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [comment("One"), comment("Two"), comment("A", user_id="bob"), comment("B", user_id="bob")]
    deliver(*ids)
    original = digests._data

    def data(closing: Any, members: Any, now: datetime) -> Any:
        if members[0].user_id == "bob":
            raise TypeError
        return original(closing, members, now)

    monkeypatch.setattr(digests, "_data", data)
    close()
    assert statuses(*ids) == ["merged", "merged", "pending", "pending"]
    assert state(ids[2])["skips_digest"] is True


def test_digest_whose_closers_were_lost_is_leased_alone() -> None:
    for user in ("ada", "bob", "eve"):
        deliver(comment("One", user_id=user), comment("Two", user_id=user))
    bad = all_digests()[0]["_id"]
    collection("digests").update_one({"_id": bad}, {"$set": {"claim_count": 2}})
    leased = [store_digests.acquire_due(worker="w", now=CLOSING, limit=10) for _ in range(20)]
    assert sorted(len(item) for item in leased if item) == [1, 2]


def test_digest_that_takes_long_to_close_is_leased_for_longer() -> None:
    deliver(comment(), comment())
    leases: list[float] = []
    now = CLOSING
    for _ in range(30):
        store_digests.acquire_due(worker="w", now=now, limit=1)
        assert store_digests.acquire_due(worker="w", now=now, limit=1) == []
        ends_at = all_digests()[0]["due_at"]
        leases.append((ends_at - now).total_seconds())
        now = ends_at
    assert leases[:3] == [90, 180, 270]
    assert leases[-2:] == [1_800, 1_800]


def test_messages_to_other_addresses_are_not_in_one_digest() -> None:
    home = comment("One", recipient=AT_HOME)
    deliver(comment("Two"), home)
    assert len(all_digests()) == 2


def test_own_schedule_does_not_slide() -> None:
    define(sliding=True)
    own = {"comment": {"digest": {"every": "day", "at": "12:10"}}}
    registered("ada", preferences=own, timezone="UTC")
    deliver(comment(), comment())
    assert all_digests()[0]["closes_at"] == NOON + 10 * MINUTE


def test_message_sent_now_twice_stays_out_of_the_digest() -> None:
    hours = PersonalQuietHours(enabled=True, start="12:00", end="14:00", timezone="UTC")
    registered("ada", quiet_hours=hours)
    notification_id = comment()
    deliver(notification_id)
    for minutes in (1, 2):
        at = NOON + minutes * MINUTE
        assert actions.make_due_now(notification_id=notification_id, now=at) is not None
        deliver(notification_id, at=at)
        assert (state(notification_id)["failure_code"], state(notification_id)["skips_digest"]) == (
            "quiet_hours",
            True,
        )


@pytest.mark.parametrize(("overflow", "status"), [("digest", "pending"), ("drop", "suppressed")])
def test_message_beyond_a_limit_without_a_digest_is_refused(overflow: str, status: str) -> None:
    define(only_over_limit=True)
    registered("ada", preferences={"comment": {"digest": "off"}})
    limit = {"types": ["comment"], "categories": [], "channels": ["email"], "max": 1}
    limit |= {"period_seconds": 3_600, "min_gap_seconds": 0, "overflow": overflow}
    limits.define_limit("daily", limit, now=NOON)
    try:
        ids = [comment("One"), comment("Two")]
        deliver(*ids)
        assert (state(ids[1])["status"], state(ids[1])["failure_code"]) == (status, "over_limit")
        assert state(ids[1])["claim"] is None
    finally:
        collection("limits").delete_many({})
        limits.invalidate_limits()


def test_members_are_found_by_their_index() -> None:
    deliver(comment(), comment())
    plan = collection("notifications").find(store_digests._match_waiting([ObjectId()])).explain()
    assert "COLLSCAN" not in str(plan["queryPlanner"]["winningPlan"])


@pytest.mark.parametrize("user_id", ["ada", None])
def test_erasure_cancels_an_open_digest(user_id: str | None, fcm: ScriptedProvider) -> None:
    define(key="text")
    registered("ada", email=AT_HOME.email)
    ids = [comment("Alice and Bob", user_id=user_id, recipient=AT_HOME) for _ in range(2)]
    deliver(*ids)
    erasure.erase("ada", now=NOON + MINUTE)
    [digest] = all_digests()
    assert not {"user_id", "key"} & digest.keys()
    assert close(NOON + 2 * MINUTE) == 1
    [digest] = all_digests()
    assert (digest["status"], digest["outcome"]) == ("closed", "cancelled")
    assert (statuses(*ids), carriers()) == (["cancelled"] * 2, [])


@pytest.mark.parametrize("user_id", ["ada", None])
@pytest.mark.parametrize("boundary", CLOSE_BOUNDARIES)
def test_erasure_during_a_close_leaves_nothing_to_send(
    boundary: Boundary, user_id: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered("ada", email=AT_HOME.email)
    deliver(*(comment(text, user_id=user_id, recipient=AT_HOME) for text in ("One", "Two")))

    def reach(reached: Boundary) -> None:
        if reached is boundary:
            erasure.erase("ada", now=CLOSING)

    monkeypatch.setattr(crash_points, "reach", reach)
    close()
    monkeypatch.undo()
    close(CLOSING + LEASES.length)
    assert [digest["status"] for digest in all_digests()] == ["closed"]
    for document in collection("notifications").find():
        assert ("due_at" in document, document["data"]) == (False, {})
        assert document["content"].keys() <= {"template_id", "template_version"}
        assert document["recipient"] == {"device_ids": []}
