"""Devices for a batch in one indexed read, the targets of one notification, and lists."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest

from devices import queries, registration, status
from devices.models import DeactivationReason, Device, Platform
from devices.preferences import NO_PREFERENCES, DevicePreferenceChanges, Preferences
from devices.queries import MAX_TARGETS, PushTarget, PushTargets
from devices.registration import Registration
from devices.status import Evidence
from devices.tokens import device_id
from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor, cursor_of_document
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import Plan, emptied, plans

pytestmark = pytest.mark.usefixtures("db")
USERS = 1_000
EACH = 12
BATCH = 100
"""Of each user's devices, two in three are inactive."""


@pytest.fixture(scope="module")
def db(_database: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock(), emptied("devices"):
        _registered_for_ada()
        collection("devices").insert_many(
            [_device(user, n) for user in range(USERS) for n in range(EACH)]
        )
        yield


def _device(user: int, n: int) -> dict[str, Any]:
    """Return a device document as the registry stores it."""
    seen = NOON + timedelta(minutes=user % 60, seconds=n)
    token = f"token-{user}-{n}"
    off = {
        "is_active": False,
        "deactivated_at": seen,
        "deactivation_reason": list(DeactivationReason)[user % 6].value,
        "deactivation_evidence": {"at": seen, "source": "fcm"},
    }
    return {
        "_id": device_id(token),
        "user_id": f"user-{user}",
        "device_token": token,
        "platform": list(Platform)[user % 3].value,
        "is_active": True,
        "token_rejections": 0,
        "proven_at": seen,
        "created_at": seen,
        "updated_at": seen,
        "last_seen": seen,
    } | (off if n % 3 else {})


def _registered_for_ada() -> None:
    """Register more devices of one user than a notification has targets."""
    for n in range(MAX_TARGETS + 5):
        new = Registration(
            user_id="ada",
            token=f"adas-{n}",
            platform=Platform.IOS,
            language="pt",
            timezone="Europe/Lisbon",
        )
        registration.register(new, now=NOON + timedelta(minutes=n * 7 % 25))
    preferences = DevicePreferenceChanges(categories={"marketing": False})
    registration.set_preferences(device_id=device_id("adas-0"), changes=preferences, now=NOON)
    status.deactivate(
        device_ids=[device_id("adas-1")],
        reason=DeactivationReason.BY_USER,
        evidence=Evidence(at=NOON, source="api"),
        now=NOON,
    )


def query(read: Callable[[], Any]) -> tuple[Any, Plan]:
    with plans("devices") as found:
        result = read()
    (plan,) = found
    return result, plan


def assert_efficient(plan: Plan) -> None:
    assert plan.is_indexed or plan.is_by_id, plan.summary
    assert not plan.sorts, plan.summary
    assert plan.examined <= 2 * max(plan.returned, 1), plan


def ids_of(user: int, *, active: bool = True) -> list[str]:
    return [device_id(f"token-{user}-{n}") for n in range(EACH) if (n % 3 == 0) is active]


def test_target_has_every_field_for_sending() -> None:
    adas = device_id("adas-0")
    found = queries.find_push_targets(device_ids=[adas])
    assert found.by_device == {
        adas: PushTarget(
            device_id=adas,
            user_id="ada",
            token="adas-0",
            platform=Platform.IOS,
            preferences=Preferences(categories={"marketing": False}),
            language="pt",
            timezone="Europe/Lisbon",
        )
    }
    assert found.by_user == {}


def test_device_without_preferences_has_defaults() -> None:
    (device, *_) = ids_of(1)
    assert (
        queries.find_push_targets(device_ids=[device]).by_device[device].preferences
        == NO_PREFERENCES
    )


def test_user_has_at_most_twenty_most_recent_targets() -> None:
    own = list(collection("devices").find({"user_id": "ada", "is_active": True}))
    own.sort(key=lambda d: (d["last_seen"], d["_id"]), reverse=True)
    found = queries.find_push_targets(user_ids=["ada"]).by_user["ada"]
    assert [target.device_id for target in found] == [d["_id"] for d in own[:MAX_TARGETS]]
    assert len(own) > MAX_TARGETS


def test_named_device_is_a_target_beyond_the_limit() -> None:
    own = list(collection("devices").find({"user_id": "ada", "is_active": True}))
    oldest = min(own, key=lambda d: (d["last_seen"], d["_id"]))["_id"]
    found = queries.find_push_targets(user_ids=["ada"], device_ids=[oldest])
    assert oldest in found.by_device
    assert oldest not in {target.device_id for target in found.by_user["ada"]}


def test_inactive_and_unknown_devices_are_no_targets() -> None:
    off = device_id("adas-1")
    found = queries.find_push_targets(user_ids=["ada", "nobody"], device_ids=[off, "0" * 64])
    assert set(found.by_user) == {"ada"}
    assert found.by_device == {}
    assert off not in {target.device_id for target in found.by_user["ada"]}


def test_named_device_adds_no_target_for_its_user() -> None:
    (device, *_) = ids_of(7)
    found = queries.find_push_targets(user_ids=["user-8"], device_ids=[device])
    assert set(found.by_user) == {"user-8"}
    assert set(found.by_device) == {device}


def test_batch_is_one_read_by_users() -> None:
    users = [f"user-{n * 7}" for n in range(BATCH)]
    found, plan = query(lambda: queries.find_push_targets(user_ids=users))
    assert set(found.by_user) == set(users)
    assert {len(own) for own in found.by_user.values()} == {EACH // 3}
    assert_efficient(plan)
    assert plan.examined == plan.returned == BATCH * EACH // 3


def test_owners_of_active_devices_are_read_from_the_index() -> None:
    users = [f"user-{n * 7}" for n in range(BATCH)]
    found, plan = query(lambda: queries.find_owners([*users, "nobody"]))
    assert found == set(users)
    assert_efficient(plan)
    assert plan.examined == 0


def test_users_of_named_devices_are_read_by_id() -> None:
    ids = [device_id for user in range(BATCH) for device_id in ids_of(user)[:2]]
    found, plan = query(lambda: queries.find_users([*ids, "0" * 64]))
    assert set(found) == set(ids)
    assert_efficient(plan)
    with plans("devices") as reads:
        assert queries.find_users([]) == {}
    assert reads == []


def test_batch_is_one_read_by_devices() -> None:
    ids = [device_id for user in range(BATCH) for device_id in ids_of(user)[:2]]
    found, plan = query(lambda: queries.find_push_targets(device_ids=ids))
    assert set(found.by_device) == set(ids)
    assert_efficient(plan)


def test_batch_is_one_read_by_users_and_devices() -> None:
    users = [f"user-{n}" for n in range(BATCH // 2)]
    ids = [device_id for user in range(BATCH // 2, BATCH) for device_id in ids_of(user)]
    found, plan = query(lambda: queries.find_push_targets(user_ids=users, device_ids=ids))
    assert set(found.by_user) == set(users)
    assert set(found.by_device) == set(ids)
    assert_efficient(plan)


def test_empty_read_makes_no_query() -> None:
    with plans("devices") as found:
        assert queries.find_push_targets() == queries.PushTargets(by_user={}, by_device={})
    assert found == []


def test_batch_status_writes_are_one_command_by_id() -> None:
    unknown = [device_id(f"nobody-{n}") for n in range(BATCH)]
    evidence = Evidence(at=NOON, source="fcm")
    for reason in (DeactivationReason.UNREGISTERED, DeactivationReason.BY_USER):
        count, plan = query(
            lambda reason=reason: status.deactivate(
                device_ids=unknown, reason=reason, evidence=evidence, now=NOON
            )
        )
        assert (count, plan.is_by_id, plan.examined) == (0, True, 0)
    count, plan = query(
        lambda: status.record_suspect_result(device_ids=unknown, evidence=evidence, now=NOON)
    )
    assert (count, plan.is_by_id, plan.examined) == (0, True, 0)
    count, plan = query(lambda: status.record_success(accepted=dict.fromkeys(unknown, NOON)))
    assert (count, plan.is_by_id, plan.examined) == (0, True, 0)


def test_registration_reads_by_id_and_counts_in_the_index() -> None:
    new = Registration(user_id="newcomer", token="new", platform=Platform.WEB)
    with plans("devices") as found:
        registration.register(new, now=NOON)
    registration.remove(device_id=device_id("new"))
    stored, counted = found
    assert stored.is_by_id
    assert (counted.is_indexed, counted.examined) == (True, 0)


def test_list_has_all_devices_newest_first() -> None:
    found, plan = query(lambda: queries.page(user_id="user-5", limit=20))
    assert {d["_id"] for d in found.documents} == {*ids_of(5), *ids_of(5, active=False)}
    created = [d["created_at"] for d in found.documents]
    assert created == sorted(created, reverse=True)
    assert (found.has_next, found.has_previous) == (False, False)
    assert_efficient(plan)


def test_list_is_paginated_in_both_directions() -> None:
    everything = queries.page(user_id="user-5", limit=20).documents
    first, plan = query(lambda: queries.page(user_id="user-5", limit=5))
    assert_efficient(plan)
    assert (first.has_next, first.has_previous) == (True, False)
    second, plan = query(
        lambda: queries.page(user_id="user-5", limit=5, cursor=_cursor(first.documents[-1]))
    )
    assert_efficient(plan)
    assert (second.has_next, second.has_previous) == (True, True)
    back, plan = query(
        lambda: queries.page(
            user_id="user-5", limit=5, cursor=_cursor(second.documents[0], backwards=True)
        )
    )
    assert_efficient(plan)
    assert [*first.documents, *second.documents] == everything[:10]
    assert back.documents == first.documents
    assert (back.has_next, back.has_previous) == (True, False)


def _cursor(document: Mapping[str, Any], *, backwards: bool = False) -> Cursor:
    return cursor_of_document(document, queries.NEWEST_FIRST, backwards=backwards)


def test_device_is_read_by_id() -> None:
    found, plan = query(lambda: queries.get(ids_of(3)[0]))
    assert found is not None
    assert plan.is_by_id


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"platform": "ios"},
        {"is_active": True},
        {"deactivation_reason": "suspect"},
        {"deactivation_reason__in": [reason.value for reason in DeactivationReason]},
    ],
    ids=lambda filters: "+".join(filters) or "all",
)
def test_console_list_uses_an_index(filters: dict[str, Any]) -> None:
    queryset = Device.objects.filter(**filters).order_by("-last_seen", "-id")[:50]
    found, plan = query(lambda: list(queryset))
    assert len(found) == 50
    assert plan.is_indexed
    assert not plan.sorts
    # One device in three is active.
    assert plan.examined <= 4 * 50


def target(device_id: str, user_id: str) -> PushTarget:
    return PushTarget(
        device_id=device_id,
        user_id=user_id,
        token=f"token-{device_id}",
        platform=Platform.ANDROID,
        preferences=NO_PREFERENCES,
    )


PHONE = target("phone", "ada")
TABLET = target("tablet", "ada")
BOBS = target("bobs", "bob")
TARGETS = PushTargets(
    by_user={"ada": (PHONE, TABLET), "bob": (BOBS,)}, by_device={"tablet": TABLET, "bobs": BOBS}
)


@pytest.mark.parametrize(
    ("user_id", "device_ids", "targets"),
    [
        ("ada", (), (PHONE, TABLET)),
        ("eve", (), ()),
        (None, (), ()),
        ("ada", ("tablet", "gone", "tablet"), (TABLET,)),
        ("ada", ("bobs", "tablet"), (TABLET,)),
        (None, ("bobs", "tablet"), (BOBS, TABLET)),
    ],
    ids=["all", "no devices", "no user", "named once", "of another user", "named without user"],
)
def test_notification_targets_the_devices_it_names_or_all_of_its_user(
    user_id: str | None, device_ids: tuple[str, ...], targets: tuple[PushTarget, ...]
) -> None:
    assert TARGETS.for_notification(user_id=user_id, device_ids=device_ids) == targets
