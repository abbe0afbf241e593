"""S12 and S13: digests that close in one minute, and plan steps that open in one second."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from delivery.runtime import SendingRuntime
from domain.digests import CLOSE_GRACE, RECHECK
from domain.plans import Until
from domain.states import Category, Channel
from domain.time import utc_now
from notifyproject.db.collections import collection, database

from .. import mail
from ..environment import Bench
from ..figures import Figure, Progress
from ..volume import rebuild_indexes_after
from .burst import Burst, measure_burst

DIGEST, STEP = "digest", "step"
SLUG = "comment_added"
MEMBERS = 2
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
LATER = timedelta(days=1)
PARTS = {
    "default": {
        "subject": "{% if digest %}{{ digest.count }} comments{% else %}A comment{% endif %}",
        "body": "{% if digest %}{% for item in digest.items %}{{ item.data.text }} {% endfor %}"
        "{% else %}{{ text }}{% endif %}",
    }
}
Expression = Mapping[str, Any]


def measure_digests(bench: Bench, *, count: int, log_progress: Progress) -> Iterator[Figure]:
    """Measure digests of MEMBERS members each, whose windows end within one minute."""
    burst = Burst(
        key="S12",
        kind=DIGEST,
        count=count,
        label=f"{count:,} digests of one minute",
        prepare=partial(store_digests, count=count),
    )
    return measure_burst(bench, burst, log_progress=log_progress)


def measure_steps(bench: Bench, *, count: int, log_progress: Progress) -> Iterator[Figure]:
    """Measure plans whose second step opens within one second."""
    burst = Burst(
        key="S13",
        kind=STEP,
        count=count,
        label=f"{count:,} steps that open in one second",
        prepare=partial(store_steps, count=count),
    )
    return measure_burst(bench, burst, log_progress=log_progress)


def store_digests(start: datetime, *, count: int) -> None:
    """Store open digests with their members. Their windows end in the minute from ``start`` on."""
    member, digest = _joined_member()
    ends_at = {"$add": [start, _random_milliseconds(MINUTE)]}
    with rebuild_indexes_after("digests"):
        database().aggregate(
            [
                *_numbers(count),
                {"$set": {"_ends": ends_at}},
                {
                    "$replaceWith": {
                        "$mergeObjects": [
                            {"$literal": digest},
                            {
                                "_id": {"$toObjectId": {"$toString": _digits("$_n")}},
                                "group": {"$toString": "$_n"},
                                "user_id": _user("$_n"),
                                **dict.fromkeys(("closes_at", "window_ends_at"), "$_ends"),
                                "due_at": {"$add": ["$_ends", _milliseconds(CLOSE_GRACE)]},
                            },
                        ]
                    }
                },
                {"$out": "digests"},
            ]
        )
    recheck_at = {"$add": ["$closes_at", _milliseconds(RECHECK)]}
    delivery = {"digest_id": "$_id", "next_attempt_at": "$_recheck"}
    with rebuild_indexes_after("notifications"):
        collection("digests").aggregate(
            [
                {"$set": {"_k": {"$range": [0, MEMBERS]}, "_recheck": recheck_at}},
                {"$unwind": "$_k"},
                {
                    "$replaceWith": {
                        "$mergeObjects": [
                            {"$literal": member},
                            {
                                "user_id": "$user_id",
                                "recipient": {"email": _timed(DIGEST, "$closes_at", "$group")},
                                # Otherwise equal mails would share requests.
                                "data": {"text": {"$concat": ["Comment ", "$group"]}},
                                "due_at": "$_recheck",
                                "delivery": [{"$mergeObjects": [_only_delivery(member), delivery]}],
                            },
                        ]
                    }
                },
                {"$out": "notifications"},
            ]
        )


def store_steps(start: datetime, *, count: int) -> None:
    """Store notifications whose second step opens within one second from ``start`` on."""
    seed = _planned()
    opens_at = {"$add": [start, _random_milliseconds(SECOND)]}
    in_delivery = {
        "$cond": [
            {"$eq": ["$$this.channel", Channel.EMAIL.value]},
            {
                "$mergeObjects": [
                    "$$this",
                    dict.fromkeys(("first_due_at", "next_attempt_at"), "$_opens"),
                ]
            },
            "$$this",
        ]
    }
    number = {"$toString": "$_n"}
    with rebuild_indexes_after("notifications"):
        database().aggregate(
            [
                *_numbers(count),
                {"$set": {"_opens": opens_at}},
                {
                    "$replaceWith": {
                        "$mergeObjects": [
                            {"$literal": {**seed, "delivery": []}},
                            {
                                "user_id": _user("$_n"),
                                "recipient": {"email": _timed(STEP, "$_opens", number)},
                                "data": {"$mergeObjects": [seed["data"], {"order_id": "$_n"}]},
                                "due_at": "$_opens",
                                "delivery": {
                                    "$map": {
                                        "input": {"$literal": seed["delivery"]},
                                        "in": in_delivery,
                                    }
                                },
                            },
                        ]
                    }
                },
                {"$out": "notifications"},
            ]
        )


def _joined_member() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a member that waits for its digest, and the digest, both without their IDs."""
    from delivery import pipeline

    now = utc_now()
    _define_type(now)
    new = replace(
        mail.new_notification(1, at=now), type=SLUG, category=Category.ALERT, data={"text": "Hi"}
    )
    stored = _stored(new)
    pipeline.dispatch(SendingRuntime(), [stored["_id"]], channel=Channel.EMAIL)
    member = collection("notifications").find_one({"_id": stored["_id"]})
    digest = collection("digests").find_one()
    if member is None or digest is None or "digest_id" not in member["delivery"][0]:
        raise RuntimeError("the member has joined no digest")
    return _without_id(member), _without_id(digest)


