"""Update pipelines derive the same fields as the Python functions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.states import OPEN, SUCCEEDED, DeliveryStatus, NotificationStatus, overall_status
from notifications.store.pipelines import (
    Computed,
    claimed_with,
    derived_fields,
    in_statuses,
    of_channel,
    update,
    update_each,
)
from notifyproject.db.collections import database
from tests.support.factories.notifications import NOON
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow")

S = DeliveryStatus
SCRATCH = "scratch"
TEXTS = ["$$ROOT", "$delivery", "$$d.status", "$", "a.b", "", "text", "{{ x }}"]
ROUNDS, BATCH = range(2), 500


def random_moment(rng: Random) -> datetime:
    return NOON + timedelta(minutes=rng.randint(-3, 3))


def random_claim(rng: Random) -> dict[str, Any]:
    return {"token": rng.choice(["t1", "t2"]), "lease_until": random_moment(rng), "worker": "w"}


def random_delivery(rng: Random, channel: Channel) -> dict[str, Any]:
    """Return a random delivery in a possible stored state."""
    status = rng.choice(list(S))
    delivery: dict[str, Any] = {
        "channel": channel.value,
        "status": status.value,
        "attempt_count": rng.randint(0, 2),
    }
    if status in (S.PENDING, S.UNKNOWN):
        delivery["next_attempt_at"] = random_moment(rng)
    if status is S.PENDING and rng.random() < 0.7:
        delivery["claim"] = rng.choice([None, random_claim(rng)])
    if status is S.SENDING:
        delivery |= {"next_attempt_at": None, "claim": random_claim(rng)}
    for name in ("sent_at", "failed_at", "read_at", "delivered_at"):
        if rng.random() < 0.7:
            delivery[name] = rng.choice([None, random_moment(rng)])
    return delivery


def random_batch(rng: Random) -> list[dict[str, Any]]:
    """Return documents with one to four channels each, to update all in one round trip."""
    return [
        {
            "delivery": [
                random_delivery(rng, channel)
                for channel in rng.sample(list(Channel), rng.randint(1, 4))
            ]
        }
        for _ in range(BATCH)
    ]


@dataclass(frozen=True)
class State:
    status: DeliveryStatus
    attempt_count: int
    is_waiting: bool


def status_by_python(deliveries: list[dict[str, Any]], now: datetime) -> NotificationStatus:
    return overall_status(
        [
            State(
                DeliveryStatus(d["status"]),
                d["attempt_count"],
                is_waiting=d.get("claim") is None and (d.get("next_attempt_at") or now) > now,
            )
            for d in deliveries
        ]
    )


def due_at_by_python(deliveries: list[dict[str, Any]]) -> datetime | None:
    """Return the earliest time at which a delivery is due: an attempt, or the end of a lease."""
    moments = [
        d["next_attempt_at"] or d["claim"]["lease_until"] for d in deliveries if d["status"] in OPEN
    ]
    return min(moments, default=None)


def extreme(deliveries: list[dict[str, Any]], name: str, choose: Any) -> datetime | None:
    return choose([d[name] for d in deliveries if d.get(name) is not None], default=None)


def inbox_at_by_python(deliveries: list[dict[str, Any]]) -> datetime | None:
    for d in deliveries:
        if d["channel"] == Channel.IN_APP and d["status"] in (S.DELIVERED, S.READ):
            return d.get("delivered_at")
    return None


@pytest.fixture(autouse=True)
def _scratch() -> Iterator[None]:
    yield
    database()[SCRATCH].drop()


def after(
    batch: Sequence[Mapping[str, Any]],
    pipeline: list[dict[str, Any]],
    only: Mapping[str, Any] | None = None,
    ids: Sequence[ObjectId] | None = None,
) -> list[dict[str, Any]]:
    """Store documents, update all with a pipeline in one round trip, and return the results."""
    scratch = database()[SCRATCH]
    scratch.delete_many({})
    named = zip(ids or range(len(batch)), batch, strict=True)
    scratch.insert_many([{**document, "_id": item} for item, document in named])
    scratch.update_many(only or {}, pipeline)
    return list(scratch.find({}).sort("_id", 1))


@pytest.mark.parametrize("round_", ROUNDS)
def test_derived_fields_equal_the_python_functions(round_: int) -> None:
    batch = random_batch(Random(round_))
    for before in batch[::3]:
        before["unread_at"] = NOON
    for number, before in enumerate(batch):
        before["error_history"] = [
            {"channel": channel.value, "error": f"{channel}"}
            for channel in list(Channel)[number % 5 :]
        ]
    for before in batch[::2]:
        before["marked_read_at"] = NOON
    for before, document in zip(batch, after(batch, [{"$set": derived_fields(NOON)}]), strict=True):
        deliveries, stays_read = before["delivery"], "unread_at" not in before
        assert document["status"] == status_by_python(deliveries, NOON), deliveries
        assert document.get("due_at") == due_at_by_python(deliveries), deliveries
        assert document.get("sent_at") == extreme(deliveries, "sent_at", min)
        assert document.get("failed_at") == extreme(deliveries, "failed_at", max)
        marks = [{"read_at": before.get("marked_read_at")}]
        first_read = extreme([*deliveries, *marks], "read_at", min) if stays_read else None
        assert document.get("read_at") == first_read
        was_read = "marked_read_at" in before or any(d["status"] == S.READ for d in deliveries)
        assert document["is_read"] is (was_read and stays_read)
        assert document.get("inbox_at") == inbox_at_by_python(deliveries)
        done = {d["channel"] for d in deliveries if d["status"] in SUCCEEDED}
        errors = [e["error"] for e in before["error_history"] if e["channel"] not in done]
        assert document.get("error") == (errors[-1] if errors else None)
        assert ("due_at" in document) is any(d["status"] in OPEN for d in deliveries)
        assert None not in document.values(), "partial indexes rely on a missing field"


@pytest.mark.parametrize("round_", ROUNDS)
def test_update_changes_one_delivery_and_derived_fields(round_: int) -> None:
    rng = Random(round_)
    batch, channel, text = random_batch(rng), rng.choice(list(Channel)), rng.choice(TEXTS)
    changes = {
        "status": rng.choice(list(S)).value,
        "claim": None,
        "next_attempt_at": NOON,
        "failure_reason": text,
    }
    counting = {"attempt_count": Computed({"$add": ["$$d.attempt_count", 1]})}
    pipeline = update(condition=of_channel(channel), changes=changes | counting, now=NOON)
    for before, document in zip(batch, after(batch, pipeline), strict=True):
        expected = [
            {**d, **changes, "attempt_count": d["attempt_count"] + 1}
            if d["channel"] == channel
            else d
            for d in before["delivery"]
        ]
        assert document["delivery"] == expected
        assert document["status"] == status_by_python(expected, NOON)
        assert document.get("due_at") == due_at_by_python(expected)
        assert document["updated_at"] == NOON


@pytest.mark.parametrize("round_", ROUNDS)
def test_batch_update_changes_each_differently(round_: int) -> None:
    rng = Random(round_)
    batch, channel = random_batch(rng), rng.choice(list(Channel))
    ids = [ObjectId(f"{n:024x}") for n in range(BATCH)]
    chosen = rng.sample(ids, BATCH // 2)
    changes = {
        item: {"status": rng.choice(list(S)).value, "claim": None, "next_attempt_at": NOON}
        | {"failure_reason": rng.choice(TEXTS)}
        for item in chosen
    }
    errors = {item: {"error": rng.choice(TEXTS)} for item in chosen[::2]}
    pipeline = update_each(condition=of_channel(channel), changes=changes, errors=errors, now=NOON)
    only = {"_id": {"$in": chosen}}
    for notification_id, before, document in zip(
        ids, batch, after(batch, pipeline, only, ids), strict=True
    ):
        expected = [
            {**d, **changes[notification_id]}
            if notification_id in changes and d["channel"] == channel
            else d
            for d in before["delivery"]
        ]
        assert document["delivery"] == expected
        assert "__row" not in document
        if notification_id in changes:
            assert document["status"] == status_by_python(expected, NOON)
            assert document.get("due_at") == due_at_by_python(expected)
            assert document["error_history"] == (
                [errors[notification_id]] if notification_id in errors else []
            )
            assert document.get("error") == errors.get(notification_id, {}).get("error")
        else:
            assert document.keys() == {"_id", "delivery"}


@each_case("text", TEXTS)
def test_error_is_added_to_the_history_literally(text: str) -> None:
    line = {"timestamp": NOON, "channel": "email", "code": "rejected", "error": text}
    pipeline = update(condition=of_channel(Channel.EMAIL), changes={}, now=NOON, error=line)
    earlier = {"delivery": [], "error_history": [line]}
    first, second = after([{"delivery": []}, earlier], pipeline)
    assert first["error"] == second["error"] == text
    assert first["error_history"] == [line]
    assert second["error_history"] == [line, line]


@each_case("text", TEXTS)
def test_texts_are_changed_literally(text: str) -> None:
    changes = {"a": text, "b": [text], "c": {"k": text}}
    pipeline = update(condition=of_channel("email"), changes=changes, now=NOON)
    (document,) = after([{"delivery": [random_delivery(Random(0), Channel.EMAIL)]}], pipeline)
    assert {name: document["delivery"][0][name] for name in "abc"} == changes


@pytest.mark.parametrize("round_", ROUNDS)
def test_conditions_match_exactly(round_: int) -> None:
    rng = Random(round_)
    batch, channel, status = random_batch(rng), rng.choice(list(Channel)), rng.choice(list(S))
    mark = {"marked": True}
    held = after(
        batch, update(condition=claimed_with(channel, "t1", status), changes=mark, now=NOON)
    )
    matched = after(batch, update(condition=in_statuses(channel, [status]), changes=mark, now=NOON))
    for before, item, other in zip(batch, held, matched, strict=True):
        for d, by_token, by_status in zip(
            before["delivery"], item["delivery"], other["delivery"], strict=True
        ):
            is_match = d["channel"] == channel and d["status"] == status
            has_token = (d.get("claim") or {}).get("token") == "t1"
            assert by_status.get("marked", False) is is_match
            assert by_token.get("marked", False) is (is_match and has_token)
