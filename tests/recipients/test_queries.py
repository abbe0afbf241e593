"""Reads of recipients, preferences, and suppressions."""

from typing import Any

import pytest

from domain.errors import FailureCode
from domain.states import Category
from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor
from recipients import queries, suppressions
from recipients.models import PersonalQuietHours, Recipient
from recipients.preferences import Preference
from recipients.queries import ActiveSuppression, RecipientSnapshot, Refusal, RegisteredRecipient
from tests.support.factories.notifications import NOON
from tests.support.fakes.mongo_failpoints import CUT, fail_commands
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db")


def register(user_id: str, **fields: Any) -> None:
    Recipient.objects.create(user_id=user_id, created_at=NOON, updated_at=NOON, **fields)


def test_registered_recipient_has_every_field() -> None:
    fields: dict[str, Any] = {
        "email": "ada@example.com",
        "phone": "+351912345678",
        "name": "Ada",
        "locale": "pt",
        "timezone": "Europe/Lisbon",
        "preferences": {"marketing": {"muted": True}},
    }
    register("ada", **fields)
    ada = RegisteredRecipient(user_id="ada", **fields, quiet_hours=None)
    assert queries.find_registered(["ada"]) == {"ada": ada}


def test_quiet_hours_are_read() -> None:
    register("ada", quiet_hours=PersonalQuietHours(enabled=True, start="22:00"))
    quiet = queries.find_registered(["ada"])["ada"].quiet_hours
    assert (quiet["enabled"], quiet["start"], quiet["end"]) == (True, "22:00", "07:00")


def test_only_active_registered_recipients_are_found() -> None:
    register("ada")
    register("gone", is_active=False)
    assert set(queries.find_registered(["ada", "gone", "eve", "ada"])) == {"ada"}


def test_minimal_recipient_is_read() -> None:
    collection("recipients").insert_one({"_id": "ada", "is_active": True})
    assert queries.find_registered(["ada"])["ada"].preferences == {}


def test_batch_is_one_read_by_ids() -> None:
    collection("recipients").insert_many(
        [{"_id": f"user-{n}", "is_active": True} for n in range(2_000)]
    )
    with plans("recipients") as found:
        known = queries.find_registered(f"user-{n}" for n in range(100))
    (plan,) = found
    assert len(known) == 100
    assert plan.is_by_id
    assert plan.examined <= 200


def test_empty_read_makes_no_query() -> None:
    with plans("recipients") as found:
        assert queries.find_registered([]) == {}
    assert found == []


def test_preference_for_a_type_is_read() -> None:
    register("ada", preferences={"alert": {"channels": ["push"]}})
    ada = queries.find_registered(["ada"])["ada"]
    preference = ada.preference(type_slug="system_alert", category="alert", is_locked=False)
    assert preference == Preference(channels=("push",))
    locked = ada.preference(type_slug="system_alert", category="alert", is_locked=True)
    assert locked == Preference()


ADDRESS = ("email", "ada@example.com")


def suppress_many() -> None:
    collection("suppressions").insert_many(
        [
            {
                "_id": f"{n}",
                "key": suppressions.suppression_keys("email", f"user-{n}@example.com")[0],
                "reason": "manual",
                "marketing_only": False,
                "expires_at": None,
            }
            for n in range(2_000)
        ]
    )


def test_recipient_and_suppressions_are_one_indexed_read() -> None:
    register("ada", name="Ada")
    suppress_many()
    pair = ("email", "user-7@example.com")
    with plans("recipients") as found:
        snapshot = queries.load_snapshot(["ada"], [pair], now=NOON)
    assert snapshot.registered["ada"].name == "Ada"
    assert snapshot.suppressed == {pair: ActiveSuppression(reason="manual", marketing_only=False)}
    (plan,) = found
    assert plan.command["aggregate"] == "recipients"
    assert plan.examined <= 2
    assert plan.keys <= 6


