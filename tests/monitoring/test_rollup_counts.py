"""Dimensions of the metrics: API client, provider, and the platform of devices."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from access.clients import registry
from devices.models import Platform
from domain.states import DeliveryStatus
from monitoring import metrics, rollup
from monitoring.metrics import MetricValue
from monitoring.models import Interval
from notifications.receipts import device_receipts
from notifications.receipts.device_receipts import DeviceEvent
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON, device
from tests.support.factories.push import deliver, push
from tests.support.fakes.provider import ScriptedProvider, by_recipient, invalid_token

pytestmark = pytest.mark.usefixtures("db", "broker")

MINUTE, HOUR, DAY = Interval
S = DeliveryStatus
LATER = NOON + timedelta(minutes=3)
DEVICE_METRICS = ("device_sent", "device_delivered", "device_opened", "device_failed")


def clients(count: int) -> list[ObjectId]:
    return [registry.create_client(name=f"app-{n}", scopes=[], now=NOON) for n in range(count)]


def roll_up() -> None:
    assert rollup.run(now=LATER) is not None


def counted(
    *names: str, by: Sequence[str], interval: Interval = DAY
) -> Counter[tuple[str | None, ...]]:
    """Return the values of metrics by some of their dimensions."""
    since = metrics.interval_start(interval, NOON)
    until = since + metrics.INTERVAL_LENGTH[interval]
    found = metrics.read_summed(interval, since=since, until=until, metrics=names, by=by)
    counts: Counter[tuple[str | None, ...]] = Counter()
    for item in found:
        dimensions = [item.dimensions.get(name) for name in by]
        counts[(item.metric, *dimensions)] += int(item.value)
    return counts


def receive(notification_id: ObjectId, device_id: str, event: DeviceEvent) -> None:
    device_receipts.apply_device_receipt(
        device_id=device_id,
        notification_id=notification_id,
        client_id=CLIENT,
        event=event,
        now=NOON + timedelta(minutes=1),
    )


@pytest.mark.parametrize("interval", list(Interval))
def test_deliveries_are_counted_by_client_and_provider(interval: Interval) -> None:
    shop, forum = clients(2)
    factories.settled(S.SENT, client_id=shop)
    factories.settled(S.SENT, client_id=shop)
    factories.settled(S.FAILED, client_id=forum)
    roll_up()
    names = ("accepted", "sent", "failed")
    assert counted(*names, by=("client_id",), interval=interval) == {
        ("accepted", str(shop)): 2,
        ("accepted", str(forum)): 1,
        ("sent", str(shop)): 2,
        ("failed", str(forum)): 1,
    }
    by_both = counted("sent", by=("client_id", "provider"), interval=interval)
    assert by_both == {("sent", str(shop), "sendgrid"): 2}


def test_clients_beyond_the_limit_share_one_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_CLIENTS", 2)
    first, second, *others = clients(6)
    for client_id in (first, second, *others):
        factories.accepted(client_id=client_id)
    roll_up()
    assert counted("accepted", by=("client_id",)) == {
        ("accepted", str(first)): 1,
        ("accepted", str(second)): 1,
        ("accepted", "other"): 4,
    }


def test_attempts_at_devices_are_counted_by_platform(fcm: ScriptedProvider) -> None:
    phone = device("phone", platform=Platform.IOS)
    tablet = device("tablet", platform=Platform.ANDROID)
    device("browser", platform=Platform.WEB)
    fcm.behave = by_recipient({"browser": invalid_token})
    notification_id = push()
    deliver(notification_id)
    receive(notification_id, phone, DeviceEvent.OPENED)
    receive(notification_id, tablet, DeviceEvent.DELIVERED)
    roll_up()
    assert counted(*DEVICE_METRICS, by=("platform", "provider", "code")) == {
        ("device_sent", "ios", "fcm", None): 1,
        ("device_sent", "android", "fcm", None): 1,
        ("device_delivered", "ios", "fcm", None): 1,
        ("device_delivered", "android", "fcm", None): 1,
        ("device_opened", "ios", "fcm", None): 1,
        ("device_failed", "web", "fcm", "invalid_recipient"): 1,
    }
    assert counted("tried", by=("channel",)) == {("tried", "push"): 1}, "one for all devices"


def test_attempt_of_an_older_release_has_no_platform(fcm: ScriptedProvider) -> None:
    device("phone")
    notification_id = push()
    deliver(notification_id)
    collection("delivery_attempts").update_many({}, {"$unset": {"platform": ""}})
    roll_up()
    assert counted("device_sent", by=("platform",)) == {("device_sent", "none"): 1}


def test_test_pushes_are_not_counted(fcm: ScriptedProvider) -> None:
    device("phone")
    deliver(push(is_test=True))
    roll_up()
    assert counted(*DEVICE_METRICS, by=("platform",)) == {}


def test_metrics_of_an_older_release_are_summed_with_new_ones() -> None:
    """They have no client; a day may hold both."""
    (shop,) = clients(1)
    old = {"channel": "email", "type": "payment_confirmed", "provider": "sendgrid"}
    hour = metrics.interval_start(HOUR, NOON - timedelta(hours=2))
    value = MetricValue(metric="sent", dimensions=old, value=5, timestamp=hour)
    metrics.replace(HOUR, [hour], [value], now=NOON)
    factories.settled(S.SENT, client_id=shop)
    roll_up()
    assert counted("sent", by=("channel",)) == {("sent", "email"): 6}
    assert counted("sent", by=("client_id",)) == {("sent", None): 5, ("sent", str(shop)): 1}
    stored: Any = collection("metrics_aggregates").find_one({"timestamp": hour, "interval": "hour"})
    assert stored["dimensions"] == old
