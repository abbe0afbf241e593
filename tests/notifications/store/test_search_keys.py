"""Search keys: unambiguous, derived in every write, and gone with what they derive from."""

from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.content import Recipient
from domain.states import DeliveryStatus
from notifications import queries
from notifications.documents.notification import NotificationDocument
from notifications.queries import Filter
from notifications.store import actions, receipts, removal
from notifications.store.receipts import DeliveryReceipt
from notifications.store.references import AttemptReference
from notifications.store.search_keys import INACTIVE_KEY, KeyKind, search_key, source_key
from tests.support.factories.notifications import CLIENT, NOON, accepted, read, settled
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
OTHER_CLIENT = ObjectId("d" * 24)
ADDRESSES = {"e:ada@example.com", "p:+351912345678"}
LONG = "é" * 255


def keys(document: NotificationDocument) -> set[str]:
    return set(read(document["_id"])["search_keys"])


def found(**fields: Any) -> list[ObjectId]:
    page = queries.page(Filter(**({"client_id": CLIENT} | fields)), limit=9)
    return [document["_id"] for document in page.documents]


def test_every_value_that_a_notification_is_found_by_is_a_key() -> None:
    document = accepted(
        recipient=Recipient(email="ada@example.com", phone="+351912345678"),
        external_id="o-1",
        entity_id="order-1",
        source="shop",
        idempotency_key="k-1",
    )
    others = {"x:o-1", "n:order-1", f"s:{CLIENT}:shop", "k:k-1"}
    assert set(document["search_keys"]) == keys(document) == ADDRESSES | others


def test_notification_without_such_a_value_has_no_key() -> None:
    assert keys(accepted(recipient=Recipient(), channels=(IN_APP,))) == set()


@each_case("value", ["", "a:b", ":", "n:order-1", "$data", "é\0", LONG, "e:ada@example.com"])
def test_key_is_one_kind_and_value(value: str) -> None:
    every = [search_key(kind, value) for kind in KeyKind]
    assert len({*every, source_key(CLIENT, value), source_key(OTHER_CLIENT, value)}) == 11
    assert {key[2:] for key in every} == {value}


@pytest.mark.parametrize("value", ["a:b", "n:order-1", "$data", "é", LONG, "e:ada@example.com"])
def test_hostile_value_finds_only_its_own_notification(value: str) -> None:
    fields = ("external_id", "entity_id", "source", "idempotency_key")
    mine = {name: accepted(**{name: value})["_id"] for name in fields}
    for name in fields:
        accepted(client_id=OTHER_CLIENT, **{name: value})
    assert found(external_id=value) == [mine["external_id"]]
    assert found(entity_id=value) == [mine["entity_id"]]
    assert found(source=value) == [mine["source"]]
    assert found(external_id=value, source=value) == []
    both = accepted(external_id=value, source=value)["_id"]
    assert found(external_id=value, source=value) == [both]


def test_source_that_looks_like_another_clients_is_not_theirs() -> None:
    accepted(client_id=OTHER_CLIENT, source="shop")
    accepted(source=f"{OTHER_CLIENT}:shop")
    assert found(source="shop") == []


def test_message_id_is_a_key_while_it_is_the_deliverys() -> None:
    document = settled(S.SENT)
    assert keys(document) == ADDRESSES | {"m:sg-1"}
    sent = queries.by_provider_message(["sg-1", "n:order-1"])
    assert [message.reference.notification_id for message in sent["sg-1"]] == [document["_id"]]
    failed = settled(S.FAILED)
    assert keys(failed) == ADDRESSES


def test_message_id_of_a_receipt_is_a_key() -> None:
    document = settled(S.UNKNOWN)
    receipt = DeliveryReceipt(
        reference=AttemptReference(document["_id"], EMAIL, 1),
        status=S.DELIVERED,
        at=NOON,
        provider="sendgrid",
        provider_message_id="late-1",
    )
    assert receipts.apply_receipt(receipt, now=NOON)
    assert "m:late-1" in keys(document)


def test_address_that_a_reopening_gives_is_a_key() -> None:
    document = settled(S.FAILED, recipient=Recipient(phone="+351912345678"))
    addresses = {EMAIL: "new@example.com"}
    now = NOON
    assert actions.reopen(
        notification_id=document["_id"], channels=[EMAIL], addresses=addresses, now=now
    )
    assert keys(document) == {"e:new@example.com", "p:+351912345678"}


def test_erasure_and_retention_remove_the_keys_of_addresses() -> None:
    erased, old = settled(S.SENT), settled(S.SENT, user_id="bob", external_id="o-1")
    removal.erase(removal.erasable(user_id="ada", limit=9), user_id="ada", now=NOON)
    removal.remove_content(ids=[old["_id"]], before=NOON.replace(year=2100), now=NOON)
    assert keys(erased) == {"m:sg-1", INACTIVE_KEY}
    assert keys(old) == {"m:sg-1", "x:o-1"}


def test_deleted_notification_has_a_key_until_it_is_restored() -> None:
    document = accepted()
    removal.delete(notification_id=document["_id"], client_id=CLIENT, now=NOON)
    assert found(is_active=False) == [document["_id"]]
    assert INACTIVE_KEY in keys(document)
    removal.restore(notification_id=document["_id"], now=NOON)
    assert found(is_active=False) == []
    assert keys(document) == ADDRESSES


def test_deleted_notifications_of_a_source_are_found() -> None:
    accepted(source="shop")
    deleted = accepted(source="shop")
    removal.delete(notification_id=deleted["_id"], client_id=CLIENT, now=NOON)
    assert found(is_active=False, source="shop") == [deleted["_id"]]
