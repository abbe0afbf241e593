"""Every change in the console requires POST, a CSRF token, and a permission."""

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.test import Client, RequestFactory
from django.urls import reverse

from access.models import StaffUser
from console.sending import page as sending
from console.widgets.lists import ReadOnlyAdmin
from monitoring.models import SavedView
from tests.support import console_urls
from tests.support.clients.console import make_staff, signed_in
from tests.support.console_urls import CHANGES, FORMS, NOBODY, READS, SENDING
from tests.support.samples import sampled
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
WRITABLE = frozenset({"add", "change", "delete"})


def url(name: str) -> str:
    return reverse(f"admin:{name}", kwargs=console_urls.arguments(name))


def member(role: str) -> Client:
    call_command("create_roles", verbosity=0)
    user = make_staff(f"a-{role}")
    user.groups.add(Group.objects.get(name=role))
    return signed_in(user)


def test_every_console_address_is_listed() -> None:
    listed = {*READS, *CHANGES, *FORMS}
    assert console_urls.named() - listed == set(), "list them in console_urls"
    assert listed - console_urls.named() - {"password_change"} == set(), "they are gone"
    assert {pattern.name for pattern in sending.urlpatterns} == SENDING.keys()


def test_get_changes_nothing_and_leads_to_the_page_of_the_action(console: Client) -> None:
    assert console.get(url("logout")).status_code == 405
    for name in CHANGES.keys() - {"logout"}:
        if name.endswith("_reveal"):
            # Superusers see addresses without revealing them.
            assert console.get(url(name)).status_code == 403
            continue
        kind = "_".join(name.split("_")[:2])
        answer = console.get(url(name))
        pages = {
            reverse(f"admin:{kind}_changelist"),
            *(reverse(f"admin:{kind}_change", args=[key]) for key in (NOBODY, "mfa_5Fcode")),
        }
        assert (answer.status_code, answer["Location"] in pages) == (302, True), name
        assert console.put(url(name)).status_code == 405, name
    assert not LogEntry.objects.exists()


def test_changes_require_a_csrf_token(admin_user: StaffUser) -> None:
    client = signed_in(admin_user, enforce_csrf_checks=True)
    answers = {name: client.post(url(name)).status_code for name in CHANGES | FORMS}
    assert answers == dict.fromkeys(CHANGES | FORMS, 403)


@each_case("key", ["a%0Ab", "a%0D%0AX-Injected:%20b", "%0A"])
def test_action_on_a_key_that_no_object_has_leads_to_the_list(console: Client, key: str) -> None:
    operations = reverse("admin:notifications_bulkoperation_changelist")
    answer = console.get(f"{operations}{key}/start/")
    assert (answer.status_code, answer["Location"]) == (302, operations)


@each_case("role", sampled(["viewer", "support", "operator"], each=3))
def test_changes_require_their_own_permission(role: str) -> None:
    client = member(role)
    own = StaffUser.objects.get(username=f"a-{role}").get_all_permissions()
    pages = CHANGES | FORMS
    forbidden = {name for name, needed in pages.items() if not console_urls.opens(needed, own)}
    assert len(forbidden) > 5
    answers = {name: client.post(url(name)).status_code for name in forbidden}
    assert answers == dict.fromkeys(forbidden, 403)


def test_changes_without_a_session_redirect_to_login(client: Client) -> None:
    for name in CHANGES.keys() - {"logout"}:
        response = client.post(url(name))
        assert response.status_code == 302, name
        assert response["Location"].startswith("/admin/login/"), name


def test_viewer_adds_changes_and_deletes_nothing() -> None:
    viewer = member("viewer")
    for model in MODELS:
        kind = f"{model._meta.app_label}_{model._meta.model_name}"
        for verb in sorted(WRITABLE):
            parts = () if verb == "add" else (NOBODY,)
            response = viewer.post(reverse(f"admin:{kind}_{verb}", args=parts), {"post": "yes"})
            # A page without a form redirects if its document doesn't exist.
            is_no_form = verb == "change" and isinstance(admin.site._registry[model], ReadOnlyAdmin)
            expected = {302, 403} if is_no_form else {403}
            if model is SavedView:
                # A view of one's own is nobody else's.
                expected = {200} if verb == "add" else {302}
            assert response.status_code in expected, (kind, verb)


@each_case("role", ["viewer", "support"])
def test_read_only_roles_have_no_actions_on_rows(role: str) -> None:
    client = member(role)
    request = RequestFactory().get("/admin/")
    request.user = StaffUser.objects.get(pk=client.session["_auth_user_id"])
    for model in MODELS:
        assert admin.site._registry[model].get_actions(request) == {}, model
