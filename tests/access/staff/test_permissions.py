"""Staff permissions: the four roles, and the authentication backend's reads."""

import io
from typing import Any

import pytest
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.core.management.sql import emit_post_migrate_signal

from access.models import StaffUser
from access.staff import permissions
from access.staff.permissions import (
    OPERATOR_PERMISSIONS,
    SAVED_VIEW_PERMISSIONS,
    SUPPORT_PERMISSIONS,
    StaffBackend,
)
from console.staff.accounts import console_permissions
from devices.models import Device
from notifyproject.stack import first_run
from tests.support.clients.console import make_staff
from tests.support.mongo.explained_reads import Plan

pytestmark = pytest.mark.usefixtures("db")
ROLES = ["viewer", "support", "operator", "approver", "admin"]
SUPPORT = SUPPORT_PERMISSIONS | SAVED_VIEW_PERMISSIONS
STANDARD_PREFIXES = ("add_", "change_", "delete_", "view_")
OWN_APPS = frozenset({"access", "analytics", "callbacks", "devices", "notifications", "recipients"})


def create_roles(*options: str) -> str:
    output = io.StringIO()
    call_command("create_roles", *options, stdout=output)
    return output.getvalue()


def permissions_of(role: str) -> set[str]:
    found = list(Group.objects.get(name=role).permissions.all())
    kinds = ContentType.objects.in_bulk({p.content_type_id for p in found})
    return {f"{kinds[p.content_type_id].app_label}.{p.codename}" for p in found}


def test_command_creates_the_roles() -> None:
    output = create_roles()
    assert [line.partition(":")[0] for line in output.splitlines()] == ROLES
    assert "created" in output
    assert permissions_of("support") == SUPPORT
    assert permissions_of("operator") >= OPERATOR_PERMISSIONS
    assert permissions_of("approver") >= permissions.APPROVER_PERMISSIONS
    own = len(permissions.OWN_PERMISSIONS)
    assert len(permissions_of("admin")) == console_permissions().count() - own


def test_viewer_has_view_permissions_except_accounts() -> None:
    create_roles()
    found = permissions_of("viewer")
    assert found >= SAVED_VIEW_PERMISSIONS
    found -= SAVED_VIEW_PERMISSIONS
    assert all(name.partition(".")[2].startswith("view_") for name in found)
    assert {"notifications.view_notification", "admin.view_logentry"} <= found
    assert not any(name.startswith(("access.", "auth.")) for name in found)


def test_each_role_includes_the_one_below() -> None:
    create_roles()
    assert permissions_of("viewer") < permissions_of("operator") < permissions_of("admin")
    assert permissions_of("support") < permissions_of("operator")


def test_unmasked_addresses_are_for_admins_and_revealing_for_operators() -> None:
    create_roles()
    unmasked, shown = "notifications.view_addresses", "notifications.reveal_addresses"
    assert [role for role in ROLES if unmasked in permissions_of(role)] == ["admin"]
    assert shown in permissions_of("operator")
    assert shown not in permissions_of("support")


def test_support_resends_one_notification_only() -> None:
    create_roles()
    assert "notifications.resend_notification" in permissions_of("support")
    assert "notifications.resend_several" not in permissions_of("support")


def test_every_custom_permission_is_assigned_or_listed() -> None:
    own = {
        f"{kind.app_label}.{permission.codename}"
        for permission in Permission.objects.all()
        if (kind := ContentType.objects.get_for_id(permission.content_type_id)).app_label
        in OWN_APPS
        and not permission.codename.startswith(STANDARD_PREFIXES)
    }
    named = OPERATOR_PERMISSIONS | SUPPORT_PERMISSIONS | permissions.ADMIN_PERMISSIONS
    named |= permissions.APPROVER_PERMISSIONS | permissions.OWN_PERMISSIONS
    assert own - named == set(), "name them in access.staff.permissions"


