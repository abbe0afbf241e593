"""Registered people and suppressed addresses: one read for a whole batch."""

from datetime import timedelta
from typing import Any

import pytest

from notifyproject.db.collections import collection
from recipients import queries
from recipients.models import PersonalQuietHours, Recipient, Suppression, SuppressionReason
from recipients.queries import KnownRecipient, Suppressed, suppression_key
from recipients.suppressions import lift, suppress
from tests.factories import NOON

from .plans import plans

pytestmark = pytest.mark.usefixtures("db")

R = SuppressionReason
EMAIL, PHONE = ("email", "ada@example.com"), ("whatsapp", "+351912345678")
DAY = timedelta(days=1)


def register(user_id: str, **fields: Any) -> None:
    Recipient.objects.create(user_id=user_id, created_at=NOON, updated_at=NOON, **fields)


def hold_back(
    address: tuple[str, str] = EMAIL, *, reason: R = R.HARD_BOUNCE, **fields: Any
) -> None:
    channel, where = address
    options: dict[str, Any] = {"source": "sendgrid", "marketing_only": False, "now": NOON} | fields
    suppress(channel=channel, address=where, reason=reason, **options)


def held_back(*addresses: tuple[str, str], now: Any = NOON) -> dict[tuple[str, str], Suppressed]:
    return queries.suppressed(addresses, now=now)


# People.


def test_a_registered_person_is_known_with_all_that_is_known() -> None:
    register(
        "ada",
        email="ada@example.com",
        phone="+351912345678",
        name="Ada",
        locale="pt",
        timezone="Europe/Lisbon",
        preferences={"marketing": {"muted": True}},
    )
    assert queries.known(["ada"]) == {
        "ada": KnownRecipient(
            user_id="ada",
            email="ada@example.com",
            phone="+351912345678",
            name="Ada",
            locale="pt",
            timezone="Europe/Lisbon",
            preferences={"marketing": {"muted": True}},
            quiet_hours=None,
        )
    }


def test_quiet_hours_are_known() -> None:
    register("ada", quiet_hours=PersonalQuietHours(enabled=True, start="22:00"))
    quiet = queries.known(["ada"])["ada"].quiet_hours
    assert quiet is not None
    assert (quiet["enabled"], quiet["start"], quiet["end"]) == (True, "22:00", "07:00")


def test_only_people_who_are_registered_and_active_are_known() -> None:
    register("ada")
    register("gone", is_active=False)
    assert set(queries.known(["ada", "gone", "eve", "ada"])) == {"ada"}


def test_the_least_that_is_stored_of_a_person_is_enough() -> None:
    collection("recipients").insert_one({"_id": "ada", "is_active": True})
    assert queries.known(["ada"])["ada"].preferences == {}


def test_a_batch_of_people_is_one_read_by_their_ids() -> None:
    collection("recipients").insert_many(
        [{"_id": f"user-{n}", "is_active": True} for n in range(2_000)]
    )
    with plans("recipients") as found:
        known = queries.known(f"user-{n}" for n in range(100))
    (plan,) = found
    assert len(known) == 100
    assert plan.is_by_id
    assert plan.examined <= 200


def test_nobody_is_not_asked_for() -> None:
    with plans("recipients") as found:
        assert queries.known([]) == {}
    assert found == []


@pytest.mark.parametrize(
    ("preferences", "expected"),
    [
        ({}, {}),
        ({"alert": {"muted": True}}, {"muted": True}),
        (
            {"system_alert": {"channels": ["email"]}, "alert": {"muted": True}},
            {"channels": ["email"]},
        ),
        ({"marketing": {"muted": True}}, {}),
        ({"system_alert": {}, "alert": {"muted": True}}, {"muted": True}),
        ({"system_alert": None}, {}),
    ],
)
def test_a_preference_for_a_type_goes_before_one_for_its_category(
    preferences: dict[str, Any], expected: dict[str, Any]
) -> None:
    person = KnownRecipient(user_id="ada", preferences=preferences)
    assert person.preference(type_slug="system_alert", category="alert") == expected


