"""What old notifications say goes; that there was one, and what became of it, stays."""

from datetime import datetime

import pytest

from domain.states import Category, Channel, DeliveryStatus
from notifications import store
from notifyproject.db.collections import collection
from privacy.content_removal import ContentRemoval
from tests.support.factories import notifications as factories
from tests.support.factories.aged_notifications import (
    DAY,
    DUE,
    TICK,
    ended,
    is_removed,
    policy,
    remove,
    report,
)
from tests.support.factories.notifications import NOON

pytestmark = pytest.mark.usefixtures("db")

EMAIL, PUSH, WHATSAPP, IN_APP = Channel
S = DeliveryStatus


# What goes, and what stays.


def test_what_it_says_and_to_which_address_goes() -> None:
    before = ended()
    assert remove() == ContentRemoval(notifications=1, attempts=1, is_complete=True)
    after = factories.read(before["_id"])
    assert after["content"] == {"template_id": "payment_confirmed", "template_version": 3}
    assert after["data"] == {}
    assert after["recipient"] == {
        "device_ids": ["d" * 64],
        "locale": "pt",
        "timezone": "Europe/Lisbon",
    }
    assert after["content_removed_at"] == DUE
    for said in ("Ada", "ada@", "+351", "49.90", "payment has", "app://", "files.example", "503)"):
        assert said not in str(after)


def test_what_explains_the_delivery_stays() -> None:
    before = ended()
    remove()
    after = factories.read(before["_id"])
    gone = {"content", "recipient", "data", "error", "error_history", "delivery"}
    assert {k: v for k, v in after.items() if k not in {*gone, "content_removed_at"}} == {
        k: v for k, v in before.items() if k not in gone
    }
    (was,), (is_,) = before["delivery"], after["delivery"]
    assert is_ == {name: value for name, value in was.items() if name != "failure_reason"}
    assert is_["failure_code"] == "provider_error"
    (line,) = after["error_history"]
    assert (line["code"], line["error"]) == ("provider_error", "")


@pytest.mark.parametrize("status", [S.SENT, S.FAILED])
def test_of_an_attempt_stays_all_but_the_words(status: DeliveryStatus) -> None:
    document = ended(status)
    words = {"platform_response.body": "ada@ is unknown", "platform_response.code": "5.1.1"}
    collection("delivery_attempts").update_one({}, {"$set": {**words, "error_message": "Ada?"}})
    (before,) = factories.attempts(document["_id"])
    remove()
    (after,) = factories.attempts(document["_id"])
    status_code = before["platform_response"]["status"]
    answer = {"status": status_code, "code": "5.1.1"}
    assert after == {
        **{name: value for name, value in before.items() if name != "error_message"},
        "platform_response": answer,
    }


def test_the_store_still_reads_it() -> None:
    document = ended()
    remove()
    after = factories.read(document["_id"])
    assert store.content_of(after).template_version == 3
    assert store.recipient_of(after).address(EMAIL) is None


def test_an_attempt_without_an_answer_is_given_none() -> None:
    document = factories.started()
    store.expire_leases(now=NOON + DAY)
    store.apply_receipt(report(document.notification_id, S.DELIVERED), now=NOON + DAY)
    remove(at=DUE + DAY)
    (attempt,) = factories.attempts(document.notification_id)
    assert {"platform_response", "error_message"}.isdisjoint(attempt)


# When.


@pytest.mark.parametrize(("at", "goes"), [(DUE - TICK, False), (DUE, True)])
def test_it_goes_when_its_days_are_over_and_not_a_moment_before(at: datetime, goes: bool) -> None:
    document = ended()
    remove(at=at)
    assert is_removed(document) is goes


def test_each_category_has_its_own_days() -> None:
    policy(Category.MARKETING, content_days=7)
    policy(Category.ALERT, content_days=60)
    some = {one: ended(category=one) for one in Category}
    gone = []
    for days in (7, 30, 60):
        remove(at=NOON + days * DAY + TICK)
        gone.append([c.value for c, document in some.items() if is_removed(document)])
    assert gone == [
        ["marketing"],
        ["transactional", "marketing"],
        ["transactional", "marketing", "alert"],
    ]


def test_the_days_begin_with_the_last_thing_that_happened() -> None:
    document = ended(S.SENT)
    store.apply_receipt(report(document["_id"], S.DELIVERED), now=NOON + 5 * DAY)
    remove()
    assert not is_removed(document)
    remove(at=DUE + 5 * DAY)
    assert is_removed(document)


def test_to_remove_is_nothing_that_happened() -> None:
    """Deleting what nobody touched for so long counts from before, and figures are not redone."""
    document = ended()
    remove()
    assert factories.read(document["_id"])["updated_at"] == document["updated_at"]


def test_again_changes_nothing() -> None:
    document = ended()
    remove()
    first = factories.read(document["_id"]), factories.attempts(document["_id"])
    again = remove(at=DUE + DAY, is_from_beginning=True)
    assert (again.notifications, again.attempts) == (0, 0)
    assert (factories.read(document["_id"]), factories.attempts(document["_id"])) == first


def test_what_a_provider_reports_after_it_goes_in_its_turn() -> None:
    document = ended(S.SENT)
    remove()
    store.apply_receipt(report(document["_id"], S.FAILED), now=DUE)
    assert "ada@" in str(factories.read(document["_id"]))
    remove(at=DUE + 30 * DAY + TICK)
    after = factories.read(document["_id"])
    assert "ada@" not in str(after)
    assert (after["status"], after["content_removed_at"]) == ("failed", DUE)
