"""Lists of suppressions, and those of people who were erased."""

from datetime import timedelta
from typing import Any

import pytest

from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor
from recipients import suppressions
from recipients.models import SuppressionReason
from tests.recipients.test_suppressions import EMAIL, PHONE, held_back, hold_back, lifted
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db")

R = SuppressionReason


# People who were erased.


def test_an_address_is_held_back_after_it_was_forgotten() -> None:
    hold_back(reason=R.COMPLAINT)
    hold_back(("email", "bob@example.com"))
    assert suppressions.anonymise([("email", "Ada@example.com"), PHONE]) == 1
    assert held_back(EMAIL)[EMAIL].reason == "complaint"
    kept = [one.get("address") for one in collection("suppressions").find().sort("address", 1)]
    assert kept == [None, "bob@example.com"]
    assert "ada" not in str(list(collection("suppressions").find({"reason": "complaint"})))
    assert suppressions.anonymise([EMAIL]) == 0


def test_a_report_about_a_forgotten_address_does_not_bring_it_back() -> None:
    hold_back()
    suppressions.anonymise([EMAIL])
    assert "address" not in hold_back()
    assert lifted() == (R.HARD_BOUNCE,)


# Lists.


def listed(**wanted: Any) -> list[str]:
    return [one["address"] for one in suppressions.page(limit=100, **wanted).documents]


@pytest.fixture
def many() -> None:
    """Store suppressions of every kind, a minute between them."""
    for n in range(120):
        address = ("email", f"user{n}@example.com") if n % 3 else ("whatsapp", f"+3519123450{n}")
        hold_back(address, reason=list(R)[n % 4], now=NOON + timedelta(minutes=n))


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
def test_a_page_is_read_by_an_index_in_its_order(wanted: dict[str, Any]) -> None:
    first = suppressions.page(limit=5, **wanted)
    last = first.documents[-1]
    for backwards in (None, False, True):
        place = None
        if backwards is not None:
            place = Cursor((last["created_at"], last["_id"]), backwards=backwards)
        with plans("suppressions") as found:
            suppressions.page(limit=5, cursor=place, **wanted)
        (plan,) = found
        assert plan.is_indexed
        assert not plan.sorts
        assert plan.examined <= 2 * plan.returned


@pytest.mark.usefixtures("many")
def test_a_list_is_newest_first_and_of_what_is_asked_for() -> None:
    assert len(listed()) == 100
    assert listed()[0] == "user119@example.com"
    assert listed(channel="whatsapp")[0] == "+3519123450117"
    assert {one[-1] for one in listed(channel="email")} == {"m"}
    assert len(listed(reason=R.COMPLAINT)) == 30
    assert len(listed(channel="whatsapp", reason=R.COMPLAINT)) == 10
