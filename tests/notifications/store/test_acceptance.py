"""Accepting notifications, single and in batches."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import bson
import pytest
from bson import ObjectId
from bson.errors import InvalidDocument
from pymongo.errors import PyMongoError

from domain.channels import Channel
from domain.content import Attachment, Content, InterruptionLevel, Look, PushOptions, Recipient
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.store import acceptance, actions
from notifications.store.acceptance import Accepted, DuplicateEntity
from notifications.store.new_notifications import NewDelivery, NewNotification
from notifications.store.reading import content_of, recipient_of
from notifyproject.db.collections import CODEC, collection
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON, new
from tests.support.fakes.mongo_failpoints import LOST_ANSWER, fail_commands
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow")


EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
LATER = NOON + timedelta(hours=1)
OTHER_CLIENT = ObjectId("d" * 24)


def count() -> int:
    return collection("notifications").count_documents({})


def accepted(*notifications: NewNotification) -> list[Accepted | DuplicateEntity]:
    return acceptance.accept(notifications, now=NOON)


def test_accepted_notification_is_stored_as_returned() -> None:
    (result,) = accepted(new(user_id="ada", data={"order": "12345"}))
    assert isinstance(result, Accepted)
    assert not result.repeated
    stored = factories.read(result.document["_id"])
    assert stored == bson.decode(bson.encode(result.document), CODEC)
    assert stored["user_id"] == "ada"
    assert stored["data"] == {"order": "12345"}
    assert stored["channels"] == ["email"]
    assert stored["due_at"] == stored["created_at"] == stored["updated_at"] == NOON


def test_new_delivery_waits_for_its_first_attempt() -> None:
    delivery = factories.delivery(factories.accepted())
    assert delivery == {
        "channel": "email",
        "status": "pending",
        "attempt_count": 0,
        "uncounted_attempts": 0,
        "max_attempts": 4,
        "claim_count": 0,
        "first_due_at": NOON,
        "next_attempt_at": NOON,
        "accepted_targets": [],
    }


def test_missing_fields_are_not_stored() -> None:
    """Sparse and partial indexes rely on a missing field."""
    document = factories.accepted(
        user_id=None, recipient=Recipient(email="ada@example.com"), content=Content(body="Hello")
    )
    missing = {"user_id", "entity_id", "external_id", "scheduled_at", "expires_at", "resent_from"}
    assert not missing & document.keys()
    assert document["recipient"] == {"device_ids": (), "email": "ada@example.com", "given": ()}
    flags = {"is_masked": False, "has_own_subject": False}
    assert document["content"] == {"body": "Hello", **flags}
    assert None not in document.values()


@each_case(
    "deliveries, send_at, status, is_open",
    [
        ([NewDelivery(channel=EMAIL)], NOON, "queued", True),
        ([NewDelivery(channel=EMAIL)], LATER, "created", True),
        ([NewDelivery(channel=IN_APP)], NOON, "delivered", False),
        ([NewDelivery(channel=IN_APP)], LATER, "created", True),
        ([NewDelivery(channel=EMAIL), NewDelivery(channel=IN_APP)], NOON, "queued", True),
        ([NewDelivery(channel=EMAIL, status=S.SUPPRESSED)], NOON, "suppressed", False),
        (
            [NewDelivery(channel=EMAIL, status=S.SUPPRESSED), NewDelivery(channel=IN_APP)],
            NOON,
            "delivered",
            False,
        ),
    ],
)
def test_new_notification_has_an_overall_status(
    deliveries: list[NewDelivery], send_at: Any, status: str, is_open: bool
) -> None:
    document = factories.accepted(deliveries=tuple(deliveries), send_at=send_at)
    assert document["status"] == status
    assert document.get("due_at") == (send_at if is_open else None)
    assert ("due_at" in document) is is_open


def test_in_app_is_delivered_on_acceptance() -> None:
    document = factories.accepted(channels=[IN_APP])
    delivery = factories.delivery(document, IN_APP)
    assert delivery["status"] == "delivered"
    assert delivery["sent_at"] == delivery["delivered_at"] == document["sent_at"] == NOON
    assert "next_attempt_at" not in delivery
    assert not document["is_read"]


def test_reason_of_a_skipped_channel_is_stored() -> None:
    skipped = NewDelivery(
        channel=EMAIL,
        status=S.SUPPRESSED,
        failure_code=FailureCode.OPTED_OUT,
        failure_reason="Not wanted.",
    )
    delivery = factories.delivery(factories.accepted(deliveries=(skipped,)))
    assert (delivery["failure_code"], delivery["failure_reason"]) == ("opted_out", "Not wanted.")


def test_repeated_acceptance_returns_what_is_stored() -> None:
    notification = new()
    accepted(notification)
    actions.cancel(notification_id=notification.id, channels=[EMAIL], reason="Withdrawn.", now=NOON)
    (again,) = accepted(notification)
    assert isinstance(again, Accepted)
    assert again.repeated
    assert again.document["status"] == "cancelled", "the current state, not the first"
    assert count() == 1


def test_concurrent_acceptance_stores_one() -> None:
    notification = new()
    with ThreadPoolExecutor(16) as threads:
        results = [
            r for some in threads.map(lambda _: accepted(notification), range(64)) for r in some
        ]
    assert all(isinstance(result, Accepted) for result in results)
    assert sum(isinstance(r, Accepted) and not r.repeated for r in results) == 1
    assert count() == 1


def test_entity_is_accepted_once_per_user_and_client() -> None:
    clients = (CLIENT, OTHER_CLIENT)
    firsts = [new(entity_id="order-1", client_id=client_id) for client_id in clients]
    assert all(isinstance(result, Accepted) for result in accepted(*firsts))
    again = [new(entity_id="order-1", client_id=client_id) for client_id in clients]
    assert accepted(*again) == [DuplicateEntity(notification_id=first.id) for first in firsts]
    assert count() == 2


@each_case(
    "other",
    [
        {"user_id": "eve"},
        {"type": "order_shipped"},
        {"entity_id": "order-2"},
        {"entity_id": None},
        {"user_id": None},
        {"resent_from": ObjectId("e" * 24)},
    ],
)
def test_another_user_type_entity_or_resend_is_no_duplicate(other: dict[str, Any]) -> None:
    accepted(new(entity_id="order-1"))
    (result,) = accepted(new(**({"entity_id": "order-1"} | other)))
    assert isinstance(result, Accepted)
    assert count() == 2
    collection("notifications").delete_many({})


@each_case("missing", ["entity_id", "user_id"])
def test_notifications_without_an_entity_or_user_are_no_duplicates(missing: str) -> None:
    fields: dict[str, Any] = {"entity_id": "order-1", "user_id": "ada"} | {missing: None}
    results = accepted(new(**fields), new(**fields))
    assert all(isinstance(result, Accepted) for result in results)


def test_concurrent_duplicates_store_one() -> None:
    with ThreadPoolExecutor(16) as threads:
        results = list(threads.map(lambda _: accepted(new(entity_id="order-1"))[0], range(48)))
    (winner,) = [result for result in results if isinstance(result, Accepted)]
    losers = [result for result in results if isinstance(result, DuplicateEntity)]
    assert len(losers) == 47
    assert {loser.notification_id for loser in losers} == {winner.document["_id"]}


def test_batch_is_accepted_in_order() -> None:
    many = [new(user_id=f"user-{n}") for n in range(200)]
    results = accepted(*many)
    assert [r.document["_id"] for r in results if isinstance(r, Accepted)] == [m.id for m in many]
    assert count() == 200


def test_duplicate_in_a_batch_does_not_stop_the_others() -> None:
    originals, stored = new(entity_id="order-1"), new()
    accepted(originals, stored)
    fresh = [new() for _ in range(5)]
    again = new(entity_id="order-1")
    results = accepted(fresh[0], again, fresh[1], stored, fresh[2], fresh[3], fresh[4])
    results_ = [
        "duplicate" if isinstance(r, DuplicateEntity) else "repeated" if r.repeated else "stored"
        for r in results
    ]
    assert results_ == ["stored", "duplicate", "stored", "repeated", "stored", "stored", "stored"]
    assert count() == 7


def test_duplicate_within_a_batch_is_stored_once() -> None:
    first, second = new(entity_id="order-1"), new(entity_id="order-1")
    results = accepted(first, second)
    assert isinstance(results[0], Accepted)
    assert results[1] == DuplicateEntity(notification_id=first.id)


def test_repeated_notification_within_a_batch_is_stored_once() -> None:
    notification = new()
    results = accepted(notification, notification)
    assert [isinstance(r, Accepted) and r.repeated for r in results] == [False, True]
    assert count() == 1


def test_unstorable_notification_raises_an_error() -> None:
    with pytest.raises((PyMongoError, OverflowError)):
        accepted(new(data={"huge": 2**70}))
    with pytest.raises((PyMongoError, InvalidDocument)):
        accepted(new(data={"huge": "x" * 17_000_000}))
    assert count() == 0


def test_unconfirmed_write_raises_an_error() -> None:
    with fail_commands("insert", "notifications", LOST_ANSWER), pytest.raises(PyMongoError):
        accepted(new())


@each_case("text", ["$password", "$$ROOT", "$delivery", "a.b", "$", "{{ x }}"])
def test_texts_are_stored_literally(text: str) -> None:
    document = factories.accepted(
        user_id=text,
        entity_id=text,
        external_id=text,
        data={"v": text, "l": [text], "d": {"k": text}},
        content=Content(subject=text, body=text, payload={"k": text}),
        recipient=Recipient(email="ada@example.com", name=text),
    )
    stored = factories.read(document["_id"])
    assert stored["user_id"] == stored["entity_id"] == stored["external_id"] == text
    assert stored["data"] == {"v": text, "l": [text], "d": {"k": text}}
    assert stored["content"]["payload"] == {"k": text}
    assert stored["recipient"]["name"] == text


def fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def test_every_recipient_field_is_stored() -> None:
    recipient = Recipient(
        device_ids=("d1", "d2"),
        email="ada@example.com",
        phone="+351912345678",
        room="ops",
        name="Ada",
        locale="pt",
        timezone="Europe/Lisbon",
    )
    stored = factories.read(factories.accepted(recipient=recipient)["_id"])
    assert None not in fields(recipient).values()
    assert recipient_of(stored) == recipient


def test_every_content_field_is_stored() -> None:
    content = Content(
        subject="Paid",
        body="Your payment has arrived.",
        template_id="payment_confirmed",
        template_version=3,
        is_masked=True,
        image_url="https://example.com/a.png",
        deep_link="app://orders/1",
        payload={"orderId": "1", "lines": [{"sku": "a"}]},
        reply_to="help@example.com",
        look=Look(design=3, brand="acme", layout="main"),
        attachments=(
            Attachment(
                url="https://example.com/a.pdf", filename="a.pdf", content_type="application/pdf"
            ),
        ),
        has_own_subject=True,
        event_at=NOON,
        push=PushOptions(
            sound="a.caf",
            badge=3,
            interruption_level=InterruptionLevel.PASSIVE,
            android_channel_id="orders",
        ),
    )
    stored = factories.read(factories.accepted(content=content)["_id"])
    assert None not in fields(content).values()
    assert content_of(stored) == content


def test_duplicates_of_a_large_batch_are_found_in_two_reads() -> None:
    """The duplicates of a repeated campaign must not be read one by one."""
    originals = [new(user_id=f"user-{n}", entity_id="contest-1") for n in range(300)]
    stored = [new(user_id=f"user-{n}") for n in range(300)]
    acceptance.accept([*originals, *stored], now=NOON)
    again = [new(user_id=f"user-{n}", entity_id="contest-1") for n in range(300)]
    with plans("notifications") as read:
        results = acceptance.accept([*again, *stored], now=NOON)
    assert results[:300] == [DuplicateEntity(notification_id=original.id) for original in originals]
    assert all(isinstance(r, Accepted) and r.repeated for r in results[300:])
    assert len([plan for plan in read if "find" in plan.command]) == 2
    assert all(plan.is_indexed or plan.is_by_id for plan in read)
    assert all(plan.examined <= 2 * 300 for plan in read), read
    assert collection("notifications").count_documents({}) == 600


def test_each_duplicate_names_its_own_original() -> None:
    pairs = [
        (f"user-{n}", f"order-{n % 3}", ("order_shipped", "new_sale")[n % 2]) for n in range(6)
    ]
    first = [new(user_id=u, entity_id=e, type=t) for u, e, t in pairs]
    acceptance.accept(first, now=NOON)
    results = acceptance.accept(
        [new(user_id=u, entity_id=e, type=t) for u, e, t in pairs], now=NOON
    )
    assert [r.notification_id for r in results if isinstance(r, DuplicateEntity)] == [
        item.id for item in first
    ]


def test_resend_is_no_original_of_an_entity() -> None:
    original = new(entity_id="order-1")
    acceptance.accept([original], now=NOON)
    acceptance.accept([new(entity_id="order-1", resent_from=original.id)], now=NOON)
    other = new(entity_id="order-1")
    assert acceptance.accept([other], now=NOON) == [DuplicateEntity(notification_id=original.id)]
