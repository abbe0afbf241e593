"""Types that are managed by code: shown here, and changed only in an emergency, with a reason."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

from domain.time import utc_now
from notifications.catalog.emergencies import is_managed_by_code, unpushed
from notifications.documents.catalog import EmergencyChangeDocument
from notifications.models.catalog import REASON_LENGTH

MAY_OVERRIDE = "notifications.override_notificationtype"
MODE = "emergency"
"""The parameter with which the page of such a type has its form."""
REASON = "emergency_reason"
NO_REASON = "Enter why it can't wait for a push."


def may_change(admin: Any, request: HttpRequest, kind: Mapping[str, Any] | None) -> bool:
    """Return whether the user may change a type, if only in an emergency."""
    is_by_code = kind is not None and is_managed_by_code(kind)
    return bool(
        admin.has_change_permission(request)
        and (not is_by_code or request.user.has_perm(MAY_OVERRIDE))
    )


def is_begun(request: HttpRequest) -> bool:
    """Return whether the user has begun an emergency change, and may make one."""
    return MODE in request.GET and bool(request.user.has_perm(MAY_OVERRIDE))


def posted_reason(request: HttpRequest) -> str:
    """Return the reason that the user entered, in one line; empty without one."""
    return " ".join(request.POST.get(REASON, "").split())[:REASON_LENGTH]


def posted_change(request: HttpRequest, kind: Mapping[str, Any]) -> EmergencyChangeDocument | None:
    """Return the emergency change to store with a type that code manages: reason, author, time.

    Return None for a type that the console manages.
    """
    if not is_managed_by_code(kind):
        return None
    by = f"staff:{request.user.get_username()}"
    return {"reason": posted_reason(request), "by": by, "at": utc_now()}


def lacks_reason(change: EmergencyChangeDocument | None) -> bool:
    """Return whether a change needs a reason and has none."""
    return change is not None and not change["reason"]


def audited(message: str, change: EmergencyChangeDocument | None) -> str:
    """Return the entry of the audit log about a change."""
    return f"{message} In an emergency: {change['reason']}" if change else message


def notice_context(admin: Any, request: HttpRequest, kind: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context of the notice on each page of a type that is managed by code."""
    if not is_managed_by_code(kind):
        return {}
    return {
        "is_by_code": True,
        "repository": kind.get("repository"),
        "emergency_changes": [
            {**change, "by": change["by"].partition(":")[2]} for change in unpushed(kind)
        ],
        "may_override": may_change(admin, request, kind),
        "is_begun": is_begun(request),
        "reason": posted_reason(request),
        "reason_length": REASON_LENGTH,
    }
