"""What staff may do is known by indexes, and is what Django would say."""

from typing import Any

import pytest
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command

from access.models import StaffUser
from access.staff.permissions import StaffBackend
from tests.support.clients.console import make_staff
from tests.support.mongo.explained_reads import Plan

JOINED = frozenset({"staff_users_user_permissions", "staff_users_groups", "auth_group_permissions"})


@pytest.fixture
def member(db: None) -> StaffUser:
    """Give somebody with a permission of their own, and two roles."""
    call_command("create_roles", verbosity=0)
    user = make_staff("olga", "notifications.view_addresses")
    user.groups.set(Group.objects.filter(name__in=["viewer", "support"]))
    return StaffUser.objects.get(pk=user.pk)


def test_it_is_their_own_and_their_roles(member: StaffUser) -> None:
    backend, django = StaffBackend(), ModelBackend()
    own = backend.get_user_permissions(member)
    assert own == {"notifications.view_addresses"}
    assert member.get_all_permissions() == own | backend.get_group_permissions(member)
    again = StaffUser.objects.get(pk=member.pk)
    assert member.get_all_permissions() == django.get_all_permissions(again)


def test_somebody_without_a_role_may_do_nothing(db: None) -> None:
    assert make_staff("nobody").get_all_permissions() == set()


def test_somebody_who_has_left_may_do_nothing(member: StaffUser) -> None:
    member.is_active = False
    assert member.get_all_permissions() == set()


def test_a_superuser_may_do_everything(db: None) -> None:
    everything = make_staff("maria", superuser=True).get_all_permissions()
    assert len(everything) == Permission.objects.count()


def test_nothing_is_gone_through(member: StaffUser, reading: Any) -> None:
    reading.commands.clear()
    reading.is_on = True
    member.has_perm("notifications.view_notification")
    reading.is_on = False
    plans = [Plan(command) for command in reading.commands]
    assert {plan.collection for plan in plans} == JOINED | {"auth_permission"}
    for plan in plans:
        assert "COLLSCAN" not in plan.stages, plan.told
