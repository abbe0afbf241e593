"""Which devices one notification of a batch goes to."""

from devices.models import Platform
from devices.preferences import NO_PREFERENCES
from devices.queries import PushTarget, PushTargets


def target(device_id: str, user_id: str) -> PushTarget:
    return PushTarget(
        device_id=device_id,
        user_id=user_id,
        token=f"token-{device_id}",
        platform=Platform.ANDROID,
        preferences=NO_PREFERENCES,
    )


PHONE, TABLET, BOBS = target("phone", "ada"), target("tablet", "ada"), target("bobs", "bob")
TARGETS = PushTargets(
    by_user={"ada": (PHONE, TABLET), "bob": (BOBS,)},
    by_device={"tablet": TABLET, "bobs": BOBS},
)


def test_without_names_it_goes_to_all_of_the_users() -> None:
    assert TARGETS.for_notification(user_id="ada", device_ids=()) == (PHONE, TABLET)


def test_a_user_without_devices_has_none() -> None:
    assert TARGETS.for_notification(user_id="eve", device_ids=()) == ()
    assert TARGETS.for_notification(user_id=None, device_ids=()) == ()


def test_named_devices_are_the_only_ones_each_once() -> None:
    assert TARGETS.for_notification(user_id="ada", device_ids=["tablet", "gone", "tablet"]) == (
        TABLET,
    )


def test_a_named_device_that_is_somebody_elses_by_now_gets_nothing_meant_for_this_user() -> None:
    assert TARGETS.for_notification(user_id="ada", device_ids=["bobs", "tablet"]) == (TABLET,)


def test_devices_named_without_a_user_are_taken_as_they_are() -> None:
    assert TARGETS.for_notification(user_id=None, device_ids=["bobs", "tablet"]) == (BOBS, TABLET)
