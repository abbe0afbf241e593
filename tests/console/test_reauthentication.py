"""Re-authentication: sensitive actions need a password or code of the last 10 minutes."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import quote

import pyotp
import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client
from django.urls import reverse

from access.models import StaffUser
from access.staff import second_factor
from access.staff.lockout import LIMITS
from access.staff.reauthentication import SESSION_KEY, WINDOW
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.support import console_urls
from tests.support.clients.console import make_staff, register_ada, signed_in
from tests.support.console_urls import CHANGES, FORMS, READS, REAUTHENTICATED
from tests.support.factories.one_of_each import store_one_of_each
from tests.support.samples import sampled

pytestmark = pytest.mark.usefixtures("db", "broker")

PASSWORD = "s3cret-enough"
ADA = "/admin/recipients/recipient/ada/"
ASKED = 'name="reauthentication"'
PASSWORD_FORM = "auth_user_password_change"
MODEL_FORMS = ("_add", "_change", "_delete")
OPEN_PAGES = frozenset({"login", "logout", "jsi18n", "autocomplete", "view_on_site", "app_list"})
"""Pages for everybody, pages that need an argument of their own, and the end of the session."""


@pytest.fixture
def ana() -> StaffUser:
    """Return staff with every permission, but masked addresses, because only these are revealed."""
    user = make_staff("ana")
    user.user_permissions.set(Permission.objects.exclude(codename="view_addresses"))
    return user


@pytest.fixture
def console(ana: StaffUser) -> Client:
    client = signed_in(ana)
    let_pass(client, WINDOW)
    return client


def let_pass(client: Client, time: timedelta) -> None:
    """Make the last password or code older by a duration, as if the time had passed."""
    session = client.session
    session[SESSION_KEY] -= time.total_seconds()
    session.save()


def posted() -> dict[str, str]:
    """Return the path of each URL of the console by its name. Those of a model have its object."""
    paths = {
        name: reverse(f"admin:{name}", kwargs=console_urls.arguments(name))
        for name in {*READS, *CHANGES, *FORMS} - OPEN_PAGES
    }
    for model in admin.site._registry:
        prefix = f"{model._meta.app_label}_{model._meta.model_name}"
        row = model.objects.first()
        for page in MODEL_FORMS:
            arguments = () if page == "_add" else (row.pk if row else console_urls.NOBODY,)
            paths[f"{prefix}{page}"] = reverse(f"admin:{prefix}{page}", args=arguments)
        if row is not None:
            for name, path in paths.items():
                if name.startswith(f"{prefix}_"):
                    paths[name] = path.replace(console_urls.NOBODY, quote(str(row.pk)))
    account = StaffUser.objects.get()
    paths[PASSWORD_FORM] = reverse(f"admin:{PASSWORD_FORM}", args=[account.pk])
    return paths


def test_only_the_sensitive_actions_ask_and_change_nothing_before(console: Client) -> None:
    store_one_of_each(now=utc_now())
    Group.objects.create(name="Helpers")
    asked = set()
    paths = posted()
    others = sampled(sorted(paths.keys() - REAUTHENTICATED), each=4)
    for name in [*sorted(REAUTHENTICATED), *others]:
        before = stored()
        if ASKED in b"".join(console.post(paths[name])).decode():
            asked.add(name)
            assert stored() == before, name
    assert asked == REAUTHENTICATED


def stored() -> dict[str, list[object]]:
    names = ("api_clients", "recipients", "notifications", "staff_users", "auth_group")
    logged = list(LogEntry.objects.values_list("pk"))
    return {"log": logged, **{name: list(collection(name).find()) for name in names}}


def test_right_password_runs_the_action_with_its_fields(console: Client) -> None:
    register_ada()
    page = console.post(f"{ADA}erase/", {"typed": "ada"}, headers={"Referer": ADA_PAGE})
    fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', text(page)))
    assert fields["typed"] == "ada"
    assert f'href="{ADA_PAGE}"' in text(page), "Cancel leads to where one came from"
    done = console.post(f"{ADA}erase/", {**fields, "reauthentication": PASSWORD})
    assert done.status_code == 302
    assert collection("recipients").count_documents({"_id": "ada"}) == 0
    messages = list(LogEntry.objects.values_list("change_message", flat=True))
    assert "Re-authenticated." in messages
    assert any(message.startswith("Erased") for message in messages)


ADA_PAGE = f"http://testserver{ADA}change/"


def text(response: Any) -> str:
    return unescape(response.content.decode())


def test_download_starts_from_the_page_that_led_here(console: Client) -> None:
    register_ada()
    fields = {"typed": "ada", "reauthentication_back": ADA_PAGE, "reauthentication": PASSWORD}
    back = console.post(f"{ADA}export/", fields)
    assert back["Location"] == ADA_PAGE
    assert "Start the download again." in text(console.get(f"{ADA}change/"))
    export = console.post(f"{ADA}export/", {"typed": "ada"})
    assert export["Content-Type"] == "application/json"


def test_password_is_valid_for_10_minutes(console: Client) -> None:
    register_ada()
    assert ASKED in text(console.post(f"{ADA}reveal/"))
    assert "ada@example.com" not in text(console.post(f"{ADA}reveal/", {"reauthentication": "x"}))
    console.post(f"{ADA}reveal/", {"reauthentication": PASSWORD})
    let_pass(console, WINDOW - timedelta(minutes=1))
    assert ASKED not in text(console.post(f"{ADA}reveal/"))
    let_pass(console, timedelta(minutes=1))
    assert ASKED in text(console.post(f"{ADA}reveal/"))


def test_sign_in_counts_as_authentication(ana: StaffUser) -> None:
    register_ada()
    client = Client()
    client.post("/admin/login/", {"username": "ana", "password": PASSWORD})
    assert ASKED not in text(client.post(f"{ADA}reveal/"))


def test_code_of_the_authenticator_app_is_accepted(ana: StaffUser) -> None:
    register_ada()
    early = utc_now() - timedelta(days=1)
    app = pyotp.TOTP(second_factor.begin_enrollment(ana.pk, name="ana", now=early).key)
    second_factor.confirm(ana.pk, app.at(early), now=early)
    client = signed_in(ana)
    client.post(
        "/admin/second-factor/", {"code": app.at(datetime.now(UTC) - timedelta(seconds=30))}
    )
    let_pass(client, WINDOW)
    assert "code from your authenticator app" in text(client.post(f"{ADA}reveal/"))
    wrong = client.post(f"{ADA}reveal/", {"reauthentication": "000000"})
    assert "Wrong password, or wrong or used code." in text(wrong)
    assert ASKED not in text(client.post(f"{ADA}reveal/", {"reauthentication": app.now()}))


def test_replacing_the_second_factor_needs_the_password(ana: StaffUser) -> None:
    client = signed_in(ana)
    let_pass(client, WINDOW)
    key = second_factor.begin_enrollment(ana.pk, name="ana", now=utc_now()).key
    code = pyotp.TOTP(key).now()
    assert ASKED in text(client.post("/admin/second-factor/set-up/", {"code": code}))
    assert second_factor.enrollment_of(ana.pk) is None
    fields = {"code": code, "reauthentication": PASSWORD}
    client.post("/admin/second-factor/set-up/", fields)
    assert second_factor.enrollment_of(ana.pk) is not None
    let_pass(client, WINDOW)
    assert ASKED in text(client.post("/admin/second-factor/recovery-codes/"))


def test_new_passwords_are_not_repeated_in_the_page(console: Client) -> None:
    new = {"username": "ines", "password1": "a-long-Secret-9", "password2": "a-long-Secret-9"}
    page = text(console.post("/admin/access/staffuser/add/", new))
    assert 'name="username" value="ines"' in page
    assert "a-long-Secret-9" not in page


def test_cancel_leads_to_no_other_site(console: Client) -> None:
    page = console.post(f"{ADA}reveal/", headers={"Referer": "https://evil.example/"})
    assert "evil.example" not in text(page)


def test_wrong_passwords_lock_out(console: Client) -> None:
    limit = LIMITS["account_from_address"]
    for _ in range(limit - 1):
        assert ASKED in text(console.post(f"{ADA}reveal/", {"reauthentication": "wrong"}))
    assert console.post(f"{ADA}reveal/", {"reauthentication": "wrong"}).status_code == 429
    assert console.post(f"{ADA}reveal/", {"reauthentication": PASSWORD}).status_code == 429


def test_right_password_resets_the_failures(console: Client) -> None:
    for _ in range(2):
        for _ in range(LIMITS["account_from_address"] - 1):
            console.post(f"{ADA}reveal/", {"reauthentication": "wrong"})
        assert ASKED not in text(console.post(f"{ADA}reveal/", {"reauthentication": PASSWORD}))
        let_pass(console, WINDOW)


def test_wrong_old_passwords_lock_out_the_change_of_the_password(console: Client) -> None:
    def change(old: str) -> int:
        new = {"new_password1": "a-long-Secret-9", "new_password2": "a-long-Secret-9"}
        answer = console.post("/admin/password_change/", {"old_password": old, **new})
        return answer.status_code

    limit = LIMITS["account_from_address"]
    assert [change("wrong") for _ in range(limit)] == [200] * (limit - 1) + [429]
    assert change(PASSWORD) == 429
    assert StaffUser.objects.get(username="ana").check_password(PASSWORD)
    collection("login_failures").delete_many({})
    assert change(PASSWORD) == 302
    assert StaffUser.objects.get(username="ana").check_password("a-long-Secret-9")
    assert console.get("/admin/").status_code == 200, "the session goes on"


def test_session_without_a_time_asks(ana: StaffUser) -> None:
    client = signed_in(ana)
    session: SessionStore = client.session
    del session[SESSION_KEY]
    session.save()
    assert ASKED in text(client.post(f"{ADA}reveal/"))
