"""Whatever changes something in the console: it is a POST, with a token, by somebody who may."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.test import Client, RequestFactory
from django.urls import reverse

from access.models import StaffUser
from console.widgets.lists import ReadOnlyAdmin
from tests.support import console_urls
from tests.support.clients.console import make_staff, signed_in
from tests.support.console_urls import CHANGES, FORMS, NOBODY, READS

pytestmark = pytest.mark.usefixtures("db", "broker")

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
WRITABLE = frozenset({"add", "change", "delete"})


def url(name: str) -> str:
    return reverse(f"admin:{name}", kwargs=console_urls.arguments(name))


@pytest.fixture
def viewer() -> Client:
    """Give a client of somebody who may look at everything and do nothing."""
    return member("viewer")


def member(role: str) -> Client:
    """Return a client of a member of staff who has one role."""
    call_command("create_roles", verbosity=0)
    user = make_staff(f"a-{role}")
    user.groups.add(Group.objects.get(name=role))
    return signed_in(user)


def test_every_console_address_is_listed() -> None:
    listed = {*READS, *CHANGES, *FORMS}
    assert console_urls.named() - listed == set(), "list them in console_urls"
    assert listed - console_urls.named() - {"password_change"} == set(), "they are gone"


def test_changes_refuse_get(console: Client) -> None:
    assert {name: console.get(url(name)).status_code for name in CHANGES} == dict.fromkeys(
        CHANGES, 405
    )


def test_changes_require_a_csrf_token(admin_user: StaffUser) -> None:
    client = signed_in(admin_user, enforce_csrf_checks=True)
    answers = {name: client.post(url(name)).status_code for name in CHANGES | FORMS}
    assert answers == dict.fromkeys(CHANGES | FORMS, 403)


@pytest.mark.parametrize("role", ["viewer", "support", "operator"])
def test_changes_require_their_own_permission(role: str) -> None:
    client = member(role)
    may = StaffUser.objects.get(username=f"a-{role}").get_all_permissions()
    asked = {name for name, permission in (CHANGES | FORMS).items() if permission not in {*may, ""}}
    assert len(asked) > 5
    assert {name: client.post(url(name)).status_code for name in asked} == dict.fromkeys(asked, 403)


def test_changes_without_a_session_redirect_to_login(client: Client) -> None:
    for name in CHANGES.keys() - {"logout"}:
        response = client.post(url(name))
        assert response.status_code == 302, name
        assert response["Location"].startswith("/admin/login/"), name


def test_viewer_adds_changes_and_deletes_nothing(viewer: Client) -> None:
    for model in MODELS:
        kind = f"{model._meta.app_label}_{model._meta.model_name}"
        for verb in sorted(WRITABLE):
            parts = () if verb == "add" else (NOBODY,)
            response = viewer.post(reverse(f"admin:{kind}_{verb}", args=parts), {"post": "yes"})
            # A page that is no form leads elsewhere when what it is about is not there.
            is_no_form = verb == "change" and isinstance(admin.site._registry[model], ReadOnlyAdmin)
            assert response.status_code == 403 or (is_no_form and response.status_code == 302), (
                *(kind, verb),
            )


@pytest.mark.parametrize("role", ["viewer", "support"])
def test_read_only_roles_have_no_actions_on_rows(role: str) -> None:
    client = member(role)
    request = RequestFactory().get("/admin/")
    request.user = StaffUser.objects.get(pk=client.session["_auth_user_id"])
    for model in MODELS:
        assert admin.site._registry[model].get_actions(request) == {}, model
