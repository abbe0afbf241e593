"""Roles of staff, and the backend that reads what they may do."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission
from django.db.models import QuerySet

from ..models import StaffUser

ACCOUNT_APPS = frozenset({"access", "auth"})
"""Apps whose objects say who may do what: for admins only."""
OPERATOR_PERMISSIONS = frozenset(
    {
        "notifications.resend_notification",
        "notifications.resend_several",
        "notifications.retry_notification",
        "notifications.cancel_notification",
        "notifications.reschedule_notification",
        "notifications.reveal_addresses",
        "notifications.replay_webhooklog",
        "notifications.pause_provider",
        "notifications.test_provider",
        "analytics.acknowledge_incident",
        "notifications.run_bulkoperation",
        "notifications.pause_broadcast",
        "notifications.resume_broadcast",
        "notifications.cancel_broadcast",
        "callbacks.switch_callback",
        "callbacks.replay_callbackmessage",
        "devices.deactivate_device",
        "devices.reactivate_device",
        "recipients.add_suppression",
        "recipients.delete_suppression",
    }
)
"""What an operator does beside looking."""
ADMIN_PERMISSIONS = frozenset(
    {
        "notifications.view_addresses",
        "recipients.erase_recipient",
        "recipients.export_recipient",
        "recipients.sign_out_recipient",
    }
)
"""What only an admin does, beside keeping accounts, types and the schedule."""
SUPPORT_PERMISSIONS = frozenset(
    {
        "notifications.view_notification",
        "notifications.view_deliveryattempt",
        "recipients.view_recipient",
        "recipients.view_suppression",
        "devices.view_device",
        "notifications.resend_notification",
    }
)
"""All that support may do: find somebody's notification, understand it, send that one again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What the members of a group may do, as ``app.codename``."""

    name: str
    permissions: frozenset[str]


def roles(known: Iterable[str]) -> tuple[Role, ...]:
    """Return the roles, the least first; ``known`` are all permissions that the console asks for.

    An admin has all of them; who may look has each that shows something, accounts aside. Pure.
    """
    all_permissions = frozenset(known)
    view_permissions = frozenset(
        name
        for name in all_permissions
        if name.partition(".")[2].startswith("view_")
        and name.partition(".")[0] not in ACCOUNT_APPS
        and name not in ADMIN_PERMISSIONS
    )
    return (
        Role(name="viewer", permissions=view_permissions),
        Role(name="support", permissions=SUPPORT_PERMISSIONS),
        Role(name="operator", permissions=view_permissions | OPERATOR_PERMISSIONS),
        Role(name="admin", permissions=all_permissions),
    )


class StaffBackend(ModelBackend):
    """Signs staff in, and says what they may do by themselves and by their groups."""

    def _get_user_permissions(self, user_obj: Any) -> QuerySet:
        own = StaffUser.user_permissions.through.objects.filter(staffuser_id=user_obj.pk)
        return _permissions(own.values_list("permission_id", flat=True))

    def _get_group_permissions(self, user_obj: Any) -> QuerySet:
        groups = StaffUser.groups.through.objects.filter(staffuser_id=user_obj.pk)
        return _permissions(_group_permission_ids(list(groups.values_list("group_id", flat=True))))


def _group_permission_ids(groups: Sequence[Any]) -> Iterable[Any]:
    found = Group.permissions.through.objects.filter(group_id__in=groups)
    return found.values_list("permission_id", flat=True)


def _permissions(keys: Iterable[Any]) -> QuerySet:
    return Permission.objects.filter(pk__in=set(keys))
