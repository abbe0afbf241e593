"""Who guesses passwords of the console is locked out for a quarter of an hour."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from access.models import StaffUser
from access.staff.lockout import LIMITS, WINDOW
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff

LOGIN = "/admin/login/"
PASSWORD = "s3cret-enough"
HOME, ELSEWHERE = "203.0.113.5", "198.51.100.7"


@pytest.fixture(autouse=True)
def maria(db: None, settings: Any) -> StaffUser:
    """Have somebody to sign in."""
    settings.TRUSTED_PROXIES = 0
    return make_staff("maria", superuser=True)


def sign_in(name: str = "maria", password: str = PASSWORD, *, address: str = HOME) -> int:
    """Try to sign in; return the answer's status: 302 is inside."""
    answer = Client(REMOTE_ADDR=address).post(LOGIN, {"username": name, "password": password})
    if answer.status_code == 429:
        assert int(answer["Retry-After"]) == WINDOW.total_seconds()
        assert b"Too many passwords were wrong" in answer.content
    return answer.status_code


def guess(times: int, name: str = "maria", *, address: str = HOME) -> list[int]:
    return [sign_in(name, "wrong", address=address) for _ in range(times)]


def let_pass(now: datetime) -> None:
    """Let the windows end."""
    collection("login_failures").update_many({}, {"$set": {"expires_at": now}})


def test_the_fifth_wrong_password_locks_the_account_at_this_address() -> None:
    assert guess(5) == [200] * 4 + [429]
    assert sign_in() == 429, "the right one is not even looked at"
    assert sign_in("MARIA ") == 429
    assert sign_in(address=ELSEWHERE) == 302, "its owner is let in from anywhere else"


def test_it_is_over_a_quarter_of_an_hour_after_the_first() -> None:
    guess(5)
    (both,) = (
        collection("login_failures").find({"count": 5, "expires_at": {"$exists": True}}).limit(1)
    )
    assert both["expires_at"] - datetime.now(UTC) <= WINDOW
    guess(3)
    (again,) = collection("login_failures").find({"_id": both["_id"]})
    assert again == both, "who is locked out does not make it longer"
    let_pass(datetime.now(UTC))
    assert guess(1) == [200]
    assert sign_in() == 302


def test_the_right_password_forgets_what_was_wrong_before() -> None:
    for _ in range(3):
        assert guess(4) == [200] * 4
        assert sign_in() == 302


def test_an_address_is_locked_out_whatever_accounts_it_tries() -> None:
    many = LIMITS["address"]
    answers = [guess(1, f"user-{number}")[0] for number in range(many)]
    assert answers == [200] * (many - 1) + [429]
    assert sign_in() == 429
    assert sign_in(address=ELSEWHERE) == 302


def test_an_account_is_locked_out_wherever_the_guesses_come_from() -> None:
    now = datetime.now(UTC)
    guess(1)
    collection("login_failures").update_many(
        {}, {"$set": {"count": LIMITS["account"] - 1, "expires_at": now + WINDOW}}
    )
    assert guess(1, address=ELSEWHERE) == [429]
    assert sign_in(address="192.0.2.9") == 429


def test_neither_a_name_nor_an_address_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    guess(5)
    stored = str(list(collection("login_failures").find()))
    assert not any(text in f"{stored}{caplog.text}" for text in ("maria", HOME, "wrong"))
