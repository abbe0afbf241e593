"""Plans on their way through the pipeline: a later step is sent only if it is needed."""

from datetime import datetime, timedelta

import pytest
from bson import ObjectId

from delivery import pipeline, sweeper
from delivery.runtime import SendingRuntime
from delivery.settlement import BatchReport
from domain.channels import Channel
from domain.plans import Until
from domain.states import DeliveryStatus
from notifications.receipts import processor
from notifications.store import acceptance, actions, inbox, leases, steps
from notifications.store.new_notifications import NewDelivery
from providers.contract import Receipt, ReceiptKind
from recipients.models import PersonalQuietHours, Recipient
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON
from tests.support.fakes.provider import ScriptedProvider, refused, timeout
from tests.support.fakes.provider import accepted as taken

pytestmark = pytest.mark.usefixtures("db", "broker")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
WAIT = timedelta(minutes=10)
MINUTE = timedelta(minutes=1)


def accepted(
    until: Until = Until.DELIVERED, *, first: Channel = EMAIL, skip_if_late: timedelta | None = None
) -> ObjectId:
    """Store a plan: this channel and, after ten minutes, WhatsApp."""
    later = NewDelivery(channel=WHATSAPP, step=2, delay=WAIT, skip_if_late=skip_if_late)
    deliveries = (NewDelivery(channel=first, step=1), later)
    notification = factories.new(deliveries=deliveries, plan_until=until)
    acceptance.accept([notification], now=NOON)
    return notification.id


def deliver(notification_id: ObjectId, channel: Channel, at: datetime) -> BatchReport:
    return pipeline.dispatch(SendingRuntime(), [notification_id], channel=channel, clock=lambda: at)


def outcome(notification_id: ObjectId, channel: Channel = WHATSAPP) -> tuple[str, str | None]:
    delivery = factories.delivery(factories.read(notification_id), channel)
    return delivery["status"], delivery.get("failure_reason")


def test_later_step_is_sent_at_its_time_without_a_proof(fcm: ScriptedProvider) -> None:
    notification_id = accepted()
    deliver(notification_id, EMAIL, NOON)
    assert outcome(notification_id, EMAIL)[0] == "sent"
    deliver(notification_id, WHATSAPP, NOON + WAIT)
    assert outcome(notification_id)[0] == "sent"
    assert len(fcm.seen) == 2


def test_later_step_is_not_sent_after_a_delivery(fcm: ScriptedProvider) -> None:
    notification_id = accepted()
    deliver(notification_id, EMAIL, NOON)
    factories.arrive(notification_id, at=NOON + MINUTE)
    deliver(notification_id, WHATSAPP, NOON + WAIT)
    assert outcome(notification_id) == ("cancelled", "Not needed: delivered by email.")
    assert len(fcm.seen) == 1


def test_read_in_the_inbox_makes_a_later_step_unnecessary(fcm: ScriptedProvider) -> None:
    notification_id = accepted(Until.READ, first=IN_APP)
    inbox.mark_read_by_client(client_id=CLIENT, notification_id=notification_id, now=NOON + MINUTE)
    deliver(notification_id, WHATSAPP, NOON + WAIT)
    assert outcome(notification_id) == ("cancelled", "Not needed: read on in_app.")
    assert fcm.seen == []


def test_acting_makes_a_later_step_unnecessary(fcm: ScriptedProvider) -> None:
    notification_id = accepted(Until.ACTED)
    deliver(notification_id, EMAIL, NOON)
    factories.arrive(notification_id, at=NOON + MINUTE)
    steps.mark_acted(client_id=CLIENT, notification_id=notification_id, now=NOON + MINUTE)
    deliver(notification_id, WHATSAPP, NOON + WAIT)
    assert outcome(notification_id) == ("cancelled", "Not needed: acted on.")
    assert len(fcm.seen) == 1


def test_refusal_of_the_first_step_opens_the_next_at_once(fcm: ScriptedProvider) -> None:
    fcm.always(refused)
    notification_id = accepted()
    report = deliver(notification_id, EMAIL, NOON)
    assert [(wakeup.channel, wakeup.at) for wakeup in report.wakeups] == [(WHATSAPP, NOON)]
    fcm.always(taken)
    deliver(notification_id, WHATSAPP, NOON)
    assert outcome(notification_id)[0] == "sent"


