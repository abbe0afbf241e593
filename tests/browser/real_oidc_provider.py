"""Sign-in at a real OpenID provider, ``oidc-provider`` in Node.js, in a browser: ``make oidc``.

Not part of ``make test``, because it needs Node.js and npm. ``tests/console/test_oidc.py`` has the
forged tokens that a real provider doesn't issue.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyotp
import pytest
import urllib3
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core.management import call_command
from playwright.sync_api import expect

from access.models import StaffUser
from access.staff.oidc import discovery, flow, tokens
from access.staff.oidc.errors import Refusal, RefusedError
from access.staff.reauthentication import SESSION_KEY
from console.staff.oidc import SESSION_KEY as ATTEMPTS
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.browser.screen import PASSWORD, Screen
from tests.support.clients.console import register_ada
from tests.support.waiting import until

FOLDER = Path(__file__).parents[1] / "oidc_provider"
SECRET = "a secret: with/signs% of the real provider"
LIST = "/admin/notifications/notification/"
ADA = "/admin/recipients/recipient/ada/change/"


@dataclass(frozen=True, kw_only=True)
class RealProvider:
    process: subprocess.Popen[str]
    issuer: str

    def control(self, **change: Any) -> None:
        """Change a person (``person``, ``fields``), revoke all grants, or be down."""
        body = json.dumps(change)
        answer = urllib3.request("POST", f"{self.issuer}/control", body=body, retries=False)
        assert answer.status == 200

    def store(self, name: str, *groups: str, **fields: Any) -> None:
        claims = {"preferred_username": name, "given_name": "Rita", "groups": groups}
        claims |= {"email": f"{name}@example.com"}
        self.control(person=name, fields={"claims": claims, **fields})


@pytest.fixture(scope="module")
def process(live_server: Any) -> Iterator[RealProvider]:
    paths = ("/admin/oidc/callback/", "/admin/oidc/back-channel-logout/")
    program = subprocess.Popen(
        ["node", "server.js", *(f"{live_server.url}{path}" for path in paths)],
        cwd=FOLDER,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    port = int(program.stdout.readline())
    yield RealProvider(process=program, issuer=f"http://127.0.0.1:{port}")
    program.terminate()
    program.wait()
    program.stdout.close()


@pytest.fixture
def provider(process: RealProvider, screen: Screen, settings: Any) -> RealProvider:
    """Return the provider, set up in the console, with an operator of its own."""
    settings.PUBLIC_URL = screen.url
    settings.OIDC_ISSUER = process.issuer
    settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = "console", SECRET
    settings.OIDC_GROUP_ROLES = {"ops": "admin", "readers": "viewer"}
    settings.OIDC_NAME = "Example ID"
    discovery._provider.cache_clear()
    call_command("create_roles", verbosity=0)
    process.control(down=False)
    process.store("rita", "ops", amr=["pwd"])
    return process


def sign_in(screen: Screen, name: str = "rita", *, path: str = LIST) -> None:
    """Sign in at the provider by its form, from the sign-in page."""
    page = screen.page
    screen.open(f"/admin/login/?next={path}")
    page.get_by_role("link", name="Continue with Example ID").click()
    if "/interaction/" in page.url:
        page.get_by_label("Name").fill(name)
        page.get_by_role("button", name="Sign in").click()


def refused(screen: Screen, code: str) -> None:
    """Check that the page refuses the sign-in for a reason."""
    expect(screen.page.get_by_role("heading", name="Sign-in refused")).to_be_visible()
    expect(screen.page.get_by_text(code, exact=True)).to_be_visible()
    # The browser reports the status of the page itself.
    screen.problems.clear()


def ended(screen: Screen) -> bool:
    """Open the list, and return whether the console ended the session."""
    screen.page.goto(f"{screen.url}{LIST}")
    return bool(screen.page.get_by_role("heading", name="Your session ended").count())


def report(what: str, since: datetime) -> None:
    print(f"\n{what}: {(utc_now() - since).total_seconds():.2f} s", end="")


def test_person_signs_in_with_a_role(screen: Screen, provider: RealProvider) -> None:
    began = utc_now()
    sign_in(screen)
    screen.page.wait_for_url(f"{screen.url}{LIST}")
    report("sign-in in the browser", began)
    user = StaffUser.objects.get(username="rita")
    assert [group.name for group in user.groups.all()] == ["admin"]
    stored = collection("oidc_sessions").find_one() or {}
    assert {"refresh_token", "provider_session"} <= stored.keys()


def test_person_without_a_group_is_refused(screen: Screen, provider: RealProvider) -> None:
    provider.store("otto", "football")
    sign_in(screen, "otto")
    refused(screen, "no_group")
    assert not StaffUser.objects.filter(username="otto").exists()


def test_person_whom_the_provider_refuses_is_refused(
    screen: Screen, provider: RealProvider
) -> None:
    sign_in(screen, "nobody")
    refused(screen, "denied")


def test_callback_is_used_once(screen: Screen, provider: RealProvider) -> None:
    seen: list[str] = []
    screen.page.on("request", lambda item: seen.append(item.url))
    sign_in(screen)
    screen.page.wait_for_url(f"{screen.url}{LIST}")
    (callback,) = [url for url in seen if "/oidc/callback/" in url]
    screen.page.goto(callback)
    refused(screen, "state")


def replace_attempt(**fields: str) -> None:
    """Change what the browser's session stores about the sign-in that it began."""
    session = SessionStore(Session.objects.get().session_key)
    session[ATTEMPTS] = [{**session[ATTEMPTS][-1], **fields}]
    session.save()


