"""Devices in the console: list, page, disabling, and enabling."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from console.texts.disabled import DEVICES
from devices import presence, queries, registration, status
from devices.models import DeactivationReason, Platform
from devices.preferences import DevicePreferenceChanges
from devices.presence import Presence
from devices.registration import DESCRIPTIVE_FIELDS, Registration
from devices.status import Evidence
from devices.tokens import device_id
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.support.clients.console import listed, make_staff, signed_in
from tests.support.mongo.explained_reads import plans
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker", "valkey_anew")

URL = "/admin/devices/device/"
TOKEN = "dGhpcyBpcyBh:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx"
ID = device_id(TOKEN)
PAGE = f"{URL}{ID}/change/"
OFF, ON = f"{URL}{ID}/disable/", f"{URL}{ID}/enable/"
MANY, COUNTED = 12_000, 10_001
"""Devices that are stored; and how many counting may read, one more than its cap."""


def register(token: str = TOKEN, *, user_id: str = "ada", minutes_ago: float = 1) -> str:
    new = Registration(
        user_id=user_id,
        token=token,
        platform=Platform.IOS,
        device_model="iPhone 15",
        timezone="Europe/Lisbon",
    )
    return str(registration.register(new, now=utc_now() - timedelta(minutes=minutes_ago))["_id"])


def deactivate(
    device_id: str = ID, reason: DeactivationReason = DeactivationReason.UNREGISTERED
) -> None:
    now = utc_now()
    evidence = Evidence(at=now, source="fcm", code="UNREGISTERED", notification_id="a" * 24)
    status.deactivate(device_ids=[device_id], reason=reason, evidence=evidence, now=now)


def is_active(device_id: str = ID) -> bool:
    document = queries.get(device_id)
    assert document is not None
    return bool(document["is_active"])


def test_page_shows_status_presence_and_preferences(console: Client) -> None:
    register()
    now = utc_now()
    status.record_success(accepted={ID: now}, receipts={ID: now})
    quiet = {"enabled": True, "start": "22:00", "end": "07:00", "timezone": None}
    changes = DevicePreferenceChanges(categories={"marketing": False}, quiet_hours=quiet)
    registration.set_preferences(device_id=ID, changes=changes, now=now)
    online = Presence(online=True, app_foreground=True, notification_enabled=False, last_active=now)
    presence.store(ID, online)
    shown = console.get(PAGE).content.decode()
    for words in (
        "iPhone 15",
        "iOS",
        "Active",
        "Receives push notifications.",
        f"{now:%Y-%m-%d %H:%M}",
        "Last accepted by provider",
        "Last receipt",
        "marketing: muted",
        "22:00 to 07:00 (Europe/Lisbon)",
        "Disable",
        "Online, app in the foreground, notifications disabled in the settings",
        "/admin/notifications/notification/?q=ada",
    ):
        assert words in shown, words


def test_page_shows_each_field_that_describes_the_device(console: Client) -> None:
    described: dict[str, Any] = {name: f"the {name}" for name in DESCRIPTIVE_FIELDS}
    new = Registration(user_id="ada", token=TOKEN, platform=Platform.IOS, **described)
    registration.register(new, now=utc_now())
    shown = console.get(PAGE).content.decode()
    assert [text for text in described.values() if text not in shown] == []


def test_page_explains_why_a_device_is_disabled(console: Client) -> None:
    register()
    deactivate()
    shown = console.get(PAGE).content.decode()
    for words in (
        "Unregistered",
        "enabled again when the recipient opens the app.",
        "Enable",
        "fcm: UNREGISTERED",
        f"/admin/notifications/notification/{'a' * 24}/change/",
        "No heartbeat in the last hour",
    ):
        assert words in shown, words


@each_case("reason", list(DeactivationReason))
def test_deactivation_reason_is_explained(console: Client, reason: DeactivationReason) -> None:
    register()
    deactivate(reason=reason)
    shown = console.get(PAGE).content.decode().replace("&#x27;", "'")
    assert DEVICES[reason].label in shown
    assert DEVICES[reason].meaning in shown


def test_reason_of_a_newer_version_is_shown_as_it_is(console: Client) -> None:
    register()
    deactivate(reason=DeactivationReason.BY_USER)
    collection("devices").update_many({}, {"$set": {"deactivation_reason": "sold"}})
    for url in (URL, PAGE):
        assert "sold" in console.get(url).content.decode()


def test_token_is_masked(console: Client) -> None:
    register()
    for url in (URL, PAGE, f"{URL}?q=ada"):
        shown = console.get(url).content.decode()
        assert TOKEN not in shown
        assert "dGhpcy…RYqx" in shown


def test_device_is_found_by_user_and_id_but_not_by_token(console: Client) -> None:
    other = register("tablet", minutes_ago=5)
    register()
    register("bobs", user_id="bob")
    assert listed(console, f"{URL}?q=ada") == [ID, other]
    assert listed(console, f"{URL}?q={ID}") == [ID]
    assert listed(console, f"{URL}?q={TOKEN}") == []
    assert listed(console, f"{URL}?q=ad") == []


def test_devices_are_filtered_by_state_platform_and_time(console: Client) -> None:
    old, inactive = register("old", minutes_ago=100), register("off", minutes_ago=2)
    register()
    deactivate(inactive)
    assert listed(console, URL) == [ID, inactive, old]
    assert listed(console, f"{URL}?state=active") == [ID, old]
    assert listed(console, f"{URL}?state=inactive") == [inactive]
    assert listed(console, f"{URL}?state=unregistered") == [inactive]
    assert listed(console, f"{URL}?state=by_user") == []
    assert listed(console, f"{URL}?platform=ios&seen_within=1h") == [ID, inactive]
    assert listed(console, f"{URL}?platform=web") == []
    assert console.get(f"{URL}?state=nonsense").status_code == 302


def test_device_cannot_be_edited(console: Client) -> None:
    register()
    assert console.post(PAGE, {"user_id": "eve"}).status_code == 403
    assert console.get(f"{URL}add/").status_code == 403
    assert console.post(f"{URL}{ID}/delete/", {"post": "yes"}).status_code == 403
    assert queries.get(ID) is not None


def test_device_is_disabled_and_enabled_and_both_are_audited(console: Client) -> None:
    register()
    response = console.post(OFF, follow=True)
    assert "1 device disabled." in response.content.decode()
    document = queries.get(ID)
    assert document is not None
    assert (document["is_active"], document["deactivation_reason"]) == (False, "by_operator")
    assert document["deactivation_evidence"]["source"] == "maria"
    response = console.post(ON, follow=True)
    assert "1 device enabled." in response.content.decode()
    assert is_active()
    entries = LogEntry.objects.order_by("id")
    assert [entry.change_message for entry in entries] == ["Disabled.", "Enabled."]
    assert {entry.user.username for entry in entries} == {"maria"}
    assert TOKEN not in str([(entry.object_repr, entry.object_id) for entry in entries])


def test_only_selected_devices_are_changed(console: Client) -> None:
    ids = [register(f"token-{n}") for n in range(3)]
    action = {"action": "disable_selected", "_selected_action": ids[:2], "select_across": "1"}
    console.post(URL, action)
    assert [is_active(device_id) for device_id in ids] == [False, False, True]
    action = {"action": "enable_selected", "_selected_action": ids}
    shown = console.post(URL, action, follow=True).content.decode()
    assert "2 devices enabled. 1 already enabled or deleted." in shown
    assert all(is_active(device_id) for device_id in ids)
    assert LogEntry.objects.count() == 4


def test_unchanged_device_is_not_audited(console: Client) -> None:
    register()
    console.post(ON)
    assert not LogEntry.objects.exists()


def test_unknown_device_is_reported(console: Client) -> None:
    response = console.post(OFF, follow=True)
    assert "Device not found." in response.content.decode()
    assert console.get(PAGE, follow=True).status_code == 200


@pytest.mark.parametrize(
    ("verbs", "may_off", "may_on"),
    [
        (("view",), False, False),
        (("view", "deactivate"), True, False),
        (("view", "reactivate"), False, True),
    ],
)
def test_disabling_and_enabling_require_their_own_permissions(
    verbs: tuple[str, ...], may_off: bool, may_on: bool
) -> None:
    register()
    client = signed_in(make_staff("rui", *(f"devices.{verb}_device" for verb in verbs)))
    assert ('action="/admin/devices' in client.get(PAGE).content.decode()) is may_off
    assert client.post(OFF).status_code == (302 if may_off else 403)
    assert is_active() is not may_off
    deactivate()
    assert ('action="/admin/devices' in client.get(PAGE).content.decode()) is may_on
    assert client.post(ON).status_code == (302 if may_on else 403)
    assert is_active() is may_on
    client.post(URL, {"action": "enable_selected", "_selected_action": [ID]})
    assert is_active() is may_on


@pytest.fixture
def many() -> None:
    """Store many devices, one in five of them inactive."""
    now = utc_now()
    collection("devices").insert_many([_device(n, now) for n in range(MANY)])


def _device(n: int, now: Any) -> dict[str, Any]:
    at, reasons = now - timedelta(minutes=n), list(DeactivationReason)
    reason = reasons[n // 5 % len(reasons)].value
    inactive = {"is_active": False, "deactivated_at": at, "deactivation_reason": reason}
    return {
        "_id": device_id(f"token-{n}"),
        "user_id": f"user-{n % 1_000}",
        "device_token": f"token-{n}",
        "platform": list(Platform)[n % 3].value,
        "is_active": True,
        "token_rejections": 0,
        **dict.fromkeys(("created_at", "updated_at", "last_seen"), at),
    } | (inactive if n % 5 == 0 else {})


READS = {
    "": COUNTED,
    "?p=3": COUNTED,
    "?state=active": COUNTED * 5 / 4,
    "?state=inactive": MANY / 5,
    "?state=suspect": MANY / 30,
    "?platform=web": MANY / 3,
    "?seen_within=1h": 61,
    "?q=user-7": 13,
    "?q=nothing-like-it": 0,
}
"""Documents that a list may read of these devices."""


def test_list_uses_an_index(console: Client, many: None) -> None:
    for query, examined in READS.items():
        found = plans(console, f"{URL}{query}", of="devices")
        assert found
        for plan in found:
            assert "COLLSCAN" not in plan.stages, (query, plan.explained)
            is_small = plan.documents_examined < 50
            assert "SORT" not in plan.stages or is_small, (query, plan.explained)
            assert plan.documents_examined <= examined, (query, plan.explained)
