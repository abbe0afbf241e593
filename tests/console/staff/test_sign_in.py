"""Sign-in to the console: second factor and brute-force lockout."""

import html
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pyotp
import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client, override_settings

from access.models import StaffUser
from access.staff import second_factor
from access.staff.lockout import LIMITS, WINDOW
from access.staff.second_factor import MAX_TRIES, STEP, TRY_WINDOW, CodeResult
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff, signed_in

HOME = "/admin/"
LIST = "/admin/notifications/notification/"
LOGIN = "/admin/login/"
CHECK = "/admin/second-factor/"
SET_UP = "/admin/second-factor/set-up/"
RENEW = "/admin/second-factor/recovery-codes/"
USUAL_IP, OTHER_IP = "203.0.113.5", "198.51.100.7"
NOW = datetime.now(UTC) - timedelta(days=1)
"""When phones are set up: earlier than the present of the pages."""


@pytest.fixture
def ana(db: None) -> StaffUser:
    return make_staff("ana", superuser=True)


@pytest.fixture
def required(settings: Any) -> None:
    """Require the second factor, as on a server."""
    settings.ADMIN_REQUIRE_OTP = True


@pytest.fixture
def phone(ana: StaffUser) -> pyotp.TOTP:
    enrollment = second_factor.begin_enrollment(ana.pk, name="ana", now=NOW)
    app = pyotp.TOTP(enrollment.key)
    assert second_factor.confirm(ana.pk, app.at(NOW), now=NOW) is not None
    return app


def later(steps: int) -> datetime:
    return NOW + timedelta(seconds=STEP * steps)


@pytest.mark.usefixtures("required")
def test_missing_second_factor_is_set_up_first(ana: StaffUser) -> None:
    browser = signed_in(ana)
    for page in (HOME, LIST, f"{LIST}?status=failed"):
        answer = browser.get(page)
        assert (answer.status_code, answer["Location"].partition("?")[0]) == (302, SET_UP)
    shown = browser.get(f"{SET_UP}?next={LIST}").content.decode()
    assert 'src="data:image/svg+xml' in shown
    (spaced,) = re.findall(r"<code>([A-Z2-7 ]+)</code>", shown)
    assert spaced in browser.get(SET_UP).content.decode(), "the same until it is confirmed"
    app = pyotp.TOTP(spaced.replace(" ", ""))
    assert "Invalid or used code" in browser.post(SET_UP, {"code": "000000x"}).content.decode()
    done = browser.post(SET_UP, {"code": app.now(), "next": LIST}).content.decode()
    codes = re.findall(r"<code>([a-z2-7-]+)</code>", done)
    assert len(set(codes)) == 10
    assert f'href="{LIST}"' in html.unescape(done)
    assert browser.get(LIST).status_code == 200
    assert LogEntry.objects.filter(change_message="Set up two-factor authentication.").count() == 1


def test_second_factor_is_required_in_each_session(ana: StaffUser, phone: pyotp.TOTP) -> None:
    browser = signed_in(ana)
    path = "%2Fadmin%2Fnotifications%2Fnotification%2F%3Fstatus%3Dfailed"
    assert browser.get(f"{LIST}?status=failed")["Location"] == f"{CHECK}?next={path}"
    assert browser.post(f"{LIST}x/resend/").status_code == 302
    assert "Invalid or used code" in browser.post(CHECK, {"code": "12"}).content.decode()
    answer = browser.post(CHECK, {"code": phone.now(), "next": f"{LIST}?status=failed"})
    assert answer["Location"] == f"{LIST}?status=failed"
    assert browser.get(LIST).status_code == 200
    assert signed_in(ana).get(LIST).status_code == 302


def test_second_factor_redirects_to_no_other_site(ana: StaffUser, phone: pyotp.TOTP) -> None:
    answer = signed_in(ana).post(CHECK, {"code": phone.now(), "next": "https://evil.example/"})
    assert answer["Location"] == HOME


@pytest.mark.usefixtures("phone")
def test_setup_and_renewal_require_the_code(ana: StaffUser) -> None:
    browser = signed_in(ana)
    for answer in (browser.get(SET_UP), browser.post(SET_UP, {"code": "1"}), browser.post(RENEW)):
        assert answer["Location"].startswith(CHECK)
    assert browser.get(RENEW)["Location"] == CHECK


def test_reset_ends_earlier_sessions(ana: StaffUser, phone: pyotp.TOTP) -> None:
    browser = signed_in(ana)
    browser.post(CHECK, {"code": phone.now()})
    output = StringIO()
    call_command("reset_second_factor", "ana", stdout=output)
    assert "removed" in output.getvalue()
    with override_settings(ADMIN_REQUIRE_OTP=True):
        assert browser.get(LIST)["Location"].startswith(SET_UP)
    with pytest.raises(CommandError, match="Unknown user: bea"):
        call_command("reset_second_factor", "bea")


def test_optional_second_factor_is_not_required(ana: StaffUser) -> None:
    assert signed_in(ana).get(LIST).status_code == 200