def _define_type(now: datetime) -> None:
    import msgspec

    from notifications.catalog import definitions, types
    from notifications.content import templates

    fields = {
        "name": "Comment",
        "category": "alert",
        "channels": ["email"],
        "example_data": {"text": "Nice."},
        "digest": {"window": {"minutes": 1}},
    }
    request = msgspec.convert(fields, definitions.TypeRequest)
    valid = definitions.validate_type(SLUG, request)
    types.define_type(SLUG, {**valid, "is_active": True}, now=now)
    version = templates.create_version(
        type_slug=SLUG, parts=PARTS, note="", created_by="bench", now=now
    )
    templates.publish_version(type_slug=SLUG, number=version.number, now=now)


def _planned() -> dict[str, Any]:
    """Return a notification whose first step is in the inbox and whose second is an email."""
    from notifications.store.documents import NewDelivery

    now = utc_now()
    new = replace(
        mail.new_notification(1, at=now),
        plan_until=Until.READ,
        deliveries=(
            NewDelivery(channel=Channel.IN_APP, step=1),
            NewDelivery(channel=Channel.EMAIL, step=2, delay=LATER),
        ),
    )
    return _without_id(_stored(new))


def _stored(new: Any) -> dict[str, Any]:
    from notifications.store import acceptance
    from notifications.store.acceptance import Accepted

    (accepted,) = acceptance.accept([new], now=new.created_at)
    if not isinstance(accepted, Accepted):
        raise TypeError("it was not accepted")
    return dict(accepted.document)


def _without_id(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "_id"}


def _only_delivery(document: Mapping[str, Any]) -> Expression:
    (delivery,) = document["delivery"]
    return {"$literal": delivery}


def _numbers(count: int) -> list[dict[str, Any]]:
    """Return stages that yield a document with ``_n`` for each number from 0 on."""
    return [
        {"$documents": [{"_a": {"$range": [0, -(-count // 1_000)]}}]},
        {"$unwind": "$_a"},
        {"$set": {"_b": {"$range": [0, 1_000]}}},
        {"$unwind": "$_b"},
        {"$set": {"_n": {"$add": [{"$multiply": ["$_a", 1_000]}, "$_b"]}}},
        {"$match": {"_n": {"$lt": count}}},
    ]


def _digits(number: str) -> Expression:
    """Return 24 digits, which are an ObjectId in hexadecimal."""
    eighteen = {"$toString": {"$add": [10**17, {"$toLong": number}]}}
    return {"$concat": ["000000", eighteen]}


def _user(number: str) -> Expression:
    return {"$concat": ["user-", {"$toString": number}]}


def _timed(kind: str, moment: str, number: str | Expression) -> Expression:
    """Return an address that tells the sink its kind and when its mail is due."""
    milliseconds = {"$toString": {"$toLong": moment}}
    return {"$concat": [f"{kind}.", milliseconds, ".", number, "@example.com"]}


def _milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)


def _random_milliseconds(below: timedelta) -> Expression:
    return {"$toLong": {"$floor": {"$multiply": [{"$rand": {}}, _milliseconds(below)]}}}
