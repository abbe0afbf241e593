"""Messages to rooms in the pipeline: pace, digest, refusals, and what others notice of them."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import digests, pipeline
from delivery.runtime import SendingRuntime
from domain.channels import ROOM, Channel
from domain.content import Content, Recipient
from domain.errors import FailureCode, InvalidRecipientError, RecipientAction
from domain.retry import MAX_OUTAGE
from domain.rooms import RoomKind
from domain.states import Priority
from notifications.catalog import shipped_types
from notifyproject.db.collections import collection
from rooms import registry
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON
from tests.support.fakes.provider import (
    ScriptedProvider,
    accepted,
    channel_unavailable,
    rate_limited,
)

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow", "broker")

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
URL = "https://discord.com/api/webhooks/223704706495545344/{}"


class RoomsProvider(ScriptedProvider):
    """A provider of rooms of Discord, whose outcomes are scripted by room."""

    def accepts(self, target: Any) -> bool:
        return bool(target.transport == RoomKind.DISCORD)

    def scope(self, target: Any) -> str:
        return str(target.room)

    def posts(self, room: str) -> list[str]:
        return [request.message.subject for request in self.seen if request.scope == room]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> RoomsProvider:
    scripted = RoomsProvider(name="discord")
    monkeypatch.setattr(pipeline, "providers_for", lambda _channel, test=False: (scripted,))
    return scripted


@pytest.fixture(autouse=True)
def rooms() -> Iterator[None]:
    shipped_types.add_missing_types()
    for slug in ("ops", "shop"):
        registry.create(
            slug=slug,
            kind=RoomKind.DISCORD,
            name=slug.title(),
            target=URL.format(slug),
            min_gap_seconds=1,
            now=NOON,
        )
    yield
    for slug in ("ops", "shop"):
        registry.remove(slug)


def alert(room: str = "ops", *, at: datetime = NOON, **fields: Any) -> ObjectId:
    content = Content(subject=fields.pop("subject", "Disk full"), body="On db_1.")
    document = factories.accepted(
        **{
            "channels": (ROOM,),
            "recipient": Recipient(room=room),
            "user_id": None,
            "content": content,
            "created_at": at,
            **fields,
        }
    )
    return ObjectId(document["_id"])


class World:
    """A process that sends what is due, second by second."""

    def __init__(self) -> None:
        self.runtime, self.now = SendingRuntime(), NOON

    def deliver(self, *ids: ObjectId) -> None:
        pipeline.dispatch(self.runtime, ids, channel=ROOM, clock=lambda: self.now)

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            due = {"due_at": {"$lte": self.now}}
            self.deliver(*(d["_id"] for d in collection("notifications").find(due, {"_id": 1})))
            digests.close_due(clock=lambda: self.now)
            self.now += SECOND


def state(notification_id: ObjectId) -> dict[str, Any]:
    return factories.delivery(factories.read(notification_id), ROOM)


def gone() -> InvalidRecipientError:
    return InvalidRecipientError(
        "The webhook was deleted. (404)",
        action=RecipientAction.DEACTIVATE,
        code=FailureCode.ROOM_GONE,
    )


def test_message_goes_to_its_room(provider: RoomsProvider) -> None:
    notification_id = alert()
    World().deliver(notification_id)
    (request,) = provider.seen
    assert (request.recipient, request.scope) == (URL.format("ops"), "ops")
    assert (request.message.subject, request.message.text) == ("Disk full", r"On db\_1.")
    assert state(notification_id)["status"] == "sent"
    assert registry.get("ops")["last_accepted_at"] is not None
    stored = repr(list(collection("delivery_attempts").find()))
    assert "discord.com" not in stored


def test_room_takes_a_message_each_gap_in_the_order_of_their_times(provider: RoomsProvider) -> None:
    ids = [alert(subject=str(n), at=NOON - (10 - n) * SECOND) for n in range(4)]
    world = World()
    world.deliver(*reversed(ids))
    assert provider.posts("ops") == ["0"]
    waiting = state(ids[1])
    assert (waiting["failure_code"], waiting["held_reason"]) == (
        "recipient_rate_limited",
        "rate_limited",
    )
    world.run(6)
    assert provider.posts("ops") == ["0", "1", "2", "3"]


def test_300_alerts_in_a_minute_become_at_most_60_posts_and_one_digest(
    provider: RoomsProvider,
) -> None:
    world = World()
    for second in range(60):
        for number in range(5):
            alert(subject=f"{second}.{number}", at=world.now)
        world.run(1)
    world.run(90)
    posts = provider.posts("ops")
    digest = [subject for subject in posts if subject.endswith(" messages")]
    single = [subject for subject in posts if not subject.endswith(" messages")]
    assert len(posts) <= 60
    assert len(digest) == 1
    assert len(single) + int(digest[0].split()[0]) == 300
    statuses = collection("notifications").distinct("status")
    assert set(statuses) <= {"sent", "merged"}


def test_burst_of_300_alerts_is_60_posts_at_most_and_one_digest(provider: RoomsProvider) -> None:
    for number in range(300):
        alert(subject=str(number))
    world = World()
    world.run(100)
    posts = provider.posts("ops")
    (digest,) = [subject for subject in posts if subject.endswith(" messages")]
    assert len(posts) <= 60
    assert len(posts) - 1 + int(digest.split()[0]) == 300
    (carrier,) = collection("notifications").find({"type": "room_digest"})
    assert carrier["recipient"] == {"device_ids": [], "room": "ops", "given": ["room"]}
    assert "user_id" not in carrier
    text = provider.seen[-1].message.text
    assert text.count("\n- ") + text.startswith("- ") >= 20


def test_gone_room_is_disabled_and_others_are_served(provider: RoomsProvider) -> None:
    provider.behave = lambda request: gone() if request.scope == "ops" else accepted()
    world = World()
    first, other, second = alert(), alert("shop"), alert(at=NOON + SECOND)
    world.run(5)
    assert state(first)["failure_code"] == "room_gone"
    assert state(second)["failure_reason"] == (
        "The room is disabled: The webhook was deleted. (404)"
    )
    assert state(other)["status"] == "sent"
    assert len([request for request in provider.seen if request.scope == "ops"]) == 1
    document = registry.get("ops")
    assert (document["enabled"], document["disabled_reason"]) == (
        False,
        "The webhook was deleted. (404)",
    )


def test_room_with_a_new_target_stays_enabled_after_a_refusal_of_the_old_one(
    provider: RoomsProvider,
) -> None:
    def behave(request: Any) -> Any:
        registry.change("ops", target=URL.format("new"), now=NOON)
        return gone()

    provider.behave = behave
    World().deliver(alert())
    assert registry.get("ops")["enabled"]


def test_full_room_waits_as_it_asks_and_delays_nobody(provider: RoomsProvider) -> None:
    def behave(request: Any) -> Any:
        if request.scope == "ops":
            return rate_limited(retry_after=3600.0, scope="ops")
        return accepted()

    provider.behave = behave
    world = World()
    held = [alert(), alert()]
    world.run(3)
    others = []
    for _ in range(30):
        others.append(alert("shop", at=world.now))
        world.run(1)
    world.run(2)
    assert {state(notification_id)["status"] for notification_id in others} == {"sent"}
    assert len(provider.posts("ops")) == 1
    for notification_id in held:
        waiting = state(notification_id)
        assert waiting["status"] == "pending"
        assert waiting["next_attempt_at"] >= NOON + HOUR


def test_room_that_refuses_the_bot_opens_its_own_circuit_alone(provider: RoomsProvider) -> None:
    def behave(request: Any) -> Any:
        return channel_unavailable(scope="ops") if request.scope == "ops" else accepted()

    provider.behave = behave
    world = World()
    first = alert()
    world.run(2)
    second, other = alert(at=world.now), alert("shop", at=world.now)
    world.run(3)
    assert state(other)["status"] == "sent"
    assert [state(i)["status"] for i in (first, second)] == ["pending", "pending"]
    assert len(provider.posts("ops")) == 1


def test_full_bucket_pauses_the_room_before_a_refusal(provider: RoomsProvider) -> None:
    provider.behave = lambda _request: accepted(pause=20.0)
    world = World()
    first = alert()
    world.run(1)
    second = alert(at=world.now)
    world.run(10)
    assert [state(i)["status"] for i in (first, second)] == ["sent", "pending"]
    world.run(12)
    assert state(second)["status"] == "sent"


def test_disabled_or_removed_room_gets_nothing(provider: RoomsProvider) -> None:
    to_disabled, to_removed = alert(), alert("shop")
    registry.disable("ops", now=NOON)
    registry.remove("shop")
    World().deliver(to_disabled, to_removed)
    assert provider.seen == []
    assert state(to_disabled)["failure_reason"] == "The room is disabled: Disabled by staff."
    assert state(to_removed)["failure_reason"] == "The room was removed."


def test_disabled_room_fails_at_once_even_if_it_was_crowded(provider: RoomsProvider) -> None:
    registry.change("ops", min_gap_seconds=10, now=NOON)
    crowded = [alert() for _ in range(9)]
    world = World()
    world.run(1)
    registry.disable("ops", now=NOON)
    ids = [alert(at=world.now) for _ in range(9)]
    world.deliver(*ids)
    assert {state(notification_id)["status"] for notification_id in ids} == {"failed"}
    assert "pending" in {state(notification_id)["status"] for notification_id in crowded}


def test_digest_of_a_slow_room_collects_until_the_room_takes_a_message(
    provider: RoomsProvider,
) -> None:
    registry.change("ops", min_gap_seconds=600, now=NOON)
    World().deliver(*[alert() for _ in range(3)])
    (digest,) = collection("digests").find()
    assert digest["closes_at"] == NOON + 10 * MINUTE


def test_room_of_a_kind_without_a_provider_fails_alone(provider: RoomsProvider) -> None:
    registry.create(
        slug="bot",
        kind=RoomKind.SLACK_BOT,
        name="Bot",
        target="C024BE91L",
        min_gap_seconds=1,
        now=NOON,
    )
    notification_id, other = alert("bot"), alert()
    World().deliver(notification_id, other)
    registry.remove("bot")
    assert state(notification_id)["failure_code"] == "channel_unavailable"
    assert state(other)["status"] == "sent"


def test_room_of_a_kind_of_another_version_waits_alone(provider: RoomsProvider) -> None:
    collection("rooms").update_one({"_id": "shop"}, {"$set": {"kind": "pigeon_loft"}})
    notification_id, other = alert("shop"), alert()
    World().deliver(notification_id, other)
    waiting = state(notification_id)
    assert (waiting["status"], waiting["failure_code"], waiting["failure_reason"]) == (
        "pending",
        "channel_unavailable",
        "This version has no kind of room `pigeon_loft`.",
    )
    assert waiting["next_attempt_at"] > NOON
    assert state(other)["status"] == "sent"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"kind": "pigeon_loft"}, "channel_unavailable"),
        ({"target": "of another key"}, "decryption_failed"),
    ],
)
def test_room_that_nobody_mends_ends_its_messages(
    provider: RoomsProvider, change: dict[str, str], code: str
) -> None:
    """Also those without an expiry, after the three days for which outages hold a message."""
    collection("rooms").update_one({"_id": "shop"}, {"$set": change})
    notification_id, expiring, other = (
        alert("shop"),
        alert("shop", expires_at=NOON + SECOND),
        alert(),
    )
    registry.change("shop", min_gap_seconds=0, now=NOON)
    world = World()
    world.deliver(notification_id, expiring, other)
    held = state(notification_id)
    assert (held["status"], held["failure_code"]) == ("pending", code)
    assert (state(expiring)["status"], state(expiring)["failure_code"]) == ("failed", code)
    almost = MAX_OUTAGE - SECOND
    collection("notifications").update_one(
        {"_id": notification_id}, {"$set": {"delivery.0.held_ms": almost // (SECOND / 1000)}}
    )
    for _ in range(2):
        world.now = state(notification_id)["next_attempt_at"]
        world.deliver(notification_id)
    ended = state(notification_id)
    assert (ended["status"], ended["failure_code"]) == ("failed", code)
    assert ended["failed_at"] == world.now
    assert state(other)["status"] == "sent"


def test_preferences_and_quiet_hours_of_a_person_are_not_a_room_s(provider: RoomsProvider) -> None:
    collection("recipients").insert_one(
        {
            "_id": "ada",
            "preferences": {"transactional": {"muted": True}},
            "quiet_hours": {"enabled": True, "start": "00:00", "end": "23:59", "timezone": "UTC"},
            "is_active": True,
            "created_at": NOON,
            "updated_at": NOON,
        }
    )
    notification_id = alert(user_id="ada", priority=Priority.LOW)
    World().deliver(notification_id)
    assert state(notification_id)["status"] == "sent"


def test_channels_are_named_by_trait() -> None:
    assert Channel("room") is ROOM
