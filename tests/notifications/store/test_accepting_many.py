"""Accepting a thousand: what is lean about it loses nothing."""

import dataclasses
from typing import Any

import pytest
from bson import ObjectId

from domain.content import Attachment, Content, Recipient
from notifications import store
from notifications.store import Accepted, DuplicateEntity
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON, new
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db")


def fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def test_nothing_is_accepted_of_nothing() -> None:
    assert store.accept([], now=NOON) == []


def test_every_field_of_the_recipient_is_stored() -> None:
    recipient = Recipient(
        device_ids=("d1", "d2"),
        email="ada@example.com",
        phone="+351912345678",
        name="Ada",
        locale="pt",
        timezone="Europe/Lisbon",
    )
    stored = factories.read(factories.accepted(recipient=recipient)["_id"])
    assert None not in fields(recipient).values()
    assert store.recipient_of(stored) == recipient


def test_every_field_of_the_content_is_stored() -> None:
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
        attachments=(
            Attachment(
                url="https://example.com/a.pdf", filename="a.pdf", content_type="application/pdf"
            ),
        ),
    )
    stored = factories.read(factories.accepted(content=content)["_id"])
    assert None not in fields(content).values()
    assert store.content_of(stored) == content


def test_what_is_there_already_is_sorted_out_in_two_reads() -> None:
    """However many: a campaign that is brought again must not read them one by one."""
    told = [new(user_id=f"user-{n}", entity_id="contest-1") for n in range(300)]
    stored = [new(user_id=f"user-{n}") for n in range(300)]
    store.accept([*told, *stored], now=NOON)
    again = [new(user_id=f"user-{n}", entity_id="contest-1") for n in range(300)]
    with plans("notifications") as read:
        results = store.accept([*again, *stored], now=NOON)
    assert results[:300] == [
        DuplicateEntity(notification_id=one.id, client_id=CLIENT) for one in told
    ]
    assert all(isinstance(r, Accepted) and r.repeated for r in results[300:])
    assert len([plan for plan in read if "find" in plan.command]) == 2
    assert all(plan.is_indexed or plan.is_by_id for plan in read)
    assert all(plan.examined <= 2 * 300 for plan in read), read
    assert collection("notifications").count_documents({}) == 600


def test_of_several_types_and_entities_each_names_its_own_first() -> None:
    pairs = [
        (f"user-{n}", f"order-{n % 3}", ("order_shipped", "new_sale")[n % 2]) for n in range(6)
    ]
    first = [new(user_id=u, entity_id=e, type=t) for u, e, t in pairs]
    store.accept(first, now=NOON)
    results = store.accept([new(user_id=u, entity_id=e, type=t) for u, e, t in pairs], now=NOON)
    assert [r.notification_id for r in results if isinstance(r, DuplicateEntity)] == [
        one.id for one in first
    ]


def test_a_resend_is_not_the_first_about_an_entity() -> None:
    original = new(entity_id="order-1")
    store.accept([original], now=NOON)
    store.accept([new(entity_id="order-1", resent_from=original.id)], now=NOON)
    other = new(entity_id="order-1", client_id=ObjectId("d" * 24))
    assert store.accept([other], now=NOON) == [
        DuplicateEntity(notification_id=original.id, client_id=CLIENT)
    ]