def test_unknown_outcome_does_not_open_the_next_step(fcm: ScriptedProvider) -> None:
    fcm.always(timeout)
    notification_id = accepted()
    deliver(notification_id, EMAIL, NOON)
    assert outcome(notification_id, EMAIL)[0] == "unknown"
    assert (
        factories.delivery(factories.read(notification_id), WHATSAPP)["next_attempt_at"]
        == NOON + WAIT
    )


def test_unknown_outcome_that_is_given_up_opens_the_next_step(fcm: ScriptedProvider) -> None:
    fcm.always(timeout)
    notification = factories.new(
        deliveries=(
            NewDelivery(channel=EMAIL, step=1),
            NewDelivery(channel=WHATSAPP, step=2, delay=timedelta(days=2)),
        ),
        plan_until=Until.DELIVERED,
        max_attempts=1,
    )
    acceptance.accept([notification], now=NOON)
    deliver(notification.id, EMAIL, NOON)
    now = NOON + timedelta(days=1)
    sweeper.resolve_unknown_outcomes(now=now)
    assert outcome(notification.id, EMAIL)[0] == "failed"
    assert factories.delivery(factories.read(notification.id), WHATSAPP)["next_attempt_at"] == now


@pytest.mark.usefixtures("mail")
def test_late_bounce_opens_the_next_step() -> None:
    notification_id = accepted()
    deliver(notification_id, EMAIL, NOON)
    bounce = Receipt(
        event_id="e-1",
        kind=ReceiptKind.BOUNCED,
        at=NOON + MINUTE,
        reference=f"{notification_id}.email.1",
        provider_id="sg-1",
        reason="550 unknown user",
        address="ada@example.com",
    )
    processor.apply_receipts([bounce], provider="sendgrid", now=NOON + MINUTE)
    later = factories.delivery(factories.read(notification_id), WHATSAPP)
    assert later["next_attempt_at"] == later["first_due_at"] == NOON + MINUTE


def test_step_that_cannot_begin_in_time_expires(fcm: ScriptedProvider) -> None:
    notification_id = accepted(skip_if_late=MINUTE)
    deliver(notification_id, EMAIL, NOON)
    deliver(notification_id, WHATSAPP, NOON + WAIT + 2 * MINUTE)
    assert outcome(notification_id) == ("expired", "Its step of the plan couldn't begin in time.")
    assert len(fcm.seen) == 1


def test_retry_of_a_step_is_never_too_late(fcm: ScriptedProvider) -> None:
    notification_id = accepted(skip_if_late=MINUTE)
    deliver(notification_id, EMAIL, NOON)
    claimed = factories.claim(notification_id, at=NOON + WAIT, channel=WHATSAPP)
    begun = factories.start(claimed, at=NOON + WAIT)
    retry = factories.settlement(begun, S.PENDING, at=NOON + WAIT)
    leases.settle([retry], now=NOON + WAIT)
    deliver(notification_id, WHATSAPP, NOON + WAIT + 10 * MINUTE)
    assert outcome(notification_id)[0] == "sent"
    assert len(fcm.seen) == 2


def test_retry_opens_the_failed_step_only(fcm: ScriptedProvider) -> None:
    notification_id = accepted()
    fcm.always(refused)
    deliver(notification_id, EMAIL, NOON)
    actions.reopen(notification_id=notification_id, channels=[EMAIL], now=NOON + MINUTE)
    document = factories.read(notification_id)
    assert factories.delivery(document, EMAIL)["next_attempt_at"] == NOON + MINUTE
    assert factories.delivery(document, WHATSAPP)["first_due_at"] == NOON


def test_quiet_hours_move_a_step_which_then_asks_again(fcm: ScriptedProvider) -> None:
    quiet = PersonalQuietHours(enabled=True, start="12:05", end="13:00")
    Recipient.objects.create(
        user_id="ada", created_at=NOON, updated_at=NOON, quiet_hours=quiet, timezone="UTC"
    )
    notification_id = accepted(Until.READ)
    deliver(notification_id, EMAIL, NOON)
    deliver(notification_id, WHATSAPP, NOON + WAIT)
    morning = NOON.replace(hour=13)
    assert (
        factories.delivery(factories.read(notification_id), WHATSAPP)["next_attempt_at"] == morning
    )
    inbox.mark_read_by_client(
        client_id=CLIENT, notification_id=notification_id, now=NOON + 2 * WAIT
    )
    deliver(notification_id, WHATSAPP, morning)
    assert outcome(notification_id)[0] == "cancelled"
    assert len(fcm.seen) == 1
