"""Sign-in by an OpenID provider: refused tokens, roles, second factor, and the session's end."""

import time
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.test import Client, override_settings

from access.checks import check_oidc
from access.models import StaffUser
from access.staff import idle_limit, lockout
from access.staff.lockout import LIMITS
from access.staff.oidc import discovery, http
from access.staff.oidc.http import TOTAL_TIMEOUT
from access.staff.oidc.sessions import CHECK_INTERVAL, MAX_UNCONFIRMED
from access.staff.reauthentication import SESSION_KEY
from console.staff.oidc import ATTEMPT_LIFETIME
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff, signed_in
from tests.support.fakes import oidc_provider
from tests.support.fakes.oidc_provider import CLIENT, SECRET, Provider, callback_path
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

pytestmark = pytest.mark.usefixtures("db", "broker")

HOME = "/admin/"
LIST = "/admin/notifications/notification/"
START = f"/admin/oidc/sign-in/?next={LIST}"
LOGOUT = "/admin/oidc/back-channel-logout/"
PASSWORD = "s3cret-enough"


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with oidc_provider.serving() as provider:
        yield provider


@pytest.fixture
def provider(server: Provider, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Provider:
    """Return the usual provider, which is set up in the console with two groups."""
    monkeypatch.setattr(http, "TOTAL_TIMEOUT", LIMIT)
    fresh = Provider(issuer=server.issuer, key=server.key)
    for name in fresh.__dataclass_fields__:
        setattr(server, name, getattr(fresh, name))
    settings.OIDC_ISSUER = server.issuer
    settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = CLIENT, SECRET
    settings.OIDC_GROUP_ROLES = {"staff-operators": "operator", "staff-viewers": "viewer"}
    discovery._provider.cache_clear()
    granted = Permission.objects.filter(
        codename__in=["view_notification", "view_recipient", "reveal_addresses"]
    )
    for name in ("operator", "viewer"):
        Group.objects.create(name=name).permissions.add(*granted)
    return server


def begin(browser: Client, provider: Provider, start: str = START) -> dict[str, str]:
    """Sign in at the provider, and return the parameters of the callback."""
    sent = browser.get(start)
    assert sent.status_code == 302, sent.content
    return provider.authorize(sent["Location"])


def sign_in(provider: Provider) -> Client:
    browser = Client()
    answer = browser.get(callback_path(begin(browser, provider)))
    assert (answer.status_code, answer["Location"]) == (302, LIST)
    return browser


def refusal(browser: Client, parameters: dict[str, str]) -> str:
    """Return the code of the page that refuses a callback, which signs nobody in."""
    answer = browser.get(callback_path(parameters))
    assert answer.status_code == 403
    assert "_auth_user_id" not in browser.session
    assert answer.context["explanation"] in unescape(answer.content.decode())
    return str(answer.context["code"])


def audited() -> list[str]:
    return [entry.change_message for entry in LogEntry.objects.order_by("pk")]


def let_pass(time: timedelta) -> None:
    """Make every session older by a duration, as if the time had passed."""
    for stored in collection("oidc_sessions").find():
        moved = {name: stored[name] - time for name in ("check_at", "checked_at")}
        collection("oidc_sessions").update_one({"_id": stored["_id"]}, {"$set": moved})


def rita() -> StaffUser:
    return StaffUser.objects.get(username="rita")


def roles() -> list[str]:
    return sorted(group.name for group in rita().groups.all())


def test_a_sign_in_that_is_only_begun_leaves_nothing(provider: Provider) -> None:
    sessions = collection("django_session")
    browsers = [Client() for _ in range(3)]
    for browser in browsers:
        begin(browser, provider)
    first = browsers[0]
    assert first.get("/admin/login/").status_code == 200
    later = utc_now() + ATTEMPT_LIFETIME + timedelta(minutes=1)
    assert sessions.count_documents({"expire_date": {"$lt": later}}) == 3
    assert idle_limit.remove_expired(now=utc_now()) == 0
    browser = sign_in(provider)
    assert browser.get(LIST).status_code == 200
    assert idle_limit.remove_expired(now=later) == 3
    assert sessions.count_documents({}) == 1, "who signed in has the usual 8 hours"


def test_person_signs_in_with_the_roles_of_their_groups(provider: Provider) -> None:
    provider.groups = ["staff-operators", "staff-viewers", "football"]
    browser = sign_in(provider)
    assert browser.get(LIST).status_code == 200
    user = rita()
    assert (user.first_name, user.email, user.is_superuser) == ("Rita", "rita@example.com", False)
    assert not user.has_usable_password()
    assert roles() == ["operator", "viewer"]
    assert "Signed in by the provider. Roles: operator, viewer." in audited()[0]
    stored = collection("oidc_sessions").find_one() or {}
    assert "access" not in stored["access_token"], "tokens are encrypted"


def test_roles_are_set_anew_at_each_sign_in(provider: Provider) -> None:
    sign_in(provider)
    user = rita()
    user.is_superuser = True
    user.save()
    provider.groups = ["staff-viewers"]
    sign_in(provider)
    assert (roles(), rita().is_superuser, rita().pk) == (["viewer"], False, user.pk)


def test_account_of_the_same_name_is_not_taken_over(provider: Provider) -> None:
    local = make_staff("rita", superuser=True)
    sign_in(provider)
    assert StaffUser.objects.get(username="rita-2").pk != local.pk
    assert list(local.groups.all()) == []


WRONG_TOKENS: list[tuple[str, dict[str, Any]]] = [
    ("issuer", {"iss": "https://other.example"}),
    ("audience", {"aud": "other"}),
    ("audience", {"aud": [CLIENT, "other"]}),
    ("audience", {"azp": "other"}),
    ("nonce", {"nonce": "other"}),
    ("nonce", {"nonce": None}),
    ("expired", {"exp": int(time.time()) - 60}),
    ("malformed", {"sub": ""}),
]


@each_case("reason, claims", WRONG_TOKENS)
def test_wrong_claim_is_refused(provider: Provider, reason: str, claims: dict[str, Any]) -> None:
    provider.id_claims = claims
    browser = Client()
    assert refusal(browser, begin(browser, provider)) == reason
    assert not StaffUser.objects.exists()


def test_token_without_a_valid_signature_is_refused(provider: Provider) -> None:
    browser = Client()
    provider.signing_key = generate_private_key(SECP256R1())
    assert refusal(browser, begin(browser, provider)) == "signature"
    provider.algorithm = "none"
    assert refusal(browser, begin(browser, provider)) == "signature"
    # The secret that both know signs nothing.
    provider.algorithm, provider.signing_key = "HS256", SECRET * 2
    assert refusal(browser, begin(browser, provider)) == "signature"


def test_callback_is_accepted_once_and_in_its_own_browser(provider: Provider) -> None:
    browser = Client()
    parameters = begin(browser, provider)
    assert refusal(Client(), parameters) == "state"
    stateless = {name: value for name, value in parameters.items() if name != "state"}
    assert refusal(browser, stateless) == "state"
    assert browser.get(callback_path(parameters)).status_code == 302
    replayed = browser.get(callback_path(parameters))
    assert (replayed.status_code, replayed.context["code"]) == (403, "state")


def test_replayed_code_is_refused_by_the_provider(provider: Provider) -> None:
    code = begin(first := Client(), provider)["code"]
    assert first.get(callback_path({**begin(first, provider), "code": code})).status_code == 403
    browser = Client()
    used = begin(browser, provider)
    browser.get(callback_path(used))
    again = Client()
    assert refusal(again, {**begin(again, provider), "code": used["code"]}) == "code"


def test_response_of_another_issuer_and_an_error_are_refused(provider: Provider) -> None:
    browser = Client()
    assert refusal(browser, {**begin(browser, provider), "iss": "https://evil"}) == "issuer"
    state = begin(browser, provider)["state"]
    assert refusal(browser, {"state": state, "error": "access_denied"}) == "denied"


def test_metadata_of_another_issuer_is_refused(provider: Provider) -> None:
    provider.metadata = {"issuer": "https://other.example"}
    answer = Client().get(START)
    assert (answer.status_code, answer.context["code"]) == (403, "issuer")


def test_refused_sign_ins_lock_the_address_out(provider: Provider) -> None:
    provider.groups = []
    for _ in range(LIMITS["address"]):
        browser = Client()
        refusal(browser, begin(browser, provider))
    browser = Client()
    assert browser.get(START).status_code == 429
    assert browser.get(callback_path({"state": "s", "code": "c"})).status_code == 429
    form = {"username": "rita", "password": PASSWORD}
    assert browser.post("/admin/login/", form).status_code == 429, "as by password"
    elsewhere = Client(REMOTE_ADDR="198.51.100.7")
    assert elsewhere.get(START).status_code == 302


def test_begun_sign_ins_are_limited_and_another_site_uses_up_none(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lockout, "MAX_BEGUN", 2)
    for _ in range(LIMITS["address"] + 1):
        # What an image on a page of another site sends.
        assert Client().get(START, headers={"Sec-Fetch-Dest": "image"}).status_code == 404
        assert refusal(Client(), {"state": "forged", "code": "c"}) == "state"
    answers = [Client().get(START) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [302, 302, 429]
    assert answers[-1]["Retry-After"] == "900"


def test_person_without_a_mapped_group_is_refused(provider: Provider) -> None:
    provider.groups = ["football"]
    browser = Client()
    assert refusal(browser, begin(browser, provider)) == "no_group"
    assert audited() == ["Sign-in by the provider refused: no_group."]
    assert not StaffUser.objects.exists()


def test_deactivated_account_is_refused(provider: Provider) -> None:
    sign_in(provider)
    StaffUser.objects.update(is_active=False)
    browser = Client()
    assert refusal(browser, begin(browser, provider)) == "inactive"


def test_provider_that_cannot_confirm_groups_later_is_refused(provider: Provider) -> None:
    provider.has_refresh, provider.groups_in = False, frozenset({"id_token"})
    browser = Client()
    assert refusal(browser, begin(browser, provider)) == "uncheckable"


def test_second_factor_of_the_provider_replaces_the_own(provider: Provider, settings: Any) -> None:
    settings.ADMIN_REQUIRE_OTP = True
    asked = sign_in(provider).get(LIST)
    assert asked["Location"].startswith("/admin/second-factor/set-up/")
    provider.id_claims = {"amr": ["pwd"], "acr": "gold"}
    assert sign_in(provider).get(LIST).status_code == 302
    provider.id_claims = {"amr": ["pwd", "otp", "mfa"]}
    assert sign_in(provider).get(LIST).status_code == 200
    provider.id_claims = {"acr": "gold"}
    settings.OIDC_ACR_VALUES = ("gold",)
    assert sign_in(provider).get(LIST).status_code == 200


@pytest.mark.parametrize("has_refresh", [True, False])
def test_removed_group_ends_the_session(provider: Provider, has_refresh: bool) -> None:
    assert CHECK_INTERVAL + timedelta(seconds=4 * TOTAL_TIMEOUT) < timedelta(minutes=1)
    provider.has_refresh = has_refresh
    browser = sign_in(provider)
    provider.groups = ["staff-viewers"]
    let_pass(CHECK_INTERVAL)
    assert browser.get(LIST).status_code == 200
    assert roles() == ["viewer"], "a lower role applies at once"
    provider.groups = ["football"]
    assert browser.get(LIST).status_code == 200, "groups are asked for once an interval"
    let_pass(CHECK_INTERVAL)
    assert browser.get("/admin/jsi18n/").status_code == 200
    ended = browser.get(LIST)
    assert ended.status_code == 403
    assert "None of your groups" in ended.content.decode()
    assert browser.get(LIST)["Location"].startswith("/admin/login/")
    assert audited()[-1] == "Session ended: no_group."


def reauthenticated(browser: Client, provider: Provider) -> Any:
    provider.id_claims = {**provider.id_claims, "auth_time": int(time.time())}
    return browser.get(callback_path(begin(browser, provider, "/admin/oidc/reauthenticate/")))


@pytest.mark.parametrize("groups_in", [{"id_token", "userinfo"}, {"userinfo"}])
@pytest.mark.parametrize("has_refresh", [True, False])
def test_reauthentication_finds_the_groups_again(
    provider: Provider, groups_in: set[str], has_refresh: bool
) -> None:
    provider.groups_in, provider.has_refresh = frozenset(groups_in), has_refresh
    provider.groups = ["staff-operators"]
    browser = sign_in(provider)
    provider.groups = ["staff-viewers"]
    assert reauthenticated(browser, provider).status_code == 200
    assert roles() == ["viewer"], "the lower role applies before the sensitive action"
    provider.groups = []
    ended = reauthenticated(browser, provider)
    assert (ended.status_code, "None of your groups" in ended.content.decode()) == (403, True)
    assert browser.get(LIST)["Location"].startswith("/admin/login/")
    assert audited()[-1] == "Session ended: no_group."


def test_refused_reauthentications_do_not_put_off_the_check_of_groups(provider: Provider) -> None:
    browser = sign_in(provider)
    let_pass(CHECK_INTERVAL - timedelta(seconds=1))
    provider.id_claims = {"auth_time": int(time.time()) - 120}
    parameters = begin(browser, provider, "/admin/oidc/reauthenticate/")
    assert browser.get(callback_path(parameters)).context["code"] == "auth_time"
    provider.groups = []
    let_pass(timedelta(seconds=1))
    assert browser.get(LIST).status_code == 403


def test_reauthentication_does_not_undo_the_end_of_a_session(provider: Provider) -> None:
    browser = sign_in(provider)
    provider.id_claims = {"auth_time": int(time.time())}
    parameters = begin(browser, provider, "/admin/oidc/reauthenticate/")
    token = provider.logout_token()
    assert Client().post(LOGOUT, {"logout_token": token}).status_code == 200
    assert browser.get(callback_path(parameters)).status_code == 403
    assert browser.get(LIST)["Location"].startswith("/admin/login/")
    assert collection("oidc_sessions").count_documents({}) == 0


def test_reauthentication_without_the_groups_endpoint_confirms_nobody(provider: Provider) -> None:
    provider.groups_in = frozenset({"userinfo"})
    browser = sign_in(provider)
    provider.is_userinfo_broken = True
    assert reauthenticated(browser, provider).status_code == 503
    assert SESSION_KEY not in browser.session


def test_session_ends_with_the_grant(provider: Provider) -> None:
    browser = sign_in(provider)
    provider.is_revoked = True
    let_pass(CHECK_INTERVAL)
    answer = browser.get(LIST, headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Refresh"]) == (403, "true")


def test_unavailable_provider_ends_a_session_after_a_while(provider: Provider) -> None:
    browser = sign_in(provider)
    provider.is_broken = True
    let_pass(CHECK_INTERVAL)
    assert browser.get(LIST).status_code == 200
    let_pass(MAX_UNCONFIRMED)
    assert browser.get(LIST).status_code == 403


@pytest.mark.parametrize("breaks", [{"is_broken": True}, {"padding": 300_000}])
def test_without_the_provider_a_superuser_signs_in_with_a_password(
    provider: Provider, breaks: dict[str, Any]
) -> None:
    make_staff("maria", superuser=True)
    make_staff("ana")
    for name, value in breaks.items():
        setattr(provider, name, value)
    browser = Client()
    page = browser.get(START)
    assert page.status_code == 503
    assert "The sign-in provider is unavailable." in page.content.decode()
    path = page.context["app_path"]
    refused = browser.post(path, {"username": "ana", "password": PASSWORD})
    assert "Only superusers sign in with a password" in refused.content.decode()
    answer = browser.post(path, {"username": "maria", "password": PASSWORD})
    assert (answer.status_code, answer["Location"]) == (302, LIST)
    assert browser.get(LIST).status_code == 200


def test_local_session_of_no_superuser_ends(provider: Provider) -> None:
    assert signed_in(make_staff("ana")).get(HOME).status_code == 403


def test_sensitive_action_needs_a_new_authentication(provider: Provider) -> None:
    provider.groups, provider.id_claims = ["staff-operators"], {"auth_time": int(time.time())}
    browser = sign_in(provider)
    session = browser.session
    session[SESSION_KEY] -= 3_600
    session.save()
    reveal = "/admin/recipients/recipient/ada/reveal/"
    asked = browser.post(reveal).content.decode()
    assert "Sign in again with single sign-on" in asked
    assert 'name="reauthentication"' not in asked, "there is no password to ask for"
    back = {"reauthentication_back": HOME}
    assert "Not confirmed yet" in browser.post(reveal, back).content.decode()

    sent = browser.get("/admin/oidc/reauthenticate/")["Location"]
    assert "prompt=login&max_age=0" in sent
    for old in ({"auth_time": int(time.time()) - 120}, {"auth_time": None}):
        provider.id_claims = old
        parameters = begin(browser, provider, "/admin/oidc/reauthenticate/")
        assert browser.get(callback_path(parameters)).context["code"] == "auth_time"
    provider.id_claims, provider.subject = {"auth_time": int(time.time())}, "p-2"
    parameters = begin(browser, provider, "/admin/oidc/reauthenticate/")
    assert browser.get(callback_path(parameters)).context["code"] == "subject"
    assert "Sign in again with" in browser.post(reveal).content.decode()

    provider.is_broken = True
    discovery._provider.cache_clear()
    down = browser.get("/admin/oidc/reauthenticate/")
    assert (down.status_code, down.context["code"]) == (503, "unavailable")
    provider.is_broken = False
    discovery._provider.cache_clear()

    provider.subject = "p-1"
    parameters = begin(browser, provider, "/admin/oidc/reauthenticate/")
    assert "Identity confirmed" in browser.get(callback_path(parameters)).content.decode()
    assert "Re-authenticated by the provider." in audited()
    assert "Sign in again with" not in browser.post(reveal).content.decode()


def test_sign_in_without_a_time_counts_as_no_authentication(provider: Provider) -> None:
    assert SESSION_KEY not in sign_in(provider).session


@pytest.mark.parametrize("named", [{}, {"sid": "s-1"}, {"sid": "s-1", "sub": None}])
def test_logout_at_the_provider_ends_the_sessions_at_once(
    provider: Provider, named: dict[str, Any]
) -> None:
    browsers = [sign_in(provider), sign_in(provider)]
    token = provider.logout_token(**named)
    assert Client().post(LOGOUT, {"logout_token": token}).status_code == 200
    for browser in browsers:
        assert browser.get(LIST).status_code == 403
    assert audited()[-1] == "Signed out by the provider."
    again = sign_in(provider)
    assert Client().post(LOGOUT, {"logout_token": token}).status_code == 400
    assert again.get(LIST).status_code == 200, "a token is accepted once"


@pytest.mark.parametrize("path", ["/admin/logout/", LIST])
def test_form_sent_after_the_provider_ended_the_session_is_said_to_be_lost(
    provider: Provider, path: str
) -> None:
    browser = sign_in(provider)
    assert Client().post(LOGOUT, {"logout_token": provider.logout_token()}).status_code == 200
    page = browser.post(path, {"name": "Typed for an hour"})
    assert (page.status_code, page.context["title"]) == (403, "Your session ended")
    assert ("Nothing was saved." in page.content.decode()) is (path == LIST)


def test_forged_logout_token_is_refused(provider: Provider) -> None:
    browser = sign_in(provider)
    old = int(time.time()) - 600
    forged = [
        provider.logout_token(iss="https://other.example"),
        provider.logout_token(aud="other"),
        provider.logout_token(events={}),
        provider.logout_token(nonce="n"),
        provider.logout_token(iat=old),
        provider.logout_token(exp=old),
        provider.logout_token(sub=None),
        provider.sign({"sub": provider.subject}),
        jwt.encode({"sub": "p-1"}, "x" * 32, algorithm="HS256"),
        "",
        "a.b.c",
    ]
    provider.signing_key = generate_private_key(SECP256R1())
    forged.append(provider.logout_token())
    provider.algorithm = "none"
    forged.append(provider.logout_token())
    for token in forged:
        answer = Client().post(LOGOUT, {"logout_token": token})
        assert (answer.status_code, answer.json()) == (400, {"error": "invalid_request"})
    assert Client().post(LOGOUT, {"logout_token": provider.logout_token(sub="p-2")}).status_code
    assert browser.get(LIST).status_code == 200


def test_logout_in_the_console_forgets_the_tokens(provider: Provider) -> None:
    browser = sign_in(provider)
    browser.post("/admin/logout/")
    assert collection("oidc_sessions").count_documents({}) == 0


def test_without_settings_there_is_no_such_sign_in() -> None:
    assert Client().get(START).status_code == 404
    assert Client().post(LOGOUT).status_code == 404
    assert "single sign-on" not in Client().get("/admin/login/").content.decode()


HALF_CONFIGURED: list[tuple[str, dict[str, Any]]] = [
    ("access.E004", {"OIDC_CLIENT_SECRET": ""}),
    ("access.E004", {"OIDC_GROUP_ROLES": {}}),
    ("access.E005", {"OIDC_ISSUER": ""}),
    ("access.E006", {"OIDC_GROUP_ROLES": {"staff": "boss"}}),
    ("access.E007", {"OIDC_ISSUER": "http://id.example.com"}),
    ("access.E008", {"OIDC_SCOPES": ("profile",)}),
]


@each_case("code, changes", HALF_CONFIGURED)
def test_half_configured_settings_are_reported(
    provider: Provider, code: str, changes: dict[str, Any]
) -> None:
    assert check_oidc() == []
    with override_settings(**changes):
        assert [problem.id for problem in check_oidc()] == [code]