@pytest.mark.usefixtures("required", "db")
def test_password_comes_before_the_second_factor() -> None:
    for page in (HOME, CHECK, SET_UP):
        assert Client().get(page)["Location"].startswith("/admin/login/")


def test_new_recovery_codes_replace_the_old(ana: StaffUser, phone: pyotp.TOTP) -> None:
    browser = signed_in(ana)
    browser.post(CHECK, {"code": phone.now()})
    old = second_factor.renew_recovery_codes(ana.pk)
    shown = browser.post(RENEW).content.decode()
    new = re.findall(r"<code>([a-z2-7-]+)</code>", shown)
    assert len(new) == 10
    assert second_factor.check(ana.pk, old[0], now=NOW) is CodeResult.WRONG
    assert second_factor.check(ana.pk, new[0], now=NOW) is CodeResult.RIGHT


def test_code_is_valid_in_its_time_step_and_the_adjacent_ones(
    ana: StaffUser, phone: pyotp.TOTP
) -> None:
    code = phone.at(later(10))
    for steps, result in ((8, CodeResult.WRONG), (12, CodeResult.WRONG), (11, CodeResult.RIGHT)):
        assert second_factor.check(ana.pk, f" {code[:3]} {code[3:]}", now=later(steps)) is result


def test_used_code_and_earlier_codes_are_rejected(ana: StaffUser, phone: pyotp.TOTP) -> None:
    code, earlier = phone.at(later(10)), phone.at(later(9))
    assert second_factor.check(ana.pk, code, now=later(10)) is CodeResult.RIGHT
    assert second_factor.check(ana.pk, code, now=later(10)) is CodeResult.WRONG
    assert second_factor.check(ana.pk, earlier, now=later(10)) is CodeResult.WRONG


def check_concurrently(ana: StaffUser, code: str, count: int, now: datetime) -> list[CodeResult]:
    def one(_number: int) -> CodeResult:
        try:
            return second_factor.check(ana.pk, code, now=now)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_concurrent_use_of_one_code_succeeds_once(ana: StaffUser, phone: pyotp.TOTP) -> None:
    code = phone.at(later(10))
    assert check_concurrently(ana, code, MAX_TRIES, later(10)).count(CodeResult.RIGHT) == 1


def test_concurrent_guesses_are_limited(ana: StaffUser, phone: pyotp.TOTP) -> None:
    results = check_concurrently(ana, "12345", 3 * MAX_TRIES, later(10))
    assert results.count(CodeResult.WRONG) == MAX_TRIES
    right = phone.at(later(11))
    assert second_factor.check(ana.pk, right, now=later(11)) is CodeResult.PAUSED
    after = later(10) + TRY_WINDOW
    assert second_factor.check(ana.pk, phone.at(after), now=after) is CodeResult.RIGHT


@pytest.mark.usefixtures("phone")
def test_recovery_code_is_valid_once_in_any_notation(ana: StaffUser) -> None:
    first, second, *_ = second_factor.renew_recovery_codes(ana.pk)
    assert second_factor.check(ana.pk, f" {first.upper()} ", now=NOW) is CodeResult.RIGHT
    assert second_factor.check(ana.pk, first, now=NOW) is CodeResult.WRONG
    assert second_factor.check(ana.pk, second.replace("-", " "), now=NOW) is CodeResult.RIGHT
    enrollment = second_factor.enrollment_of(ana.pk)
    assert enrollment is not None
    assert enrollment.recovery_codes == 8


def test_new_phone_is_valid_once_confirmed(ana: StaffUser, phone: pyotp.TOTP) -> None:
    other = pyotp.TOTP(second_factor.begin_enrollment(ana.pk, name="ana", now=NOW).key)
    assert other.secret != phone.secret
    assert second_factor.check(ana.pk, phone.at(later(3)), now=later(3)) is CodeResult.RIGHT
    assert second_factor.confirm(ana.pk, phone.at(later(5)), now=later(5)) is None
    assert second_factor.confirm(ana.pk, other.at(later(5)), now=later(5)) is not None
    assert second_factor.check(ana.pk, phone.at(later(7)), now=later(7)) is CodeResult.WRONG
    assert second_factor.check(ana.pk, other.at(later(7)), now=later(7)) is CodeResult.RIGHT


def test_second_factor_is_not_stored_in_plain_text(ana: StaffUser, phone: pyotp.TOTP) -> None:
    codes = second_factor.renew_recovery_codes(ana.pk)
    stored = str(collection("second_factors").find_one())
    assert not any(text in stored for text in (phone.secret, *codes))


def test_login_encrypts_the_key_with_the_newest_key(ana: StaffUser, phone: pyotp.TOTP) -> None:
    keys = {"newer": b"n" * 32, "tests": b"\xd3M4" * 16}
    with override_settings(FIELD_ENCRYPTION_KEYS=keys):
        assert second_factor.check(ana.pk, phone.at(later(3)), now=later(3)) is CodeResult.RIGHT
    stored = collection("second_factors").find_one()
    assert stored is not None
    assert stored["encrypted_key"].startswith("v1.newer.")