# Suppressions.


def test_a_suppressed_address_is_found_with_the_reason() -> None:
    hold_back()
    assert held_back(EMAIL, PHONE) == {
        EMAIL: Suppressed(reason="hard_bounce", marketing_only=False)
    }


@pytest.mark.parametrize("address", ["ada@example.com", "Ada@Example.com", "ADA@EXAMPLE.COM"])
@pytest.mark.parametrize("stored", ["ada@example.com", "Ada@Example.COM"])
def test_mail_addresses_do_not_differ_by_case(stored: str, address: str) -> None:
    hold_back(("email", stored))
    assert ("email", address) in held_back(("email", address))


def test_two_spellings_of_one_address_are_both_held_back() -> None:
    hold_back()
    asked = [("email", "ada@example.com"), ("email", "Ada@example.com")]
    assert set(held_back(*asked)) == set(asked)


@pytest.mark.parametrize(
    ("asked", "reported"),
    [
        ("ada@b\u00fccher.example", "ada@xn--bcher-kva.example"),
        ("Ada@B\u00dcCHER.example", "ada@xn--bcher-kva.example"),
        ("ada@xn--bcher-kva.example", "ada@b\u00fccher.example"),
        ("ada@stra\u00dfe.example", "ada@xn--strae-oqa.example"),
    ],
)
def test_a_foreign_domain_is_the_same_however_it_is_written(asked: str, reported: str) -> None:
    """It is sent to, and a bounce is reported of it, in the form with ``xn--``."""
    hold_back(("email", reported))
    assert ("email", asked) in held_back(("email", asked))
    assert lift(channel="email", address=asked)


def test_two_domains_that_look_alike_are_two() -> None:
    hold_back(("email", "ada@strasse.example"))
    assert held_back(("email", "ada@stra\u00dfe.example")) == {}


def test_what_is_no_address_is_held_back_as_it_is_written() -> None:
    hold_back(("email", "\u00e4da@\u2603"))
    assert held_back(("email", "\u00e4da@\u2603"), ("email", "ada@\u2603")).keys() == {
        ("email", "\u00e4da@\u2603")
    }


def test_a_channel_is_suppressed_on_its_own() -> None:
    hold_back(("email", "same"))
    assert held_back(("whatsapp", "same")) == {}


def test_a_batch_of_addresses_is_one_read_by_their_ids() -> None:
    for number in range(50):
        hold_back(("email", f"user{number}@example.com"))
    with plans("suppressions") as found:
        held = held_back(*[("email", f"user{n}@example.com") for n in range(100)])
    (plan,) = found
    assert len(held) == 50
    assert plan.is_by_id
    assert plan.examined <= 100


def test_no_address_is_not_asked_for() -> None:
    with plans("suppressions") as found:
        assert held_back() == {}
    assert found == []


def test_a_suppression_is_stored_with_who_said_so() -> None:
    hold_back(reason=R.COMPLAINT)
    one = Suppression.objects.get(pk=suppression_key(*EMAIL))
    assert (one.channel, one.address) == EMAIL
    assert (one.reason, one.source, one.marketing_only) == ("complaint", "sendgrid", False)
    assert (one.created_at, one.expires_at) == (NOON, None)


@pytest.mark.parametrize(
    ("first", "second", "marketing_only", "reason"),
    [
        ((R.UNSUBSCRIBED, True), (R.HARD_BOUNCE, False), False, "hard_bounce"),
        ((R.HARD_BOUNCE, False), (R.UNSUBSCRIBED, True), False, "hard_bounce"),
        ((R.UNSUBSCRIBED, True), (R.UNSUBSCRIBED, True), True, "unsubscribed"),
        ((R.HARD_BOUNCE, False), (R.COMPLAINT, False), False, "complaint"),
    ],
    ids=["stricter", "less strict", "the same", "another reason"],
)
def test_suppressing_twice_keeps_the_stricter(
    first: tuple[R, bool], second: tuple[R, bool], marketing_only: bool, reason: str
) -> None:
    for why, only in (first, second):
        hold_back(reason=why, marketing_only=only)
    assert held_back(EMAIL)[EMAIL] == Suppressed(reason=reason, marketing_only=marketing_only)
    assert Suppression.objects.count() == 1


