"""Plans on the page of a notification: what is to come, and why it was not needed."""

from datetime import timedelta

from django.test import Client

from domain.channels import Channel
from domain.plans import Until
from domain.time import utc_now
from notifications.store import inbox as store_inbox
from notifications.store import steps
from notifications.store.inbox import Inbox
from notifications.store.new_notifications import NewDelivery
from tests.support.factories import notifications as factories

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))


def test_page_states_the_step_to_come_and_the_goal(console: Client) -> None:
    now = utc_now()
    deliveries = (
        NewDelivery(channel=IN_APP, step=1),
        NewDelivery(channel=EMAIL, step=2, delay=timedelta(hours=1)),
    )
    notification_id = factories.accepted(
        deliveries=deliveries, plan_until=Until.READ, created_at=now
    )["_id"]
    page = console.get(
        f"/admin/notifications/notification/{notification_id}/change/"
    ).content.decode()
    assert "Held: later step" in page
    assert page.count("unless read by then") == 2
    steps.mark_acted(client_id=factories.CLIENT, notification_id=notification_id, now=now)
    page = console.get(
        f"/admin/notifications/notification/{notification_id}/change/"
    ).content.decode()
    assert "Acted on" in page


def test_timeline_names_the_action_and_the_end_of_a_snooze(console: Client) -> None:
    now = utc_now()
    notification_id = factories.accepted(channels=(IN_APP,), created_at=now)["_id"]
    inbox = Inbox(factories.CLIENT, "ada")
    store_inbox.act(inbox=inbox, notification_id=notification_id, action="approve", now=now)
    until = now + timedelta(minutes=5)
    store_inbox.snooze(inbox=inbox, notification_id=notification_id, until=until, now=now)
    store_inbox.resurface(ids=[notification_id], now=until)
    page = console.get(
        f"/admin/notifications/notification/{notification_id}/change/"
    ).content.decode()
    assert "Acted on: approve" in page
    assert "Back in the inbox after a snooze" in page


def test_list_states_the_goal(console: Client) -> None:
    later = NewDelivery(channel=EMAIL, step=2, delay=timedelta(hours=1))
    deliveries = (NewDelivery(channel=IN_APP, step=1), later)
    factories.accepted(deliveries=deliveries, plan_until=Until.READ, created_at=utc_now())
    page = console.get("/admin/notifications/waitingnotification/").content.decode()
    assert "unless read by then" in page
