"""Every console URL, asked by every role with GET and POST, and posted without a CSRF token.

A sample runs by default, and every case by ``make security``.
"""

import re

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from access.models import StaffUser
from notifyproject.db.collections import database
from tests.support import console_urls
from tests.support.clients.console import make_staff, signed_in
from tests.support.console_urls import CHANGES, FORMS, NOBODY, READS, SENDING
from tests.support.samples import sampled

pytestmark = pytest.mark.usefixtures("db", "broker")

ROLES = ("nobody", "viewer", "support", "operator", "approver", "admin")
METHODS = ("GET", "POST", "DELETE")
VERBS = {
    "changelist": "view",
    "history": "view",
    "add": "add",
    "change": "view",
    "delete": "delete",
}
"""The permission that opens each page of a model."""
WRONG_TOKENS = {"none": "", "wrong": "x" * 32, "foreign": "a" * 64}
NOT_ASKED = frozenset({"logout", "view_on_site", "autocomplete"})
"""URLs that end the session, that have no page here, or that need a model."""
READ_PERMISSIONS = {
    "analytics_savedview_open": "analytics.view_savedview",
    "notifications_bulkoperation_progress": "notifications.view_bulkoperation",
    "notifications_bulkoperation_results": "notifications.view_bulkoperation",
    "notifications_design_changes": "notifications.view_design",
    "notifications_design_frame": "notifications.view_design",
    "notifications_design_item": "notifications.view_design",
    "notifications_design_preview": "notifications.view_design",
    "notifications_notification_refresh": "notifications.view_notification",
    "notifications_broadcast_email": "notifications.view_broadcast&notifications.approve_broadcast"
    "|notifications.view_broadcast&notifications.override_broadcast",
    "notifications_notification_email": "notifications.view_notification",
    "notifications_notificationtype_version": "notifications.view_notificationtype",
    "notifications_notificationtype_email": "notifications.view_notificationtype",
}
REDIRECTS = re.compile(
    r"/history/$|/(failednotification|waitingnotification)/\w+/change/$", re.ASCII
)
"""Pages that only redirect: the history of an unknown document, and another model's list."""
BOUND_TO_A_SESSION = frozenset({"sessions", "django_session"})


def model_pages() -> dict[str, str]:
    """Return the required permission for each model page's path."""
    found = {}
    for model in admin.site._registry:
        app, name = model._meta.app_label, model._meta.model_name
        for page, verb in VERBS.items():
            arguments = () if page in ("changelist", "add") else (NOBODY,)
            path = reverse(f"admin:{app}_{name}_{page}", args=arguments)
            concrete = model._meta.proxy_for_model or model
            found[path] = f"{app}.{verb}_{name}|{app}.{verb}_{concrete._meta.model_name}"
    return found


def named_pages() -> dict[str, str]:
    """Return the required permission for each other path; empty: a signed-in member of staff."""
    named = {**dict.fromkeys(READS, ""), **READ_PERMISSIONS, **CHANGES, **FORMS}
    found = {_path(name): needed for name, needed in named.items() if name not in NOT_ASKED}
    sending = [reverse(name, kwargs=values) for name, values in SENDING.items()]
    files = dict.fromkeys(console_urls.file_paths(), "notifications.send_file")
    return found | dict.fromkeys(sending, "notifications.send_one") | files


def _path(name: str) -> str:
    label = {"app_label": "notifications"} if name == "app_list" else None
    return reverse(f"admin:{name}", kwargs=label or console_urls.arguments(name))


def test_each_role_opens_its_urls_and_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("create_roles", verbosity=0)
    members = {role: _member(role) for role in ROLES}
    others = named_pages()
    pages = model_pages() | others
    cases = [(role, path, method) for role in ROLES for path in pages for method in METHODS]
    checked = sampled(cases, each=59)
    forbidden = [
        (role, path, method)
        for role, path, method in checked
        if not console_urls.opens(pages[path], members[role][1])
    ]
    before = _stored()
    wrong = {}
    for role, path, method in forbidden:
        status = members[role][0].generic(method, path).status_code
        if status not in ((302, 403, 405) if REDIRECTS.search(path) else (403, 405)):
            wrong[role, method, path] = status
    assert wrong == {}
    assert _stored() == before
    for role, path, method in sorted({*checked} - {*forbidden}):
        status = members[role][0].generic(method, path).status_code
        # A page of a model may be closed to all, such as adding a notification.
        is_closed = status == 403 and method == "GET" and path in others
        if status >= 500 or is_closed:
            wrong[role, method, path] = status
    assert wrong == {}
    with capsys.disabled():
        print(f"\nroles: {len(checked)} of {len(cases)} requests, {len(forbidden)} forbidden")


def test_post_without_a_valid_csrf_token_is_403_and_changes_nothing(
    admin_user: StaffUser, capsys: pytest.CaptureFixture[str]
) -> None:
    client = signed_in(admin_user, enforce_csrf_checks=True)
    cases = [(path, token) for path in model_pages() | named_pages() for token in WRONG_TOKENS]
    checked = sampled(cases, each=7)
    before = _stored()
    wrong = {}
    for path, token in checked:
        client.cookies["csrftoken"] = "b" * 32
        body = {"csrfmiddlewaretoken": WRONG_TOKENS[token]} if WRONG_TOKENS[token] else {}
        if (status := client.post(path, body).status_code) != 403:
            wrong[path, token] = status
    assert wrong == {}
    assert _stored() == before
    with capsys.disabled():
        print(f"\nCSRF: {len(checked)} of {len(cases)} requests, {len(wrong)} wrong")


def _member(role: str) -> tuple[Client, frozenset[str]]:
    user = make_staff(f"a-{role}")
    if role != "nobody":
        user.groups.add(Group.objects.get(name=role))
    client = signed_in(user, raise_request_exception=False)
    return client, frozenset(StaffUser.objects.get(pk=user.pk).get_all_permissions())


def _stored() -> dict[str, int]:
    """Return the number of documents of each collection, without the sessions."""
    db = database()
    return {
        name: db[name].count_documents({})
        for name in sorted(db.list_collection_names())
        if name not in BOUND_TO_A_SESSION and not name.startswith("system.")
    }
