"""What a device wants to be told, and how it is now."""

from typing import Any

import pytest
import redis

from devices import queries
from notifyproject.platform import valkey
from notifyproject.stack.servers import free_port
from tests.api.devices.test_views import AWAKE, ID, ONE, call, register, switch_off
from tests.support.clients.api import App

pytestmark = pytest.mark.usefixtures("valkey_anew")


# Preferences.


def test_preferences_are_replaced_and_shown(app: App) -> None:
    register(app)
    wishes = {
        "enabled": True,
        "categories": {"marketing": False, "mfa_code": True},
        "quiet_hours": {"enabled": True, "start": "22:00", "end": "07:00", "timezone": "UTC"},
    }
    assert call(app, "PUT", f"{ONE}/preferences", wishes).status_code == 200
    assert app.get(ONE).json()["notification_preferences"] == wishes
    assert queries.find_push_targets(device_ids=[ID]).by_device[ID].preferences.categories == {
        "marketing": False,
        "mfa_code": True,
    }
    call(app, "PUT", f"{ONE}/preferences", {})
    shown = app.get(ONE).json()["notification_preferences"]
    assert shown == {"enabled": True, "categories": {}, "quiet_hours": None}


def test_quiet_hours_may_be_switched_off_without_saying_when_they_would_be(app: App) -> None:
    register(app)
    answer = call(app, "PUT", f"{ONE}/preferences", {"quiet_hours": {"enabled": False}})
    hours = answer.json()["notification_preferences"]["quiet_hours"]
    assert hours == {"enabled": False, "start": "22:00", "end": "07:00", "timezone": None}


# Heartbeats.


def test_a_heartbeat_is_kept_for_an_hour_and_shown(app: App, broker: redis.Redis) -> None:
    register(app)
    answer = call(app, "POST", f"{ONE}/heartbeat", AWAKE)
    assert answer.status_code == 200
    state = answer.json()["state"]
    assert {name: state[name] for name in AWAKE} == AWAKE
    assert state["last_active"]
    assert 0 < broker.ttl(f"device:{ID}:state") <= 3600
    assert app.get(ONE).json()["state"] == state
    (listed,) = app.get("/devices", user_id="ada").json()["results"]
    assert listed["state"] == state


def test_a_heartbeat_tells_an_inactive_device_to_register(app: App) -> None:
    register(app)
    switch_off()
    assert call(app, "POST", f"{ONE}/heartbeat", AWAKE).json()["is_active"] is False


def test_without_valkey_a_heartbeat_is_still_taken(app: App, settings: Any) -> None:
    register(app)
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    valkey.clear()
    answer = call(app, "POST", f"{ONE}/heartbeat", AWAKE)
    assert (answer.status_code, answer.json()["state"]) == (200, None)
    assert app.get(ONE).json()["state"] is None
    assert app.get("/devices", user_id="ada").status_code == 200