@pytest.mark.parametrize(
    ("fields", "code"), [({"nonce": "other"}, "nonce"), ({"verifier": "v" * 43}, "code")]
)
def test_changed_nonce_or_verifier_is_refused(
    screen: Screen, provider: RealProvider, fields: dict[str, str], code: str
) -> None:
    screen.open("/admin/login/")
    screen.page.get_by_role("link", name="Continue with Example ID").click()
    replace_attempt(**fields)
    screen.page.get_by_label("Name").fill("rita")
    screen.page.get_by_role("button", name="Sign in").click()
    refused(screen, code)


def test_other_issuer_is_refused(screen: Screen, provider: RealProvider, settings: Any) -> None:
    settings.OIDC_ISSUER = f"{provider.issuer}/"
    sign_in(screen)
    refused(screen, "issuer")


def reason(check: Callable[[], object]) -> Refusal | None:
    """Return why a check refuses; None if it doesn't."""
    try:
        check()
    except RefusedError as error:
        return error.reason
    return None


def test_replayed_code_and_tokens_that_expired_or_are_for_another_client_are_refused(
    screen: Screen, provider: RealProvider, settings: Any
) -> None:
    settings.OIDC_CLIENT_ID = "expiring"
    redeemed: list[tuple[Any, ...]] = []
    redeem = flow.redeem_code

    def note(code: str, attempt: flow.SignInAttempt, **options: Any) -> flow.Tokens:
        issued = redeem(code, attempt, **options)
        redeemed.append((code, attempt, options, issued))
        return issued

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow, "redeem_code", note)
        sign_in(screen)
        screen.page.wait_for_url(f"{screen.url}{LIST}")
    ((code, attempt, options, issued),) = redeemed
    source = discovery.provider()
    assert reason(lambda: redeem(code, attempt, **options)) is Refusal.CODE

    def verify() -> object:
        return tokens.verify_id_token(issued.id_token, provider=source, nonce=attempt.nonce)

    assert reason(verify) is None
    settings.OIDC_CLIENT_ID = "userinfo"
    assert reason(verify) is Refusal.AUDIENCE
    settings.OIDC_CLIENT_ID = "expiring"
    issued_at = utc_now()
    until(lambda: reason(verify) is Refusal.EXPIRED)
    report("token of 1 s until it is refused", issued_at)


def test_second_factor_of_the_provider_counts(
    screen: Screen, provider: RealProvider, settings: Any
) -> None:
    settings.ADMIN_REQUIRE_OTP = True
    sign_in(screen)
    heading = screen.page.get_by_role("heading", name="Set up two-factor authentication")
    expect(heading).to_be_visible()
    for fields in ({"amr": ["pwd", "mfa"]}, {"amr": ["pwd"], "acr": "gold"}):
        settings.OIDC_ACR_VALUES = ("gold",)
        screen.page.context.clear_cookies()
        provider.store("rita", "ops", **fields)
        sign_in(screen)
        screen.page.wait_for_url(f"{screen.url}{LIST}")


