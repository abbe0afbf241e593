"""Broadcasts: an audience is read page by page, and everybody in it is told once."""

from datetime import timedelta

import pytest

from domain.states import Priority
from notifications.broadcasts import repository
from notifications.broadcasts.requests import AudienceRequest
from notifications.catalog import types
from notifications.intake.requests import Caller
from notifyproject.db.collections import collection
from recipients import registration, topics
from recipients.models import SuppressionReason
from tests.support.factories.broadcasts import (
    begun,
    go_on,
    name,
    people,
    read,
    to_its_end,
    told,
    topic,
)
from tests.support.factories.notifications import CLIENT, NOON, hold_back

pytestmark = pytest.mark.usefixtures("db", "broker", "pages_of_three")

SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)


# Whom it reaches.


def test_everybody_who_is_registered_is_told_once() -> None:
    names = people(7)
    one = begun()
    assert to_its_end(one) == 3
    assert told(one) == names
    done = read(one)
    assert (done["status"], done["accepted"]) == ("completed", 7)
    assert (done["started_at"], done["finished_at"]) == (NOON, NOON)
    assert "due_at" not in done
    assert "claim" not in done


def test_a_full_last_page_is_followed_by_an_empty_one() -> None:
    people(6)
    one = begun()
    assert to_its_end(one) == 3
    assert read(one)["accepted"] == 6


def test_who_is_being_erased_is_not_told() -> None:
    people(3)
    registration.begin_erasure(name(1), now=NOON)
    one = begun()
    to_its_end(one)
    assert told(one) == [name(0), name(2)]


def test_a_topics_members_are_told_and_nobody_else() -> None:
    names = people(5)
    one = begun(topic("news", *names[:4]))
    topic("other", names[4])
    to_its_end(one)
    assert told(one) == names[:4]


def test_who_joins_a_topic_behind_the_place_that_was_reached_is_told() -> None:
    people(9)
    one = begun(topic("news", *(name(n) for n in range(1, 5))))
    go_on(one)
    topics.join(topic="news", user_id=name(0), now=NOON)
    topics.join(topic="news", user_id=name(8), now=NOON)
    to_its_end(one)
    assert told(one) == [name(n) for n in (1, 2, 3, 4, 8)]


def test_people_who_are_named_are_told_once_in_whatever_order() -> None:
    people(5)
    named = [name(n) for n in (4, 0, 4, 2, 3)]
    one = begun(AudienceRequest(user_ids=named))
    to_its_end(one)
    assert told(one) == [name(n) for n in (0, 2, 3, 4)]


def test_nobody_at_all_is_soon_done() -> None:
    one = begun(AudienceRequest(topic="nobody-is-in-it"))
    assert to_its_end(one) == 1
    assert (read(one)["status"], read(one)["audience_size"]) == ("completed", 0)


def test_about_how_many_there_are_is_known_from_the_beginning() -> None:
    names = people(4)
    assert read(begun())["audience_size"] == 4
    assert read(begun(topic("news", *names[:2])))["audience_size"] == 2
    assert read(begun(AudienceRequest(user_ids=["a", "b", "a"])))["audience_size"] == 2


# What they are told.


def test_each_notification_is_like_one_that_was_asked_for_by_itself() -> None:
    people(1, locale="pt")
    one = begun(ttl=600, caller=Caller(client_id=CLIENT, request_id="r", is_test=True))
    go_on(one)
    document = collection("notifications").find_one({"broadcast_id": one})
    assert document is not None
    assert document["user_id"] == name(0)
    assert document["recipient"] == {
        "device_ids": [],
        "email": f"{name(0)}@example.com",
        "locale": "pt",
    }
    assert document["content"]["body"] == "It is spring."
    assert document["client_id"] == CLIENT
    assert document["is_test"] is True
    assert document["request_id"] == "r"
    assert document["expires_at"] == NOON + timedelta(seconds=600)
    assert document["status"] == "queued"


def test_a_template_is_rendered_for_each_in_their_language() -> None:
    people(1, locale="pt")
    people(1, first=1, locale="en")
    kind = types.read_type("contest_starting")
    assert kind is not None
    one = begun(type="contest_starting", content=..., data=kind["example_data"])
    to_its_end(one)
    said = {d["user_id"]: d["content"]["body"] for d in collection("notifications").find()}
    assert len(set(said.values())) == 2


def test_it_is_low_unless_more_is_asked_for() -> None:
    people(1)
    for asked, given in ((None, Priority.LOW), ("high", Priority.HIGH), ("medium", "normal")):
        one = begun(type="alert", priority=asked)
        go_on(one)
        document = collection("notifications").find_one({"broadcast_id": one})
        assert document is not None
        assert document["priority"] == read(one)["priority"] == given


# Who is not told, and why.


def test_who_wants_nothing_of_it_has_no_notification_and_is_counted() -> None:
    names = people(4)
    mute = {"preferences": {"marketing": {"muted": True}}}
    collection("recipients").update_many({"_id": {"$in": names[:2]}}, {"$set": mute})
    hold_back(f"{names[2]}@example.com", reason=SuppressionReason.UNSUBSCRIBED, marketing_only=True)
    one = begun()
    to_its_end(one)
    assert told(one) == [names[3]]
    assert read(one)["skipped"] == {
        "opted_out": {"count": 2, "examples": names[:2]},
        "suppressed": {"count": 1, "examples": [names[2]]},
    }


def test_whom_nothing_reaches_is_counted_with_some_of_their_ids() -> None:
    strangers = [f"stranger-{n:02d}" for n in range(30)]
    one = begun(AudienceRequest(user_ids=strangers))
    to_its_end(one)
    kept = read(one)["skipped"]["no_address"]
    assert (kept["count"], kept["examples"]) == (30, strangers[: repository.MAX_EXAMPLES])


def test_of_the_channels_that_are_named_each_gets_those_that_reach_them() -> None:
    people(1)
    people(1, first=1, phone="+351912345678")
    one = begun(channels=["email", "whatsapp"], type="alert")
    to_its_end(one)
    found = {d["user_id"]: d["channels"] for d in collection("notifications").find()}
    assert found == {name(0): ["email"], name(1): ["email", "whatsapp"]}


def test_whose_notification_cannot_be_made_is_counted_by_the_problem() -> None:
    people(1)
    one = begun(AudienceRequest(user_ids=["nul\x00", name(0)]))
    to_its_end(one)
    assert told(one) == [name(0)]
    assert read(one)["rejected"] == {"invalid": {"count": 1, "examples": ["nul\x00"]}}
