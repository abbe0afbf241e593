"""The roles of staff, and the authentication backend that reads their permissions.

A permission is declared by the model it concerns (``Meta.permissions``). What an action of the
console needs is declared with the action, in ``console/texts/staff_actions.py``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.apps import AppConfig
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db.models import QuerySet

from ..models import StaffUser

ROLE_NAMES = frozenset({"viewer", "support", "operator", "approver", "admin"})
ROLE_SUMMARIES = {
    "viewer": "Sees everything except accounts and whole addresses. Changes nothing but own saved "
    "views.",
    "support": "Finds messages and recipients, corrects an address, and sends or resends one "
    "message.",
    "operator": "Sees what viewers see. Sends, also to a file of recipients, retries, resends, "
    "cancels, pauses providers, reveals addresses, suppresses addresses, and runs bulk "
    "operations.",
    "approver": "Sees what viewers see. Approves and rejects broadcasts that others wrote.",
    "admin": "Everything: also accounts, roles, API clients, types, limits, erasure, and export.",
}
"""What each role allows, for people who assign them."""
ACCOUNT_APPS = frozenset({"access", "auth"})
"""Apps that define permissions: for admins only."""
SAVED_VIEW_PERMISSIONS = frozenset(
    {
        "analytics.view_savedview",
        "analytics.add_savedview",
        "analytics.change_savedview",
        "analytics.delete_savedview",
    }
)
"""Permissions of everybody: a view is an entry in one's own menu."""
OPERATOR_PERMISSIONS = frozenset(
    {
        "notifications.resend_notification",
        "notifications.resend_several",
        "notifications.send_one",
        "notifications.send_file",
        "notifications.retry_notification",
        "notifications.cancel_notification",
        "notifications.reschedule_notification",
        "notifications.restore_notification",
        "notifications.correct_address",
        "notifications.reveal_addresses",
        "notifications.replay_webhooklog",
        "notifications.pause_provider",
        "notifications.test_provider",
        "analytics.acknowledge_incident",
        "analytics.share_savedview",
        "notifications.run_bulkoperation",
        "notifications.pause_broadcast",
        "notifications.resume_broadcast",
        "notifications.cancel_broadcast",
        "notifications.submit_broadcast",
        "notifications.end_digest",
        "callbacks.switch_callback",
        "rooms.switch_room",
        "callbacks.replay_callbackmessage",
        "devices.deactivate_device",
        "devices.reactivate_device",
        "recipients.add_suppression",
        "recipients.delete_suppression",
    }
)
"""Permissions of an operator besides viewing."""
ADMIN_PERMISSIONS = frozenset(
    {
        "notifications.view_addresses",
        "notifications.weaken_notificationtype",
        "recipients.erase_recipient",
        "recipients.export_recipient",
        "recipients.sign_out_recipient",
    }
)
"""Permissions of admins alone, besides accounts, types, and the schedule."""
APPROVER_PERMISSIONS = frozenset({"notifications.approve_broadcast"})
"""Permissions of an approver besides viewing."""
OWN_PERMISSIONS = frozenset(
    {"notifications.override_broadcast", "notifications.override_notificationtype"}
)
"""Permissions that no role has: whoever needs one gets it by a role of its own."""
SUPPORT_PERMISSIONS = frozenset(
    {
        "notifications.view_notification",
        "notifications.view_deliveryattempt",
        "notifications.view_digest",
        "recipients.view_recipient",
        "recipients.view_suppression",
        "devices.view_device",
        "notifications.resend_notification",
        "notifications.correct_address",
        "notifications.send_one",
    }
)
"""All permissions of support: find, understand, correct, and resend or send one notification."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A group with its permissions, as ``app.codename``."""

    name: str
    permissions: frozenset[str]


def roles(known: Iterable[str]) -> tuple[Role, ...]:
    """Return the roles, weakest first. ``known`` are all permissions of the console."""
    all_permissions = frozenset(known)
    view_permissions = frozenset(
        name
        for name in all_permissions - ADMIN_PERMISSIONS
        if name.partition(".")[2].startswith("view_") and name.partition(".")[0] not in ACCOUNT_APPS
    )
    view_permissions |= SAVED_VIEW_PERMISSIONS
    return (
        Role(name="viewer", permissions=view_permissions),
        Role(name="support", permissions=SUPPORT_PERMISSIONS | SAVED_VIEW_PERMISSIONS),
        Role(name="operator", permissions=view_permissions | OPERATOR_PERMISSIONS),
        Role(name="approver", permissions=view_permissions | APPROVER_PERMISSIONS),
        Role(name="admin", permissions=all_permissions - OWN_PERMISSIONS),
    )


class StaffBackend(ModelBackend):
    """Authentication backend for staff, whose permissions come from the user and their groups."""

    def user_can_authenticate(self, user: Any) -> bool:
        """Return True: the sign-in form refuses an inactive account, and says why."""
        return True

    def get_user(self, user_id: Any) -> Any:
        """Return the user of a session; None if the account is inactive or gone."""
        user = super().get_user(user_id)
        return user if user is not None and user.is_active else None

    def _get_user_permissions(self, user_obj: Any) -> QuerySet:
        own = StaffUser.user_permissions.through.objects.filter(staffuser_id=user_obj.pk)
        return _permissions(own.values_list("permission_id", flat=True))

    def _get_group_permissions(self, user_obj: Any) -> QuerySet:
        groups = StaffUser.groups.through.objects.filter(staffuser_id=user_obj.pk)
        ids = list(groups.values_list("group_id", flat=True))
        found = Group.permissions.through.objects.filter(group_id__in=ids)
        return _permissions(found.values_list("permission_id", flat=True))


def _permissions(keys: Iterable[Any]) -> QuerySet:
    return Permission.objects.filter(pk__in=set(keys))


def rename_stored_permissions(app_config: AppConfig, plan: object = None, **_: Any) -> None:
    """Rename stored permissions after models are renamed, since ``migrate`` only adds new ones.

    A receiver of ``post_migrate``; ``plan`` lists the migrations that were applied.
    """
    if not plan:
        return
    for model in app_config.get_models():
        content_type = ContentType.objects.get_for_model(model, for_concrete_model=False)
        for codename, name in model._meta.permissions:
            # Without the model's order, which joins collections.
            stored = Permission.objects.filter(content_type=content_type, codename=codename)
            stored.exclude(name=name).order_by().update(name=name)