def test_the_stricter_is_stored_with_who_said_so() -> None:
    hold_back(reason=R.UNSUBSCRIBED, marketing_only=True, source="api")
    hold_back(reason=R.COMPLAINT)
    hold_back(reason=R.UNSUBSCRIBED, marketing_only=True, source="api")
    one = Suppression.objects.get()
    assert (one.reason, one.source) == ("complaint", "sendgrid")


@pytest.mark.parametrize(
    ("expires_at", "is_held_back"),
    [(NOON - DAY, False), (NOON, False), (NOON + timedelta(milliseconds=1), True), (None, True)],
)
def test_a_suppression_may_be_for_a_time(expires_at: Any, is_held_back: bool) -> None:
    hold_back()
    Suppression.objects.update(expires_at=expires_at)
    assert (EMAIL in held_back(EMAIL)) is is_held_back


@pytest.mark.parametrize("expires_at", [NOON - DAY, NOON + DAY], ids=["over", "not over"])
def test_a_bounce_outlives_a_suppression_that_was_for_a_time(expires_at: Any) -> None:
    hold_back(reason=R.MANUAL)
    Suppression.objects.update(expires_at=expires_at)
    hold_back(reason=R.HARD_BOUNCE)
    assert EMAIL in held_back(EMAIL, now=NOON + 2 * DAY)


@pytest.mark.parametrize(
    ("expires_at", "marketing_only"), [(NOON, True), (NOON + DAY, False)], ids=["over", "not over"]
)
def test_who_unsubscribes_stays_unsubscribed(expires_at: Any, marketing_only: bool) -> None:
    """One that was over is not brought back by it, one that was not does not end it."""
    hold_back(reason=R.MANUAL)
    Suppression.objects.update(expires_at=expires_at)
    hold_back(reason=R.UNSUBSCRIBED, marketing_only=True)
    held = held_back(EMAIL, now=NOON + 2 * DAY)[EMAIL]
    assert held.marketing_only is marketing_only


# Lifting.


@pytest.mark.parametrize("address", ["ada@example.com", "Ada@Example.COM"])
def test_a_lifted_suppression_holds_nothing_back(address: str) -> None:
    hold_back()
    assert lift(channel="email", address=address)
    assert held_back(EMAIL) == {}


def test_lifting_what_is_not_suppressed_says_so() -> None:
    assert not lift(channel="email", address="ada@example.com")
    hold_back()
    assert lift(channel="email", address="ada@example.com")
    assert not lift(channel="email", address="ada@example.com")


def test_one_suppression_is_lifted_and_no_other() -> None:
    bob = ("email", "bob@example.com")
    for address in (EMAIL, PHONE, bob, ("whatsapp", "ada@example.com")):
        hold_back(address)
    lift(channel="email", address="ada@example.com")
    assert set(held_back(EMAIL, PHONE, bob)) == {PHONE, bob}
    assert ("whatsapp", "ada@example.com") in held_back(("whatsapp", "ada@example.com"))


def test_what_was_lifted_can_be_suppressed_again() -> None:
    hold_back(reason=R.COMPLAINT)
    lift(channel="email", address="ada@example.com")
    hold_back(reason=R.UNSUBSCRIBED, marketing_only=True)
    assert held_back(EMAIL)[EMAIL] == Suppressed(reason="unsubscribed", marketing_only=True)


def test_a_suppression_is_lifted_by_its_id() -> None:
    hold_back()
    with plans("suppressions") as found:
        lift(channel="email", address="ada@example.com")
    (plan,) = found
    assert plan.is_by_id