def test_emergency_access_works_while_the_provider_is_down(
    screen: Screen, provider: RealProvider, settings: Any
) -> None:
    settings.ADMIN_REQUIRE_OTP = True
    provider.control(down=True)
    began = utc_now()
    sign_in(screen)
    expect(screen.page.get_by_text("The sign-in provider is unavailable.")).to_be_visible()
    report("sign-in page during an outage", began)
    screen.problems.clear()
    screen.page.get_by_label("Username").fill("maria")
    screen.page.get_by_label("Password", exact=False).last.fill(PASSWORD)
    screen.page.get_by_role("button", name="Log in").click()
    screen.page.get_by_text("No camera?").click()
    key = screen.page.locator("details code").text_content() or ""
    screen.page.get_by_label("Code").fill(pyotp.TOTP(key.replace(" ", "")).now())
    screen.page.get_by_role("button", name="Turn on").click()
    screen.page.get_by_role("link", name="I saved these codes").click()
    screen.page.wait_for_url(f"{screen.url}{LIST}")


def removed_group(provider: RealProvider) -> None:
    provider.store("rita", "football")


def revoked_grant(provider: RealProvider) -> None:
    provider.control(revoke=True)


@pytest.mark.parametrize(
    ("client", "change"),
    [("console", removed_group), ("userinfo", removed_group), ("console", revoked_grant)],
)
def test_session_ends_within_a_minute(
    screen: Screen,
    provider: RealProvider,
    settings: Any,
    client: str,
    change: Callable[[RealProvider], None],
) -> None:
    settings.OIDC_CLIENT_ID = client
    sign_in(screen)
    screen.page.wait_for_url(f"{screen.url}{LIST}")
    change(provider)
    changed = utc_now()
    until(lambda: ended(screen), otherwise="the session outlived a minute")
    report(f"session after {change.__name__} ({client})", changed)
    screen.problems.clear()


def test_lower_group_lowers_the_role(screen: Screen, provider: RealProvider) -> None:
    sign_in(screen)
    screen.page.wait_for_url(f"{screen.url}{LIST}")
    provider.store("rita", "readers")
    for _ in range(2):
        # Twice, because the provider replaces the refresh token at each use.
        before = collection("oidc_sessions").find_one() or {}
        collection("oidc_sessions").update_one({}, {"$set": {"check_at": before["checked_at"]}})
        began = utc_now()
        screen.open(LIST)
        report("page with a check of the groups", began)
        after = collection("oidc_sessions").find_one() or {}
        assert after["refresh_token"] != before["refresh_token"]
    user = StaffUser.objects.get(username="rita")
    assert [group.name for group in user.groups.all()] == ["viewer"]


def test_logout_at_the_provider_ends_the_session(screen: Screen, provider: RealProvider) -> None:
    sign_in(screen)
    screen.page.wait_for_url(f"{screen.url}{LIST}")
    other = screen.page.context.new_page()
    other.goto(f"{provider.issuer}/session/end")
    began = utc_now()
    other.get_by_role("button", name="Yes").click()
    until(lambda: collection("oidc_sessions").count_documents({}) == 0)
    report("back-channel logout", began)
    other.close()
    assert ended(screen)
    screen.problems.clear()


def test_sensitive_action_asks_for_the_credentials_again(
    screen: Screen, provider: RealProvider
) -> None:
    page = screen.page
    register_ada()
    sign_in(screen, path=ADA)
    page.wait_for_url(f"{screen.url}{ADA}")
    for row in Session.objects.all():
        session = SessionStore(row.session_key)
        if SESSION_KEY in session:
            session[SESSION_KEY] -= 3_600
            session.save()
    page.get_by_label("User ID").last.fill("ada")
    page.get_by_role("button", name="Erase").last.click()
    expect(page.get_by_role("heading", name="Confirm your identity")).to_be_visible()
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("Not confirmed yet")).to_be_visible()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Sign in again with Example ID").click()
    tab = opened.value
    tab.get_by_label("Name").fill("rita")
    tab.get_by_role("button", name="Sign in").click()
    expect(tab.get_by_role("heading", name="Identity confirmed")).to_be_visible()
    tab.close()
    page.get_by_role("button", name="Continue").click()
    until(lambda: collection("recipients").count_documents({"_id": "ada"}) == 0)
