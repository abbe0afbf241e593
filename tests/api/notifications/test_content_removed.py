"""A notification whose content was removed, as the API answers with it."""

from datetime import timedelta
from typing import Any

import pytest

from domain.states import Channel, DeliveryStatus
from domain.time import utc_now
from privacy import content_removal
from tests.support.clients.api import App
from tests.support.clients.inbox import Person, delivered, token
from tests.support.factories import notifications as factories

EMAIL, PUSH, WHATSAPP, IN_APP = Channel
LONG_AGO = utc_now() - timedelta(days=31)


def removed(app: App, status: DeliveryStatus = DeliveryStatus.FAILED, **fields: Any) -> str:
    """Return the id of a notification that ended long ago, and says nothing any more."""
    document = factories.settled(
        status, client_id=app.id, at=LONG_AGO, created_at=LONG_AGO, **fields
    )
    content_removal.remove_expired_content(now=utc_now())
    return str(document["_id"])


@pytest.mark.parametrize("action", ["retry", "resend"])
def test_it_is_not_sent_again_and_the_answer_says_why(app: App, action: str) -> None:
    one = removed(app)
    answer = app.post(f"/notifications/{one}/{action}")
    assert (answer.status_code, answer.json()["code"]) == (409, "content_removed")
    today = f"{utc_now():%Y-%m-%d}"
    assert f"was removed on {today}, as the retention of its category" in answer.json()["detail"]
    assert len(app.get("/notifications").json()["results"]) == 1


def test_it_is_shown_with_what_became_of_it_and_since_when_it_says_nothing(app: App) -> None:
    shown = app.get(f"/notifications/{removed(app)}").json()
    assert shown["content_removed_at"] is not None
    assert (shown["content"]["subject"], shown["content"]["body"], shown["data"]) == (
        None,
        None,
        {},
    )
    assert (shown["recipient"]["email"], shown["error"]) == (None, None)
    assert (shown["status"], shown["type"], shown["user_id"]) == (
        "failed",
        "payment_confirmed",
        "ada",
    )
    assert shown["delivery"][0]["failure_code"] == "provider_error"
    assert shown["can_retry"] is False


def test_one_that_says_something_still_says_nothing_of_it(app: App) -> None:
    shown = app.notify().json()
    assert shown["content_removed_at"] is None


def test_it_is_in_lists_and_in_a_persons_export(app: App) -> None:
    one = removed(app)
    (listed,) = app.get("/notifications").json()["results"]
    assert (listed["id"], listed["content"]["body"]) == (one, None)
    (exported,) = app.get("/recipients/ada/export").json()["notifications"]
    assert exported["content_removed_at"] == listed["content_removed_at"]


def test_its_attempts_say_how_they_ended_and_no_word_of_the_provider(app: App) -> None:
    (attempt,) = app.get(f"/notifications/{removed(app)}/attempts").json()["results"]
    assert (attempt["status"], attempt["error_code"]) == ("failed", "provider_error")
    assert (attempt["platform_response"], attempt["error_message"]) == ({"status": 503}, None)


def test_what_is_in_an_inbox_stays_there_and_says_what_it_did(app: App) -> None:
    both = {"channels": [IN_APP, EMAIL], "created_at": LONG_AGO}
    document = delivered(app, **both)
    begun = factories.start(factories.claim(document["_id"]), at=LONG_AGO)
    settlement = factories.settlement(begun, DeliveryStatus.SENT, at=LONG_AGO)
    factories.store.settle([settlement], now=LONG_AGO)
    person = Person(app=app, token=token(app))
    before = person.get().json()
    assert content_removal.remove_expired_content(now=utc_now()).notifications == 1
    assert person.get().json() == before
    assert before["results"][0]["body"] == "Your payment has arrived."


def test_what_never_came_into_an_inbox_is_no_empty_card_there(app: App) -> None:
    removed(app)
    assert Person(app=app, token=token(app)).get().json()["results"] == []