@pytest.mark.usefixtures("phone")
def test_recovery_code_works_without_the_encryption_key(ana: StaffUser) -> None:
    (code, *_) = second_factor.renew_recovery_codes(ana.pk)
    with override_settings(FIELD_ENCRYPTION_KEYS={"other": b"x" * 32}):
        assert second_factor.check(ana.pk, "123456", now=NOW) is CodeResult.WRONG
        assert second_factor.check(ana.pk, code, now=NOW) is CodeResult.RIGHT


def session_end() -> datetime:
    end: datetime = Session.objects.get().expire_date
    return end


def let_pass(time: timedelta) -> None:
    """Make the session older by a duration, as if the time had passed."""
    Session.objects.update(expire_date=session_end() - time)


IDLE_LIMIT = timedelta(hours=8)


def test_session_ends_8_hours_after_the_last_page(ana: StaffUser) -> None:
    console = signed_in(ana)
    for _ in range(3):
        let_pass(IDLE_LIMIT - timedelta(minutes=1))
        assert console.get(HOME).status_code == 200
    assert session_end() - datetime.now(UTC) > IDLE_LIMIT - timedelta(minutes=1)
    let_pass(IDLE_LIMIT)
    for _ in range(2):
        assert console.get(HOME).status_code == 302
    assert session_end() < datetime.now(UTC), "an ended session doesn't begin again"


def test_refreshing_part_of_a_page_does_not_extend_the_session(ana: StaffUser) -> None:
    console = signed_in(ana)
    let_pass(timedelta(hours=1))
    end = session_end()
    assert console.get(HOME, headers={"HX-Request": "true"}).status_code == 200
    assert session_end() == end


def test_session_cookie_ends_with_the_browser(ana: StaffUser) -> None:
    answer = Client().post(LOGIN, {"username": "ana", "password": "s3cret-enough"})
    assert answer.cookies["sessionid"]["max-age"] == ""


@pytest.fixture
def maria(db: None) -> StaffUser:
    return make_staff("maria", superuser=True)


def sign_in(
    name: str = "maria", password: str = "s3cret-enough", *, address: str = USUAL_IP
) -> int:
    """Try to sign in; return the status: 302 is success."""
    forged = {"X-Forwarded-For": "192.0.2.33"}
    answer = Client(REMOTE_ADDR=address, headers=forged).post(
        LOGIN, {"username": name, "password": password}
    )
    if answer.status_code == 429:
        assert int(answer["Retry-After"]) == WINDOW.total_seconds()
        assert b"Too many failed sign-ins" in answer.content
    return answer.status_code


def guess(times: int, name: str = "maria", *, address: str = USUAL_IP) -> list[int]:
    return [sign_in(name, "wrong", address=address) for _ in range(times)]


@pytest.mark.usefixtures("maria")
def test_fifth_wrong_password_locks_the_account_at_its_address() -> None:
    assert guess(5) == [200] * 4 + [429]
    assert sign_in() == 429, "the right one is not even checked"
    assert sign_in("MARIA ") == 429
    assert sign_in(address=OTHER_IP) == 302, "its owner is let in from anywhere else"


@pytest.mark.usefixtures("maria")
def test_lockout_ends_15_minutes_after_the_first_failure() -> None:
    guess(5)
    wanted = {"count": 5, "expires_at": {"$exists": True}}
    (both,) = collection("login_failures").find(wanted).limit(1)
    assert both["expires_at"] - datetime.now(UTC) <= WINDOW
    guess(3)
    (again,) = collection("login_failures").find({"_id": both["_id"]})
    assert again == both, "who is locked out does not make it longer"
    collection("login_failures").update_many({}, {"$set": {"expires_at": datetime.now(UTC)}})
    assert guess(1) == [200]
    assert sign_in() == 302


@pytest.mark.usefixtures("maria")
def test_right_password_resets_the_failures() -> None:
    for _ in range(3):
        assert guess(4) == [200] * 4
        assert sign_in() == 302


@pytest.mark.usefixtures("maria")
def test_address_is_locked_out_across_accounts() -> None:
    limit = LIMITS["address"]
    statuses = [guess(1, f"user-{number}")[0] for number in range(limit)]
    assert statuses == [200] * (limit - 1) + [429]
    assert sign_in() == 429
    assert sign_in(address=OTHER_IP) == 302


@pytest.mark.usefixtures("maria")
def test_account_is_locked_out_across_addresses() -> None:
    now = datetime.now(UTC)
    guess(1)
    collection("login_failures").update_many(
        {}, {"$set": {"count": LIMITS["account"] - 1, "expires_at": now + WINDOW}}
    )
    assert guess(1, address=OTHER_IP) == [429]
    assert sign_in(address="192.0.2.9") == 429


@pytest.mark.usefixtures("maria")
def test_failures_store_neither_name_nor_address(caplog: pytest.LogCaptureFixture) -> None:
    guess(5)
    stored = str(list(collection("login_failures").find()))
    assert not any(text in f"{stored}{caplog.text}" for text in ("maria", USUAL_IP, "wrong"))
