"""Names of URLs to which several pages link, and the page after a form."""

from contextlib import suppress
from urllib.parse import urlencode, urlsplit

from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import NoReverseMatch, resolve, reverse
from django.utils.http import url_has_allowed_host_and_scheme

NOTIFICATION = "admin:notifications_notification_change"
NOTIFICATIONS = "admin:notifications_notification_changelist"
FAILURES = "admin:notifications_failednotification_changelist"
RECIPIENT = "admin:recipients_recipient_change"
RECIPIENTS = "admin:recipients_recipient_changelist"
SUPPRESSION = "admin:recipients_suppression_change"
SUPPRESSIONS = "admin:recipients_suppression_changelist"
LIFT_SUPPRESSION = "admin:recipients_suppression_delete"
DEVICE = "admin:devices_device_change"
INCIDENT = "admin:analytics_incident_change"
INCIDENTS = "admin:analytics_incident_changelist"
PROVIDERS = "admin:notifications_providerstate_changelist"
WAITING = "admin:notifications_waitingnotification_changelist"
LIMITS = "admin:notifications_limit_changelist"
DIGEST = "admin:notifications_digest_change"
DIGESTS = "admin:notifications_digest_changelist"
HOME = "admin:index"
START = "send-one"
"""The name of the page on which a message begins."""
DESIGN_ITEM = "admin:notifications_design_item"
DESIGN_NUMBER = "number"
"""The parameter of an item's page that names an earlier design."""
MAY_VIEW_DESIGN = "notifications.view_design"
START_FILE = "send-file"
"""The name of the page on which a file of recipients begins."""
FILE_ROWS = "send-file-rows"
MAY_SEND_FILE = "notifications.send_file"
"""The permission to send to a file."""
BROADCAST = "admin:notifications_broadcast_change"
TYPE = "admin:notifications_notificationtype_change"
MAY_SEND = "notifications.send_one"
"""The permission to send one message."""


def may_open(request: HttpRequest, url: str) -> bool:
    """Return whether the user's permissions open a page of a model in the console."""
    page = getattr(resolve(urlsplit(url).path).func, "model_admin", None)
    return page is None or bool(page.has_view_permission(request))


def page_from(list_name: str, notification_id: object, *, kept_filters: str | None = None) -> str:
    """Return the URL of a notification's page that leads back to one of the model's other lists."""
    query = {"list": list_name}
    if kept_filters:
        query["_changelist_filters"] = kept_filters
    return f"{reverse(NOTIFICATION, args=[notification_id])}?{urlencode(query)}"


def url_to_send(request: HttpRequest, user_id: str) -> str | None:
    """Return where a message to a recipient begins; None for a user who may not send one."""
    if not request.user.has_perm(MAY_SEND):
        return None
    return f"{reverse(START)}?{urlencode({'user_id': user_id})}"


def url_of_design_item(kind: str, name: str, *, number: int | None = None) -> str:
    """Return the URL of an item of the design, now or as it was in a design."""
    url = reverse(DESIGN_ITEM, args=[kind, name])
    return url if number is None else f"{url}?{urlencode({DESIGN_NUMBER: number})}"


def next_page(request: HttpRequest) -> str:
    """Return the URL in ``next`` if it is of this site, else the URL of Home."""
    target: str = request.POST.get("next") or request.GET.get("next") or ""
    is_safe = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if is_safe else reverse(HOME)


def page_of_action(request: HttpRequest) -> str:
    """Return the URL of the page that has the button of an action, from the action's request.

    That is the page of the object in the URL, or else the list of its kind, also if no object can
    have the key in the URL.
    """
    match = request.resolver_match
    if match is None or "admin" not in match.namespaces:
        # Outside of the admin's URLs, an action is one level below its page.
        return request.path.rstrip("/").rpartition("/")[0] + "/"
    kind = "_".join((match.url_name or "").split("_")[:2])
    slug, key = match.kwargs.get("slug"), match.kwargs.get("object_id")
    if slug or key:
        # An object's key is quoted as it is in the URL. A line break is in no URL of an object.
        with suppress(NoReverseMatch):
            return reverse(f"admin:{kind}_change", args=[quote(slug) if slug else key])
    return reverse(f"admin:{kind}_changelist")