def test_second_run_adds_missing_permissions_and_removes_none() -> None:
    create_roles()
    support = Group.objects.get(name="support")
    more = Permission.objects.get(codename="cancel_notification")
    less = Permission.objects.get(codename="view_device")
    support.permissions.add(more)
    support.permissions.remove(less)
    assert "complete" in create_roles()
    assert permissions_of("support") == SUPPORT | {"notifications.cancel_notification"}
    assert "reset" in create_roles("--reset")
    assert permissions_of("support") == SUPPORT


def test_missing_permission_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = SUPPORT_PERMISSIONS | {"notifications.no_such_thing"}
    monkeypatch.setattr("access.staff.permissions.SUPPORT_PERMISSIONS", unknown)
    with pytest.raises(CommandError, match="no_such_thing"):
        create_roles()


def test_unknown_permission_is_left_out_of_viewer() -> None:
    viewer = permissions.roles(["shop.view_order", "shop.cancel_order", "auth.view_group"])[0]
    assert viewer.permissions == {"shop.view_order"} | SAVED_VIEW_PERMISSIONS


def test_first_run_creates_roles_once(capsys: pytest.CaptureFixture[str]) -> None:
    first_run.create_roles()
    assert set(Group.objects.values_list("name", flat=True)) == set(ROLES)
    Group.objects.get(name="viewer").permissions.clear()
    first_run.create_roles()
    assert Group.objects.get(name="viewer").permissions.count() == 0
    assert capsys.readouterr().out == ""


JOIN_COLLECTIONS = frozenset(
    {"staff_users_user_permissions", "staff_users_groups", "auth_group_permissions"}
)


@pytest.fixture
def user_with_roles(db: None) -> StaffUser:
    """Create a user with one permission and two roles."""
    call_command("create_roles", verbosity=0)
    user = make_staff("olga", "notifications.view_addresses")
    user.groups.set(Group.objects.filter(name__in=["viewer", "support"]))
    return StaffUser.objects.get(pk=user.pk)


def test_permissions_combine_own_and_roles(user_with_roles: StaffUser) -> None:
    backend, django = StaffBackend(), ModelBackend()
    own = backend.get_user_permissions(user_with_roles)
    assert own == {"notifications.view_addresses"}
    roles = backend.get_group_permissions(user_with_roles)
    assert user_with_roles.get_all_permissions() == own | roles
    again = StaffUser.objects.get(pk=user_with_roles.pk)
    assert user_with_roles.get_all_permissions() == django.get_all_permissions(again)


def test_user_without_role_has_no_permission(db: None) -> None:
    assert make_staff("nobody").get_all_permissions() == set()


def test_inactive_user_has_no_permission(user_with_roles: StaffUser) -> None:
    user_with_roles.is_active = False
    assert user_with_roles.get_all_permissions() == set()


def test_superuser_has_every_permission(db: None) -> None:
    everything = make_staff("maria", superuser=True).get_all_permissions()
    assert len(everything) == Permission.objects.count()


def test_permission_reads_use_indexes(user_with_roles: StaffUser, reading: Any) -> None:
    reading.commands.clear()
    reading.is_on = True
    user_with_roles.has_perm("notifications.view_notification")
    reading.is_on = False
    plans = [Plan(command) for command in reading.commands]
    assert {plan.collection for plan in plans} == JOIN_COLLECTIONS | {"auth_permission"}
    for plan in plans:
        assert "COLLSCAN" not in plan.stages, plan.explained


def test_migrate_gives_stored_permissions_their_current_names() -> None:
    names = dict(Device._meta.permissions)
    stored = Permission.objects.filter(codename__in=names).order_by()
    others = set(Permission.objects.exclude(codename__in=names).order_by().values_list("name"))
    stored.update(name="Can switch devices")
    emit_post_migrate_signal(0, False, "default", plan=[("a migration", False)])
    assert dict(stored.values_list("codename", "name")) == names
    assert others == set(
        Permission.objects.exclude(codename__in=names).order_by().values_list("name")
    )
