"""Staff, their roles, and the audit log of their actions."""

import re
from html import unescape

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.test import Client

from access.models import StaffUser
from tests.support.clients.console import make_staff, signed_in

pytestmark = pytest.mark.usefixtures("db")

STAFF = "/admin/access/staffuser/"
ROLES = "/admin/auth/group/"
MANAGE = tuple(f"access.{verb}_staffuser" for verb in ("view", "add", "change", "delete"))


def fields(user: StaffUser, **changes: object) -> dict[str, object]:
    names = ("username", "email", "first_name", "last_name")
    joined = {
        "date_joined_0": f"{user.date_joined:%Y-%m-%d}",
        "date_joined_1": f"{user.date_joined:%H:%M:%S}",
    }
    flags = {"is_active": "on", "is_staff": "on"}
    return {name: getattr(user, name) for name in names} | joined | flags | changes


def permission(name: str) -> Permission:
    app, _, codename = name.partition(".")
    return Permission.objects.get(content_type__app_label=app, codename=codename)


NEW = {"username": "ines", "password1": "a-long-Secret-9", "password2": "a-long-Secret-9"}


def sign_in(user: str, password: str) -> Client:
    client = Client()
    client.post("/admin/login/", {"username": user, "password": password})
    return client


def test_new_account_signs_in_with_its_role(console: Client) -> None:
    call_command("create_roles", verbosity=0)
    support = Group.objects.get(name="support")
    made = console.post(f"{STAFF}add/", NEW | {"groups": [str(support.pk)]})
    assert made.status_code == 302
    member = sign_in("ines", "a-long-Secret-9")
    assert member.get("/admin/notifications/notification/").status_code == 200
    assert member.get("/admin/notifications/webhooklog/").status_code == 403


def test_new_account_needs_a_role(console: Client) -> None:
    assert "No roles yet" in console.get(f"{STAFF}add/").content.decode()
    Group.objects.create(name="Helpers")
    page = console.get(f"{STAFF}add/").content.decode()
    assert "Helpers" in page
    assert "No roles yet" not in page
    assert "This field is required" in console.post(f"{STAFF}add/", NEW).content.decode()
    assert not StaffUser.objects.filter(username="ines").exists()


def test_list_shows_the_roles(console: Client, admin_user: StaffUser) -> None:
    for name in ("rui", "eva"):
        make_staff(name)
    for role in ("support", "Billing"):
        Group.objects.create(name=role).user_set.add(StaffUser.objects.get(username="rui"))
    rows = console.get(STAFF).context["cl"].result_list
    shown = {row.username: ", ".join(row.role_names) for row in rows}
    assert shown == {"rui": "Billing, support", "eva": "", admin_user.username: "Superuser"}


def test_account_without_console_access_signs_in_once_saved(console: Client) -> None:
    user = make_staff("rui")
    StaffUser.objects.filter(pk=user.pk).update(is_staff=False)
    refused = Client().post("/admin/login/", {"username": "rui", "password": "s3cret-enough"})
    assert "This account has no access to the console." in unescape(refused.content.decode())
    assert console.post(f"{STAFF}{user.pk}/change/", fields(user)).status_code == 302
    assert sign_in("rui", "s3cret-enough").get("/admin/").status_code == 200


def test_sign_in_of_a_deactivated_account_says_so_after_the_password(db: None) -> None:
    user = make_staff("rui")
    session = signed_in(user)
    StaffUser.objects.filter(pk=user.pk).update(is_active=False)
    assert session.get("/admin/").status_code == 302, "its sessions end"
    for password, problem in (
        ("s3cret-enough", "This account is deactivated."),
        ("wrong", "Wrong username or password."),
    ):
        refused = Client().post("/admin/login/", {"username": "rui", "password": password})
        assert problem in unescape(refused.content.decode())


def test_weak_password_is_refused(console: Client) -> None:
    weak = {"username": "ines", "password1": "1", "password2": "1"}
    assert "too short" in console.post(f"{STAFF}add/", weak).content.decode()
    assert not StaffUser.objects.filter(username="ines").exists()


def test_password_is_changed(console: Client) -> None:
    user = make_staff("rui")
    new = {"password1": "another-Secret-9", "password2": "another-Secret-9"}
    url = f"{STAFF}{user.pk}/password/"
    assert console.get(url).status_code == 200
    assert console.post(url, new | {"usable_password": "true"}).status_code == 302
    assert StaffUser.objects.get(pk=user.pk).check_password("another-Secret-9")


def test_role_form_offers_console_permissions_only(console: Client) -> None:
    page = console.get(f"{ROLES}add/").content.decode()
    assert "Can retry failed deliveries" in page
    assert "Can add notification type" in page
    for useless in ("Can change notification\n", "Can add heartbeat", "Can delete session"):
        assert useless not in page
    retry = permission("notifications.retry_notification")
    made = {"name": "Support", "permissions": [str(retry.pk)]}
    assert console.post(f"{ROLES}add/", made).status_code == 302
    role = Group.objects.get(name="Support")
    assert list(role.permissions.all()) == [retry]
    shown = console.get(f"{ROLES}{role.pk}/change/").content.decode()
    checked = re.findall(r'<input[^>]*value="(\w+)"[^>]*\schecked[\s>]', shown)
    assert checked == [str(retry.pk)]


def test_role_grants_its_permissions(console: Client) -> None:
    role = Group.objects.create(name="Support")
    role.permissions.add(permission("notifications.view_notification"))
    user = make_staff("rui")
    url = f"{STAFF}{user.pk}/change/"
    assert console.post(url, fields(user, groups=[str(role.pk)])).status_code == 302
    member = signed_in(StaffUser.objects.get(pk=user.pk))
    assert member.get("/admin/notifications/notification/").status_code == 200


