"""What a look at an unsubscribe link, its button, and a mail program's POST do."""

from typing import Any

import pytest
from django.test import Client

from domain.time import utc_now
from notifyproject.db.collections import collection
from recipients.models import SuppressionReason
from recipients.queries import find_suppressed
from tests.support.clients.unsubscribe import ADA, actions, heading, link
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db")

PAIR = ("email", ADA)
ONE_CLICK = {"List-Unsubscribe": "One-Click"}


@pytest.fixture
def http() -> Client:
    """Give a test a client that is held to every rule about forms."""
    return Client(enforce_csrf_checks=True, raise_request_exception=False)


def stored() -> list[dict[str, Any]]:
    return list(collection("suppressions").find())


def is_held_back() -> bool:
    return PAIR in find_suppressed([PAIR], now=utc_now())


# Looking.


@pytest.mark.parametrize("method", ["get", "head"])
def test_to_look_changes_nothing(http: Client, method: str) -> None:
    """Programs that look for harmful links open every link of a mail."""
    for _ in range(3):
        assert getattr(http, method)(link()).status_code == 200
    assert stored() == []


def test_the_page_asks_with_one_button_and_shows_whom_it_means(http: Client) -> None:
    path = link()
    page = http.get(path)
    assert heading(page) == "Stop these emails?"
    assert actions(page) == [("post", path)]
    assert "a***@example.com" in page.text
    assert ADA not in page.text


def test_the_page_of_somebody_who_has_unsubscribed_says_so(http: Client) -> None:
    path = link()
    http.post(path)
    page = http.get(path)
    assert heading(page) == "You are unsubscribed"
    assert actions(page) == [("post", f"{path}/undo")]


# Unsubscribing.


@pytest.mark.parametrize(
    "how",
    [
        {"data": ONE_CLICK},
        {"data": "List-Unsubscribe=One-Click", "content_type": "application/x-www-form-urlencoded"},
        {"data": {}},
        {"data": b"", "content_type": ""},
        {"data": b"\xff\xfe", "content_type": "multipart/form-data; boundary="},
        {"data": b"{", "content_type": "application/json"},
    ],
    ids=["one click as parts", "one click as a form", "the button", "nothing", "nonsense", "JSON"],
)
def test_a_post_unsubscribes_without_a_cookie_or_a_login(http: Client, how: dict[str, Any]) -> None:
    answer = http.post(link(), **how)
    assert answer.status_code == 200
    assert heading(answer) == "You are unsubscribed"
    (suppression,) = stored()
    assert (suppression["channel"], suppression["address"]) == PAIR
    assert (suppression["reason"], suppression["source"]) == ("unsubscribed", "one-click")
    assert suppression["marketing_only"] is True
    assert "expires_at" not in suppression


def test_the_answer_sets_no_cookie_and_leads_nowhere(http: Client) -> None:
    answer = http.post(link(), ONE_CLICK)
    assert answer.cookies == {}
    assert "Location" not in answer
    assert http.get(link()).cookies == {}


def test_unsubscribing_twice_is_unsubscribing_once(http: Client) -> None:
    path = link()
    http.post(path)
    (first,) = stored()
    assert http.post(path, ONE_CLICK).status_code == 200
    assert http.post(link()).status_code == 200
    assert stored() == [first]


def test_somebody_else_gets_their_mail(http: Client) -> None:
    http.post(link("bob@example.com"))
    assert not is_held_back()


def test_an_address_is_the_same_however_it_is_written(http: Client) -> None:
    http.post(link("Ada@Example.COM"))
    assert is_held_back()


def test_a_link_works_when_nothing_is_left_of_its_notification(http: Client) -> None:
    """Mails are kept for years, notifications for 90 days, and who was erased may come back."""
    assert collection("notifications").count_documents({}) == 0
    http.post(link())
    assert is_held_back()


# Undoing it.


def test_it_can_be_undone(http: Client) -> None:
    path = link()
    http.post(path)
    page = http.post(f"{path}/undo")
    assert heading(page) == "You are subscribed again"
    assert actions(page) == [("post", path)]
    assert stored() == []
    assert heading(http.post(path)) == "You are unsubscribed"
    assert is_held_back()


def test_undoing_what_was_not_done_is_nothing(http: Client) -> None:
    assert http.post(f"{link()}/undo").status_code == 200
    assert stored() == []


@pytest.mark.parametrize("reason", [SuppressionReason.HARD_BOUNCE, SuppressionReason.COMPLAINT])
@pytest.mark.parametrize("marketing_only", [True, False])
def test_what_is_no_wish_of_theirs_is_not_undone(
    http: Client, reason: SuppressionReason, marketing_only: bool
) -> None:
    factories.hold_back(ADA, reason=reason, marketing_only=marketing_only, at=utc_now())
    (before,) = stored()
    http.post(link())
    assert heading(http.post(f"{link()}/undo")) == "You are unsubscribed"
    assert stored() == [before]


def test_to_look_at_the_answer_again_leads_to_the_question(http: Client) -> None:
    path = link()
    http.post(path)
    answer = http.get(f"{path}/undo")
    assert (answer.status_code, answer["Location"]) == (302, path)
    assert is_held_back()


# The link of a test.


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("step", ["", "/undo"])
def test_the_link_of_a_test_changes_no_subscription(http: Client, held: bool, step: str) -> None:
    if held:
        http.post(link())
    before = stored()
    answer = http.post(f"{link(is_test=True)}{step}", ONE_CLICK)
    assert answer.status_code == 200
    assert heading(answer) == "This email was a test"
    assert actions(answer) == []
    assert stored() == before


@pytest.mark.parametrize("held", [True, False])
def test_the_page_of_a_test_asks_whatever_is_known_of_the_address(http: Client, held: bool) -> None:
    if held:
        http.post(link())
    path = link(is_test=True)
    page = http.get(path)
    assert heading(page) == "Stop these emails?"
    assert actions(page) == [("post", path)]


def test_the_answer_to_a_test_is_in_portuguese_too(http: Client) -> None:
    assert heading(http.post(link(locale="pt", is_test=True))) == "Este e-mail era um teste"
