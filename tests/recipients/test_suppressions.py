"""Suppressions: reasons, lifting, lists, and soft bounces."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from domain.channels import address_digest
from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor
from recipients import queries, suppressions
from recipients.models import Suppression, SuppressionReason
from recipients.queries import ActiveSuppression
from recipients.suppressions import find_by_address, lift, lift_one, suppress, suppression_id
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db")
R = SuppressionReason
EMAIL = ("email", "ada@example.com")
PHONE = ("whatsapp", "+351912345678")
PHONE_ADDRESS: dict[str, Any] = {"channel": "whatsapp", "address": "+351912345678"}
DAY = timedelta(days=1)


def store(
    address: tuple[str, str] = EMAIL, *, reason: R = R.HARD_BOUNCE, **fields: Any
) -> dict[str, Any]:
    channel, where = address
    options: dict[str, Any] = {"source": "sendgrid", "marketing_only": False, "now": NOON} | fields
    return dict(suppress(channel=channel, address=where, reason=reason, **options))


def find(*addresses: tuple[str, str], now: Any = NOON) -> dict[tuple[str, str], ActiveSuppression]:
    return queries.find_suppressed(addresses, now=now)


def lift_reasons(address: tuple[str, str] = EMAIL, *reasons: R, **options: Any) -> tuple[R, ...]:
    channel, where = address
    return lift(channel=channel, address=where, reasons=reasons or list(R), **options)


def soft_bounce(event: str) -> int:
    return suppressions.record_soft_bounce(**PHONE_ADDRESS, event=event, now=NOON)


def test_suppressed_address_is_found_with_its_reason() -> None:
    store()
    found = ActiveSuppression(reason="hard_bounce", marketing_only=False)
    assert find(EMAIL, PHONE) == {EMAIL: found}


@pytest.mark.parametrize("address", ["ada@example.com", "Ada@Example.com", "ADA@EXAMPLE.COM"])
@pytest.mark.parametrize("stored", ["ada@example.com", "Ada@Example.COM"])
def test_email_is_case_insensitive(stored: str, address: str) -> None:
    store(("email", stored))
    assert ("email", address) in find(("email", address))


def test_both_spellings_of_an_address_are_found() -> None:
    store()
    asked = [("email", "ada@example.com"), ("email", "Ada@example.com")]
    assert set(find(*asked)) == set(asked)


@pytest.mark.parametrize(
    ("asked", "reported"),
    [
        ("ada@b\u00fccher.example", "ada@xn--bcher-kva.example"),
        ("Ada@B\u00dcCHER.example", "ada@xn--bcher-kva.example"),
        ("ada@xn--bcher-kva.example", "ada@b\u00fccher.example"),
        ("ada@stra\u00dfe.example", "ada@xn--strae-oqa.example"),
    ],
)
def test_idn_spellings_are_the_same_domain(asked: str, reported: str) -> None:
    """Mail is sent, and bounces are reported, in the form with ``xn--``."""
    store(("email", reported))
    assert ("email", asked) in find(("email", asked))
    assert lift_reasons(("email", asked)) == (R.HARD_BOUNCE,)


def test_similar_domains_are_different() -> None:
    store(("email", "ada@strasse.example"))
    assert find(("email", "ada@stra\u00dfe.example")) == {}


def test_malformed_address_is_suppressed_literally() -> None:
    store(("email", "\u00e4da@\u2603"))
    assert find(("email", "\u00e4da@\u2603"), ("email", "ada@\u2603")).keys() == {
        ("email", "\u00e4da@\u2603")
    }


def test_channels_are_suppressed_separately() -> None:
    store(("email", "same"))
    assert find(("whatsapp", "same")) == {}


def test_batch_is_one_read_by_an_index() -> None:
    for number in range(50):
        store(("email", f"user{number}@example.com"))
        store(("email", f"other{number}@example.com"))
    with plans("suppressions") as found:
        held = find(*[("email", f"user{n}@example.com") for n in range(100)])
    (plan,) = found
    assert len(held) == 50
    assert plan.is_indexed
    assert plan.examined == 50


def test_empty_read_makes_no_query() -> None:
    with plans("suppressions") as found:
        assert find() == {}
    assert found == []


@pytest.mark.parametrize(
    ("dialled", "reported"),
    [("+5511987654321", "+551187654321"), ("+525512345678", "+5215512345678")],
    ids=["Brazil", "Mexico"],
)
def test_older_whatsapp_spelling_is_the_same_number(dialled: str, reported: str) -> None:
    store(("whatsapp", reported), reason=R.UNSUBSCRIBED)
    assert ("whatsapp", dialled) in find(("whatsapp", dialled))


def test_suppression_has_its_source_and_no_address_in_its_id() -> None:
    stored = store(reason=R.COMPLAINT)
    suppression = Suppression.objects.get(pk=suppression_id(*EMAIL, R.COMPLAINT))
    assert (suppression.channel, suppression.address) == EMAIL
    assert (suppression.reason, suppression.source, suppression.marketing_only) == (
        "complaint",
        "sendgrid",
        False,
    )
    assert (suppression.created_at, suppression.expires_at) == (NOON, None)
    assert stored["_id"] == suppression.pk
    assert "ada@" not in suppression.pk


@pytest.mark.parametrize(
    ("reasons", "held"),
    [
        ([(R.UNSUBSCRIBED, True), (R.HARD_BOUNCE, False)], ("hard_bounce", False)),
        ([(R.HARD_BOUNCE, False), (R.UNSUBSCRIBED, True)], ("hard_bounce", False)),
        ([(R.UNSUBSCRIBED, True), (R.MANUAL, True)], ("manual", True)),
        ([(R.HARD_BOUNCE, False), (R.COMPLAINT, False)], ("complaint", False)),
        ([(R.COMPLAINT, True), (R.UNSUBSCRIBED, False)], ("unsubscribed", False)),
    ],
)
def test_strictest_of_several_reasons_applies(
    reasons: list[tuple[R, bool]], held: tuple[str, bool]
) -> None:
    for reason, marketing_only in reasons:
        store(reason=reason, marketing_only=marketing_only)
    assert find(EMAIL)[EMAIL] == ActiveSuppression(reason=held[0], marketing_only=held[1])
    assert Suppression.objects.count() == len(reasons)


def test_reasons_are_listed_newest_first() -> None:
    store(reason=R.UNSUBSCRIBED, marketing_only=True)
    store(now=NOON + DAY)
    store(("email", "bob@example.com"))
    found = find_by_address(channel="email", address="ADA@example.com")
    assert [suppression["reason"] for suppression in found] == ["hard_bounce", "unsubscribed"]


FULL = {"marketing_only": False}
MARKETING = {"marketing_only": True}
UNTIL = {"expires_at": NOON + DAY}
LATER = {"expires_at": NOON + 2 * DAY}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (MARKETING, FULL, FULL),
        (FULL, MARKETING, FULL),
        (FULL | UNTIL, MARKETING, FULL | UNTIL),
        (MARKETING, FULL | UNTIL, FULL | UNTIL),
        (FULL | UNTIL, FULL, FULL),
        (FULL, FULL | UNTIL, FULL),
        (FULL | UNTIL, FULL | LATER, FULL | LATER),
        (FULL | LATER, FULL | UNTIL, FULL | LATER),
    ],
)
def test_stricter_of_two_entries_with_one_reason_stays(
    first: dict[str, Any], second: dict[str, Any], expected: dict[str, Any]
) -> None:
    store(reason=R.MANUAL, source="admin", **first)
    stored = store(reason=R.MANUAL, source="api", now=NOON + DAY / 2, **second)
    assert stored["marketing_only"] is expected["marketing_only"]
    assert stored.get("expires_at") == expected.get("expires_at")
    assert stored["created_at"] == NOON
    assert stored["source"] == ("admin" if expected == first else "api")
    assert Suppression.objects.count() == 1


def test_expired_suppression_is_replaced() -> None:
    """MongoDB removes an expired suppression up to a minute late, and a new one must replace it."""
    store(reason=R.MANUAL, **UNTIL)
    stored = store(reason=R.MANUAL, source="api", now=NOON + DAY, **MARKETING)
    assert (stored["marketing_only"], stored["source"]) == (True, "api")
    assert (stored["created_at"], stored.get("expires_at")) == (NOON + DAY, None)


@pytest.mark.parametrize(
    ("expires_at", "is_held_back"),
    [(NOON - DAY, False), (NOON, False), (NOON + timedelta(milliseconds=1), True), (None, True)],
)
def test_suppression_can_expire(expires_at: Any, is_held_back: bool) -> None:
    store(reason=R.MANUAL, now=NOON - 2 * DAY, expires_at=expires_at)
    assert (EMAIL in find(EMAIL)) is is_held_back


def test_unsubscription_outlives_another_suppression() -> None:
    store(reason=R.MANUAL, **UNTIL)
    store(reason=R.UNSUBSCRIBED, marketing_only=True)
    assert find(EMAIL)[EMAIL].marketing_only is False
    assert find(EMAIL, now=NOON + 2 * DAY)[EMAIL] == ActiveSuppression(
        reason="unsubscribed", marketing_only=True
    )


@pytest.mark.parametrize("address", ["ada@example.com", "Ada@Example.COM"])
def test_lifted_suppression_does_not_apply(address: str) -> None:
    store()
    assert lift_reasons(("email", address)) == (R.HARD_BOUNCE,)
    assert find(EMAIL) == {}


def test_lifting_affects_one_address_only() -> None:
    bob = ("email", "bob@example.com")
    for address in (EMAIL, PHONE, bob, ("whatsapp", "ada@example.com")):
        store(address)
    lift_reasons()
    assert set(find(EMAIL, PHONE, bob)) == {PHONE, bob}
    assert ("whatsapp", "ada@example.com") in find(("whatsapp", "ada@example.com"))


def test_lifting_can_be_limited_to_marketing_or_age() -> None:
    store(reason=R.UNSUBSCRIBED, marketing_only=False)
    assert lift_reasons(EMAIL, R.UNSUBSCRIBED, marketing_only=True) == ()
    assert lift_reasons(EMAIL, R.UNSUBSCRIBED, before=NOON - DAY) == ()
    assert lift_reasons(EMAIL, R.UNSUBSCRIBED, before=NOON) == (R.UNSUBSCRIBED,)


def test_lifting_a_bounce_resets_soft_bounces() -> None:
    """Otherwise, the next soft bounce would suppress the address at once."""
    for event in "123":
        soft_bounce(event)
    store(PHONE)
    lift_reasons(PHONE)
    assert soft_bounce("4") == 1
    stored = store(PHONE)
    assert lift_one(stored["_id"])
    assert soft_bounce("5") == 1
    assert not lift_one(stored["_id"])


def test_suppression_is_lifted_by_id() -> None:
    store()
    with plans("suppressions") as found:
        lift_reasons(EMAIL, R.HARD_BOUNCE)
    (plan,) = found
    assert plan.is_by_id


def test_anonymized_address_stays_suppressed() -> None:
    store(reason=R.COMPLAINT)
    store(("email", "bob@example.com"))
    assert suppressions.anonymize([("email", "Ada@example.com"), PHONE]) == 1
    assert find(EMAIL)[EMAIL].reason == "complaint"
    kept = [
        document.get("address") for document in collection("suppressions").find().sort("address", 1)
    ]
    assert kept == [None, "bob@example.com"]
    assert "ada@" not in str(list(collection("suppressions").find({"reason": "complaint"})))
    assert suppressions.anonymize([EMAIL]) == 0


def test_anonymized_suppression_gets_no_address_again() -> None:
    store()
    suppressions.anonymize([EMAIL])
    assert "address" not in store()
    assert lift_reasons() == (R.HARD_BOUNCE,)


def listed(**wanted: Any) -> list[str]:
    return [document["address"] for document in suppressions.page(limit=100, **wanted).documents]


@pytest.fixture
def many() -> None:
    for n in range(120):
        address = ("email", f"user{n}@example.com") if n % 3 else ("whatsapp", f"+3519123450{n}")
        store(address, reason=list(R)[n % 4], now=NOON + timedelta(minutes=n))


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"channel": "email"},
        {"reason": R.COMPLAINT},
        {"channel": "whatsapp", "reason": R.MANUAL},
    ],
)
def test_page_is_read_by_an_index_in_order(wanted: dict[str, Any]) -> None:
    last = suppressions.page(limit=5, **wanted).documents[-1]
    position = (last["created_at"], last["_id"])
    for cursor in (None, Cursor(position, backwards=False), Cursor(position, backwards=True)):
        with plans("suppressions") as found:
            suppressions.page(limit=5, cursor=cursor, **wanted)
        (plan,) = found
        assert plan.is_indexed
        assert not plan.sorts
        assert plan.examined <= 2 * plan.returned


@pytest.mark.usefixtures("many")
def test_list_is_newest_first_and_filtered() -> None:
    assert len(listed()) == 100
    assert listed()[0] == "user119@example.com"
    assert listed(channel="whatsapp")[0] == "+3519123450117"
    assert {suppression[-1] for suppression in listed(channel="email")} == {"m"}
    assert len(listed(reason=R.COMPLAINT)) == 30
    assert len(listed(channel="whatsapp", reason=R.COMPLAINT)) == 10


def test_each_event_counts_once() -> None:
    assert [soft_bounce(event) for event in ("a", "b", "b", "a", "c")] == [1, 2, 2, 2, 3]


def test_concurrent_equal_events_count_once() -> None:
    soft_bounce("a")
    with ThreadPoolExecutor(8) as threads:
        counts = list(threads.map(soft_bounce, ["b"] * 16))
    assert set(counts) == {2}


def test_delivery_resets_soft_bounces() -> None:
    soft_bounce("a")
    suppressions.clear_soft_bounces(**PHONE_ADDRESS)
    assert soft_bounce("b") == 1


def test_addresses_are_counted_separately() -> None:
    soft_bounce("a")
    other = PHONE_ADDRESS | {"address": "+351912345679"}
    assert suppressions.record_soft_bounce(**other, event="b", now=NOON) == 1


def test_stored_digest_is_keyed(settings: Any) -> None:
    store()
    suppressions.anonymize([EMAIL])
    (stored,) = collection("suppressions").find()
    assert address_digest(*EMAIL) not in str(stored)
    settings.FIELD_ENCRYPTION_KEYS = {"other": b"y" * 48}
    assert find(EMAIL) == {}


def test_suppression_stays_effective_while_its_key_is_listed(settings: Any) -> None:
    store()
    old = settings.FIELD_ENCRYPTION_KEYS
    settings.FIELD_ENCRYPTION_KEYS = {"new": b"x" * 48, **old}
    assert find(EMAIL)[EMAIL].reason == "hard_bounce"
    store()
    assert collection("suppressions").count_documents({}) == 1
    assert lift_reasons() == (R.HARD_BOUNCE,)