def test_only_superusers_create_superusers(db: None) -> None:
    manager = make_staff("nuno", *MANAGE)
    client = signed_in(manager)
    url = f"{STAFF}{manager.pk}/change/"
    assert client.post(url, fields(manager, is_superuser="on")).status_code == 302
    assert not StaffUser.objects.get(pk=manager.pk).is_superuser


def test_only_superusers_change_superusers(admin_user: StaffUser) -> None:
    client = signed_in(make_staff("nuno", *MANAGE))
    url = f"{STAFF}{admin_user.pk}/"
    assert client.post(f"{url}change/", fields(admin_user, email="x@x.example")).status_code == 403
    assert client.post(f"{url}delete/", {"post": "yes"}).status_code == 403
    new = {"password1": "another-Secret-9", "password2": "another-Secret-9"}
    assert client.post(f"{url}password/", new).status_code == 403
    assert StaffUser.objects.get(pk=admin_user.pk).check_password("s3cret-enough")


def test_own_account_cannot_be_deleted(console: Client, admin_user: StaffUser) -> None:
    response = console.post(f"{STAFF}{admin_user.pk}/delete/", {"post": "yes"})
    assert response.status_code == 403


def test_account_is_deleted(console: Client) -> None:
    user = make_staff("rui")
    url = f"{STAFF}{user.pk}/delete/"
    assert console.get(url).status_code == 200
    assert console.post(url, {"post": "yes"}).status_code == 302
    assert not StaffUser.objects.filter(username="rui").exists()


def test_staff_are_found_by_prefix(console: Client) -> None:
    make_staff("rui")
    for text in ("ru", "rui@example.com"):
        rows = console.get(f"{STAFF}?q={text}").context["cl"].result_list
        assert [row.username for row in rows] == ["rui"]


def test_audit_log_shows_user_and_change(console: Client, admin_user: StaffUser) -> None:
    console.post(f"{ROLES}add/", {"name": "Support"})
    role = Group.objects.get()
    console.post(f"{ROLES}{role.pk}/change/", {"name": "Helpers"})
    console.post(f"{ROLES}{role.pk}/delete/", {"post": "yes"})
    page = console.get("/admin/admin/logentry/").content.decode()
    for words in ("maria", "Added", "Changed", "Deleted", "Group", "Support", "Helpers"):
        assert words in page
    rows = console.get(f"/admin/admin/logentry/?action={CHANGE}").context["cl"].result_list
    assert [row.object_repr for row in rows] == ["Helpers"]
    rows = console.get(f"/admin/admin/logentry/?user={admin_user.pk}").context["cl"].result_list
    assert len(rows) == 3
    assert console.get("/admin/admin/logentry/?done_within=1h").context["cl"].result_count == 3


def test_audit_log_cannot_be_changed(console: Client) -> None:
    console.post(f"{ROLES}add/", {"name": "Support"})
    entry = LogEntry.objects.get()
    for verb in ("change", "delete"):
        response = console.post(f"/admin/admin/logentry/{entry.pk}/{verb}/", {"post": "yes"})
        assert response.status_code == 403
    assert LogEntry.objects.count() == 1


def test_audit_log_keeps_entries_of_deleted_accounts(
    console: Client, admin_user: StaffUser
) -> None:
    entry = LogEntry.objects.create(
        user_id=admin_user.pk, action_flag=CHANGE, object_repr="x", change_message="y"
    )
    LogEntry.objects.filter(pk=entry.pk).update(user_id="6" * 24)
    assert "6" * 24 in console.get("/admin/admin/logentry/").content.decode()


# https://github.com/chatwoot/chatwoot/issues/302
# https://github.com/RocketChat/Rocket.Chat/issues/21823
@pytest.mark.parametrize("dropped", ["is_active", "is_superuser", "both"])
@pytest.mark.parametrize("others", [0, 1])
def test_own_account_stays_active_and_superuser(
    console: Client, admin_user: StaffUser, dropped: str, others: int
) -> None:
    for number in range(others):
        make_staff(f"root{number}", superuser=True)
    url = f"{STAFF}{admin_user.pk}/change/"
    assert (
        "Only somebody else can deactivate or demote your own account."
        in console.get(url).content.decode()
    )
    sent = fields(admin_user, is_superuser="on", first_name="Rosa")
    for name in ("is_active", "is_superuser") if dropped == "both" else (dropped,):
        del sent[name]
    assert console.post(url, sent).status_code == 302
    now = StaffUser.objects.get(pk=admin_user.pk)
    assert (now.is_active, now.is_superuser, now.first_name) == (True, True, "Rosa")


def test_manager_stays_active_but_deactivates_others(db: None) -> None:
    manager, other = make_staff("rui", *MANAGE), make_staff("eva")
    client = signed_in(manager)
    for user in (manager, other):
        sent = fields(user)
        del sent["is_active"]
        assert client.post(f"{STAFF}{user.pk}/change/", sent).status_code == 302
    active = StaffUser.objects.values_list("username", "is_active")
    assert dict(active) == {"rui": True, "eva": False}


def test_another_superuser_demotes_and_deactivates(console: Client) -> None:
    user = make_staff("rui", superuser=True)
    sent = fields(user)
    del sent["is_active"]
    assert console.post(f"{STAFF}{user.pk}/change/", sent).status_code == 302
    now = StaffUser.objects.get(pk=user.pk)
    assert (now.is_active, now.is_superuser) == (False, False)
