"""Later steps of a plan in the store."""

from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.plans import Until, how_reached
from domain.states import DeliveryStatus
from notifications.store import acceptance, inbox, leases, steps
from notifications.store.inbox import Marked
from notifications.store.new_notifications import NewDelivery
from notifyproject.db.collections import collection
from tests.support.factories.notifications import (
    CLIENT,
    NOON,
    begin,
    claim,
    claimed,
    delivery,
    new,
    read,
)
from tests.support.samples import sampled
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
WAIT, LATER = timedelta(minutes=10), timedelta(minutes=60)
PLAN = (
    NewDelivery(channel=IN_APP, step=1),
    NewDelivery(channel=PUSH, step=1),
    NewDelivery(channel=EMAIL, step=2, delay=WAIT),
    NewDelivery(channel=WHATSAPP, step=3, delay=LATER),
)


def accepted(
    until: Until = Until.DELIVERED, deliveries: tuple[NewDelivery, ...] = PLAN
) -> ObjectId:
    """Store a plan: in-app and push, email after ten minutes, WhatsApp after an hour."""
    notification = new(deliveries=deliveries, plan_until=until)
    acceptance.accept([notification], now=NOON)
    return notification.id


def end(notification_id: ObjectId, channel: Channel, status: DeliveryStatus) -> None:
    collection("notifications").update_one(
        {"_id": notification_id, "delivery.channel": channel.value},
        {"$set": {"delivery.$.status": status.value}},
    )


def due(notification_id: ObjectId) -> dict[Channel, Any]:
    """Return when the channels of later steps are due, from noon."""
    document = read(notification_id)
    return {
        channel: delivery(document, channel)["next_attempt_at"] - NOON
        for channel in (EMAIL, WHATSAPP)
    }


def test_later_step_waits_for_its_time() -> None:
    notification_id = accepted()
    document = read(notification_id)
    assert due(notification_id) == {EMAIL: WAIT, WHATSAPP: LATER}
    assert (document["status"], document["due_at"]) == ("queued", NOON)
    assert leases.claim(ids=[notification_id], channel=EMAIL, worker="w", now=NOON) == []


def test_in_app_of_a_later_step_is_not_delivered_at_once() -> None:
    later = (NewDelivery(channel=PUSH, step=1), NewDelivery(channel=IN_APP, step=2, delay=WAIT))
    document = read(accepted(deliveries=later))
    assert delivery(document, IN_APP)["status"] == "pending"
    assert "inbox_at" not in document


def test_claim_holds_what_the_decision_needs() -> None:
    notification_id = accepted(Until.READ)
    push = claim(notification_id, channel=PUSH)
    assert (push.step, push.later_channels) == (1, (EMAIL,))
    mail = claim(notification_id, at=NOON + WAIT)
    assert (mail.step, mail.plan_until, mail.later_channels) == (2, Until.READ, (WHATSAPP,))
    assert mail.channel_statuses[IN_APP] is S.DELIVERED


@each_case("ended", [S.FAILED, S.SUPPRESSED, S.EXPIRED, S.CANCELLED])
def test_next_step_is_due_once_nothing_before_it_can_reach(ended: DeliveryStatus) -> None:
    notification_id = accepted()
    end(notification_id, PUSH, ended)
    now = NOON + timedelta(minutes=1)
    assert steps.open_next_steps(ids=[notification_id], now=now) == 1
    assert due(notification_id) == {EMAIL: timedelta(minutes=1), WHATSAPP: LATER}
    assert steps.open_next_steps(ids=[notification_id], now=now) == 0


@each_case("status", [S.PENDING, S.SENDING, S.UNKNOWN, S.SENT, S.DELIVERED])
def test_step_is_not_due_early_while_one_before_it_may_reach(status: DeliveryStatus) -> None:
    notification_id = accepted()
    end(notification_id, PUSH, status)
    assert steps.open_next_steps(ids=[notification_id], now=NOON) == 0


def test_in_app_can_still_be_read() -> None:
    notification_id = accepted(Until.READ)
    end(notification_id, PUSH, S.FAILED)
    assert steps.open_next_steps(ids=[notification_id], now=NOON) == 0


def test_notification_without_a_plan_is_unchanged() -> None:
    claim = claimed()
    assert steps.open_next_steps(ids=[claim.notification_id], now=NOON) == 0


def test_step_is_not_started_once_the_recipient_has_been_reached() -> None:
    reached, other = accepted(Until.READ), accepted(Until.READ)
    at = NOON + WAIT
    claims = leases.claim(ids=[reached, other], channel=EMAIL, worker="w", now=at)
    inbox.mark_read_by_client(client_id=CLIENT, notification_id=reached, now=at)
    assert [begun.notification_id for begun in begin(*claims, at=at)] == [other]
    assert delivery(read(reached), EMAIL)["status"] == "pending"


def test_first_steps_of_a_batch_start_beside_later_ones() -> None:
    later = accepted()
    first = accepted(deliveries=(NewDelivery(channel=EMAIL),))
    at = NOON + WAIT
    claims = leases.claim(ids=[later, first], channel=EMAIL, worker="w", now=at)
    assert {begun.notification_id for begun in begin(*claims, at=at)} == {later, first}


def test_stored_document_and_claim_agree_on_whether_a_recipient_was_reached() -> None:
    statuses = (S.SENT, S.UNKNOWN, S.FAILED, S.DELIVERED, S.READ)
    marks: tuple[dict[str, datetime], ...] = ({}, {"marked_read_at": NOON}, {"acted_at": NOON})
    cases = list(product(Until, statuses, statuses, marks))
    for until, push, in_app, mark in sampled(cases, each=4):
        notification_id = accepted(until)
        end(notification_id, PUSH, push)
        end(notification_id, IN_APP, in_app)
        if mark:
            collection("notifications").update_one({"_id": notification_id}, {"$set": mark})
        how = how_reached(
            until,
            statuses={PUSH: push, IN_APP: in_app},
            is_marked_read="marked_read_at" in mark,
            is_acted="acted_at" in mark,
        )
        wanted = {"_id": notification_id, **steps.match_unreached()}
        is_unreached = collection("notifications").find_one(wanted) is not None
        assert is_unreached is (how is None), (until, push, in_app, mark)


def test_acting_is_recorded_once() -> None:
    notification_id = accepted(Until.ACTED)

    def act(at: timedelta) -> Marked:
        marked = steps.mark_acted(client_id=CLIENT, notification_id=notification_id, now=NOON + at)
        assert marked is not None
        return marked

    assert act(WAIT).changed
    assert not act(LATER).changed
    assert read(notification_id)["acted_at"] == NOON + WAIT
    other = ObjectId()
    assert steps.mark_acted(client_id=other, notification_id=notification_id, now=NOON) is None