def test_read_is_repeated_after_a_lost_connection() -> None:
    register("ada")
    with fail_commands("aggregate", "recipients", CUT):
        snapshot = queries.load_snapshot(["ada"], [ADDRESS], now=NOON)
    assert set(snapshot.registered) == {"ada"}


@pytest.mark.parametrize("backwards", [None, False, True])
@pytest.mark.parametrize(
    "fields",
    [{}, {"email": "house@example.com"}, {"phone": "+351912345678"}, {"email": "no@example.com"}],
    ids=lambda fields: "+".join(fields) or "all",
)
def test_page_is_read_by_an_index(fields: dict[str, str], backwards: bool | None) -> None:
    collection("recipients").insert_many(
        [
            {
                "_id": f"user-{n:04d}",
                "is_active": True,
                **({"email": "house@example.com"} if n % 40 == 0 else {}),
                **({"phone": "+351912345678"} if n % 50 == 0 else {}),
            }
            for n in range(2_000)
        ]
    )
    cursor = None if backwards is None else Cursor(("user-1000",), backwards)
    with plans("recipients") as found:
        page = queries.page(**fields, limit=10, cursor=cursor)
    (plan,) = found
    assert len(page.documents) == (0 if "no@" in fields.get("email", "") else 10)
    assert plan.is_indexed or plan.is_by_id
    assert not plan.sorts
    assert plan.examined <= 11


def refusal(
    *,
    category: str,
    active: ActiveSuppression | None = None,
    preferences: dict[str, Any] | None = None,
    is_locked: bool = False,
    address: str | None = ADDRESS[1],
) -> Refusal | None:
    ada = RegisteredRecipient(user_id="ada", preferences=preferences or {})
    snapshot = RecipientSnapshot(
        registered={"ada": ada}, suppressed={ADDRESS: active} if active is not None else {}
    )
    return snapshot.refusal_of(
        user_id="ada",
        channel=ADDRESS[0],
        address=address,
        type_slug="news",
        category=category,
        is_locked=is_locked,
    )


@pytest.mark.parametrize("is_locked", [True, False])
@pytest.mark.parametrize(
    ("category", "marketing_only", "applies"),
    [
        *[(category, False, True) for category in Category],
        (Category.MARKETING, True, True),
        (Category.TRANSACTIONAL, True, False),
        (Category.ALERT, True, False),
    ],
)
def test_marketing_suppression_applies_to_marketing_only(
    category: Category, marketing_only: bool, applies: bool, is_locked: bool
) -> None:
    active = ActiveSuppression(reason="unsubscribed", marketing_only=marketing_only)
    found = refusal(category=category, active=active, is_locked=is_locked)
    suppressed = Refusal(FailureCode.SUPPRESSED, "The address is suppressed: unsubscribed.")
    assert found == (suppressed if applies else None)


@pytest.mark.parametrize(
    ("preferences", "reason"),
    [
        ({"news": {"muted": True}}, queries.MUTED),
        ({"alert": {"muted": True}}, queries.MUTED),
        ({"alert": {"muted_channels": ["email"]}}, queries.MUTED_ON_CHANNEL),
        ({"alert": {"muted_channels": ["push"]}}, None),
        ({"marketing": {"muted": True}}, None),
        ({}, None),
    ],
)
def test_preference_suppresses_all_but_locked_types(
    preferences: dict[str, Any], reason: str | None
) -> None:
    opted_out = None if reason is None else Refusal(FailureCode.OPTED_OUT, reason)
    for address in (ADDRESS[1], None):
        found = refusal(category="alert", preferences=preferences, address=address)
        assert found == opted_out
    assert refusal(category="alert", preferences=preferences, is_locked=True) is None


def test_preference_precedes_the_suppression_of_the_address() -> None:
    # Staff can lift the suppression, but not the recipient's preference.
    active = ActiveSuppression(reason="hard_bounce", marketing_only=False)
    found = refusal(category="alert", active=active, preferences={"news": {"muted": True}})
    assert found == Refusal(FailureCode.OPTED_OUT, queries.MUTED)
