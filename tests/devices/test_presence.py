"""Presence of devices in Valkey."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import redis

from devices import presence
from devices.presence import LIFETIME, Presence
from devices.tokens import device_id
from notifyproject.stack.servers import free_port
from tests.support.factories.notifications import NOON
from tests.support.fakes.valkey_faults import Silent, unresponsive

pytestmark = pytest.mark.usefixtures("valkey_anew")
ID, OTHER = device_id("token"), device_id("other")
KEY = f"device:{ID}:presence"
ONLINE = Presence(online=True, app_foreground=False, notification_enabled=True, last_active=NOON)


@pytest.fixture
def no_valkey(settings: Any) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"


@pytest.fixture
def silent_valkey() -> Iterator[Silent]:
    with unresponsive() as listener:
        yield listener


def test_presence_round_trips(broker: redis.Redis) -> None:
    assert presence.store(ID, ONLINE)
    offline = Presence(
        online=False, app_foreground=True, notification_enabled=False, last_active=NOON
    )
    assert presence.store(OTHER, offline)
    assert presence.read([ID, "nobody", OTHER]) == {ID: ONLINE, OTHER: offline}


def test_presence_is_a_hash_that_expires_after_an_hour(broker: redis.Redis) -> None:
    presence.store(ID, ONLINE)
    assert broker.type(KEY) == b"hash"
    assert set(broker.hgetall(KEY)) == {
        b"online",
        b"last_active",
        b"app_foreground",
        b"notification_enabled",
    }
    assert LIFETIME - 5 <= broker.ttl(KEY) <= LIFETIME == 3600


def test_later_heartbeat_replaces_and_renews(broker: redis.Redis) -> None:
    presence.store(ID, ONLINE)
    broker.expire(KEY, 10)
    later = Presence(
        online=False,
        app_foreground=False,
        notification_enabled=True,
        last_active=NOON + timedelta(milliseconds=1_234),
    )
    presence.store(ID, later)
    assert presence.read([ID]) == {ID: later}
    assert broker.ttl(KEY) > 10


def test_empty_read_makes_no_request(no_valkey: None) -> None:
    assert presence.read([]) == {}


def test_presence_without_valkey_is_unknown(no_valkey: None) -> None:
    assert not presence.store(ID, ONLINE)
    assert presence.read([ID]) == {}


def test_silent_valkey_is_tried_once(silent_valkey: Silent) -> None:
    assert not presence.store(ID, ONLINE)
    assert presence.read([ID]) == {}
    assert silent_valkey.connections == 1
