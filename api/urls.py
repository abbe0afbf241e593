"""URLs of the API, provider webhooks, unsubscribe links, probes, and metrics."""

from collections.abc import Callable
from typing import Any

from django.urls import URLPattern, include, path, re_path
from drf_spectacular.utils import OpenApiParameter
from drf_spectacular.views import SpectacularSwaggerSplitView

from . import (
    broadcasts,
    design,
    digests,
    files,
    health,
    limits,
    metrics,
    rooms,
    suppressions,
    topics,
    type_files,
    unsubscribe,
    webhooks,
)
from .callbacks import views as callbacks
from .devices import views as devices
from .devices.browsers import BrowserEndpoint
from .http.views import ApiView, InboxView
from .inbox import preferences as inbox_preferences
from .inbox import push as inbox_push
from .inbox import tokens
from .inbox import views as inbox
from .notifications import bulk, cleanup, statistics
from .notifications import views as notifications
from .openapi.document import OpenAPIDocument
from .openapi.operations import Operation, operation_id, operations
from .recipients import views as recipients
from .test import clock as test_clock
from .test import outbox as test_outbox
from .types import views as types

ID = r"(?P<notification_id>[^/]{1,64})"
KEY = r"(?P<key>[^/]{1,255})"
USER = r"(?P<user_id>[^/]{1,128})"
DEVICE = r"(?P<device_id>[^/]{1,64})"
TOPIC = r"topics/(?P<topic>[^/]{1,128})"
ADDRESS = r"(?P<channel>[^/]{1,40})/(?P<address>[\s\S]{1,320})"
TYPE = r"types/(?P<slug>[^/]{1,64})"
DIGEST = r"digests/(?P<digest_id>[^/]{1,64})"
BROADCAST = r"broadcasts/(?P<broadcast_id>[^/]{1,64})"
FILE = r"files/(?P<file_id>[^/]{1,64})"
VERSION = rf"{TYPE}/templates/versions/(?P<number>[0-9]{{1,6}})"


def _query_parameters(operation: Operation) -> dict[str, bool]:
    """Return whether each query parameter may be repeated, by its name."""
    return {
        parameter.name: bool(parameter.explode)
        for parameter in operation.parameters
        if parameter.location == OpenApiParameter.QUERY
    }


def route(
    pattern: str, name: str, *, base: type[ApiView] | None = None, **handlers: Callable[..., Any]
) -> URLPattern:
    """Return the URL of a resource; ``handlers`` are its operations by HTTP method.

    Without a ``base`` of its view, it takes an API key, or an inbox token if no scope is declared.
    """
    described: dict[str, Operation] = {
        method.upper(): operations[operation_id(handler)] for method, handler in handlers.items()
    }
    if "GET" in described:
        described["HEAD"] = described["GET"]
    scopes = {method: described_method.scope for method, described_method in described.items()}
    attributes = {
        "scopes": scopes,
        "test_mode": {
            method: described_method.test_mode
            for method, described_method in described.items()
            if described_method.test_mode
        },
        "unaudited": {
            method: described_method.unaudited
            for method, described_method in described.items()
            if described_method.unaudited
        },
        "relies_on_copies": {
            method
            for method, described_method in described.items()
            if described_method.relies_on_copies
        },
        "query_parameters": {
            method: _query_parameters(described_method)
            for method, described_method in described.items()
        },
        **{method: staticmethod(handler) for method, handler in handlers.items()},
    }
    default = InboxView if None in scopes.values() else ApiView
    view: type[ApiView] = type(name, (base or default,), attributes)
    # One spelling for each resource: ``\Z``, since ``$`` also matches before a final line break.
    return re_path(rf"^{pattern}\Z", view.as_view(), name=name)


version_1 = [
    route(
        "notifications",
        "notifications",
        get=notifications.list_notifications,
        post=notifications.create_notification,
    ),
    route("notifications/bulk", "bulk", post=bulk.create_notifications),
    route("notifications/cleanup", "cleanup", post=cleanup.clean_up_notifications),
    route("notifications/cancel", "cancel-entity", post=notifications.cancel_notifications),
    route("notifications/stats", "stats", get=statistics.get_notification_stats),
    route("notifications/preview", "preview", post=notifications.preview_notification),
    # Before those of one notification, since a key may be the name of an action.
    route(f"notifications/by-key/{KEY}", "by-key", put=notifications.put_notification),
    route(
        f"notifications/{ID}",
        "notification",
        get=notifications.get_notification,
        delete=notifications.delete_notification,
    ),
    route(f"notifications/{ID}/attempts", "attempts", get=notifications.list_attempts),
    route(f"notifications/{ID}/read", "read", post=notifications.read_notification),
    route(f"notifications/{ID}/unread", "unread", post=notifications.unread_notification),
    route(f"notifications/{ID}/ack", "ack", post=notifications.ack_notification),
    route(f"notifications/{ID}/cancel", "cancel", post=notifications.cancel_notification),
    route(f"notifications/{ID}/retry", "retry", post=notifications.retry_notification),
    route(f"notifications/{ID}/resend", "resend", post=notifications.resend_notification),
    route(
        f"notifications/{ID}/reschedule", "reschedule", post=notifications.reschedule_notification
    ),
    route(
        "broadcasts", "broadcasts", get=broadcasts.list_broadcasts, post=broadcasts.create_broadcast
    ),
    route("broadcasts/preview", "broadcast-preview", post=broadcasts.preview_broadcast),
    route("broadcasts/awaiting", "broadcasts-awaiting", get=broadcasts.list_awaiting_broadcasts),
    route(BROADCAST, "broadcast", get=broadcasts.get_broadcast, put=broadcasts.put_broadcast),
    route(f"{BROADCAST}/submit", "broadcast-submit", post=broadcasts.submit_broadcast),
    route(f"{BROADCAST}/review", "broadcast-review", get=broadcasts.review_broadcast),
    route(f"{BROADCAST}/approve", "broadcast-approve", post=broadcasts.approve_broadcast),
    route(f"{BROADCAST}/reject", "broadcast-reject", post=broadcasts.reject_broadcast),
    route(f"{BROADCAST}/override", "broadcast-override", post=broadcasts.override_broadcast),
    route(f"{BROADCAST}/pause", "broadcast-pause", post=broadcasts.pause_broadcast),
    route(f"{BROADCAST}/resume", "broadcast-resume", post=broadcasts.resume_broadcast),
    route(f"{BROADCAST}/cancel", "broadcast-cancel", post=broadcasts.cancel_broadcast),
    route("files", "files", get=files.list_files, post=files.create_file),
    route(FILE, "file", get=files.get_file, delete=files.remove_file),
    route(rf"{FILE}/chunks/(?P<number>[0-9]{{1,2}})", "file-chunk", put=files.put_file_chunk),
    route(f"{FILE}/check", "file-check", post=files.check_file),
    route(f"{FILE}/wrong_rows", "file-wrong-rows", get=files.get_file_wrong_rows),
    route(f"{FILE}/results", "file-results", get=files.get_file_results),
    route(
        "test/clock",
        "test-clock",
        get=test_clock.get_test_clock,
        post=test_clock.move_test_clock,
        delete=test_clock.reset_test_clock,
    ),
    route(
        "test/outbox",
        "test-outbox",
        get=test_outbox.list_test_outbox,
        delete=test_outbox.clear_test_outbox,
    ),
    route("digests", "digests", get=digests.list_digests),
    route(DIGEST, "digest", get=digests.get_digest),
    route(f"{DIGEST}/close", "digest-close", post=digests.close_digest),
    route(f"{DIGEST}/cancel", "digest-cancel", post=digests.cancel_digest),
    route("limits", "limits", get=limits.list_limits),
    route("rooms", "rooms", get=rooms.list_rooms),
    route(
        r"limits/(?P<name>[^/]{1,64})",
        "limit",
        get=limits.get_limit,
        put=limits.put_limit,
        delete=limits.remove_limit,
    ),
    route("recipients", "recipients", get=recipients.list_recipients),
    route(f"recipients/{USER}/limits", "recipient-limits", get=limits.list_recipient_limits),
    route(
        rf"recipients/{USER}/limits/(?P<name>[^/]{{1,64}})",
        "recipient-limit",
        put=limits.put_recipient_limit,
        delete=limits.remove_recipient_limit,
    ),
    route(
        f"recipients/{USER}/notifications", "history", get=recipients.list_recipient_notifications
    ),
    route(
        f"recipients/{USER}/notifications/read-all",
        "read-all",
        post=recipients.read_all_recipient_notifications,
    ),
    route(
        f"recipients/{USER}",
        "recipient",
        get=recipients.get_recipient,
        put=recipients.put_recipient,
        delete=recipients.erase_recipient,
    ),
    route(f"recipients/{USER}/export", "recipient-export", get=recipients.export_recipient),
    route(
        f"recipients/{USER}/preferences",
        "recipient-preferences",
        get=recipients.get_preferences,
        put=recipients.put_preferences,
    ),
    route("topics", "topics", get=topics.list_topics),
    route(f"{TOPIC}/members", "topic-members", get=topics.list_topic_members),
    route(
        f"{TOPIC}/members/{USER}", "topic-member", put=topics.join_topic, delete=topics.leave_topic
    ),
    route("suppressions", "suppressions", get=suppressions.list_suppressions),
    route(
        f"suppressions/{ADDRESS}",
        "suppression",
        get=suppressions.get_suppressions,
        put=suppressions.put_suppression,
        delete=suppressions.lift_suppression,
    ),
    route(
        "type-files", "type-files", get=type_files.list_type_files, post=type_files.push_type_files
    ),
    route("design", "design", get=design.get_design, post=design.change_design),
    route("type-files/lint", "type-files-lint", post=type_files.lint_type_files),
    route("types", "types", get=types.list_types),
    route(TYPE, "type", get=types.get_type, put=types.put_type),
    route(
        f"{TYPE}/templates",
        "templates",
        get=types.list_template_versions,
        post=types.create_template_version,
    ),
    route(VERSION, "template-version", get=types.get_template_version),
    route(f"{VERSION}/publish", "template-publish", post=types.publish_template_version),
    route(
        "callbacks",
        "callbacks",
        get=callbacks.get_callback,
        put=callbacks.put_callback,
        delete=callbacks.delete_callback,
    ),
    route("callbacks/secret", "callback-secret", post=callbacks.rotate_callback_secret),
    route("callbacks/test", "callback-test", post=callbacks.test_callback),
    route("callbacks/deliveries", "callback-deliveries", get=callbacks.list_callback_deliveries),
    route(
        r"callbacks/deliveries/(?P<delivery_id>[^/]{1,120})/replay",
        "callback-replay",
        post=callbacks.replay_callback_delivery,
    ),
    route("devices", "devices", get=devices.list_devices, put=devices.register_device),
    route(
        f"devices/{DEVICE}",
        "device",
        get=devices.get_device,
        patch=devices.change_device,
        delete=devices.remove_device,
    ),
    route(f"devices/{DEVICE}/heartbeat", "device-heartbeat", post=devices.device_heartbeat),
    route(
        f"devices/{DEVICE}/preferences", "device-preferences", put=devices.set_device_preferences
    ),
    route(
        f"devices/{DEVICE}/receipts",
        "device-receipts",
        base=BrowserEndpoint,
        post=devices.report_device_receipt,
    ),
    route(
        f"devices/{DEVICE}/subscription",
        "device-subscription",
        base=BrowserEndpoint,
        put=devices.replace_device_subscription,
    ),
    route("inbox", "inbox", get=inbox.list_inbox),
    route("inbox/counts", "inbox-counts", get=inbox.count_inbox),
    route("inbox/read-all", "inbox-read-all", post=inbox.read_all_inbox),
    route("inbox/stream", "inbox-stream", get=inbox.stream_inbox),
    route(
        "inbox/tokens",
        "inbox-tokens",
        post=tokens.issue_inbox_token,
        delete=tokens.revoke_inbox_tokens,
    ),
    route(r"inbox/tokens/(?P<jti>[^/]{1,64})", "inbox-token", delete=tokens.revoke_inbox_token),
    route(f"inbox/{ID}/read", "inbox-read", post=inbox.read_inbox_item),
    route(f"inbox/{ID}/unread", "inbox-unread", post=inbox.unread_inbox_item),
    route(f"inbox/{ID}/archive", "inbox-archive", post=inbox.archive_inbox_item),
    route(f"inbox/{ID}/unarchive", "inbox-unarchive", post=inbox.unarchive_inbox_item),
    route(f"inbox/{ID}/snooze", "inbox-snooze", post=inbox.snooze_inbox_item),
    route(
        "inbox/preferences",
        "inbox-preferences",
        get=inbox_preferences.get_inbox_preferences,
        put=inbox_preferences.put_inbox_preferences,
    ),
    route(
        "inbox/push",
        "inbox-push",
        get=inbox_push.get_inbox_push,
        put=inbox_push.register_inbox_browser,
    ),
    route(f"inbox/push/{DEVICE}", "inbox-browser", delete=inbox_push.remove_inbox_browser),
    route(
        rf"inbox/{ID}/actions/(?P<action>[^/]{{1,32}})",
        "inbox-action",
        post=inbox.act_on_inbox_item,
    ),
    route(f"inbox/{ID}/unsnooze", "inbox-unsnooze", post=inbox.unsnooze_inbox_item),
]

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("api/schema", OpenAPIDocument.as_view(), name="schema"),
    path(
        "api/docs",
        # Its template has no part for OPTIONS.
        SpectacularSwaggerSplitView.as_view(url_name="schema", http_method_names=["get", "head"]),
        name="docs",
    ),
    path("api/v1/", include(version_1)),
    *webhooks.routes(),
    path("u/<str:token>", unsubscribe.Unsubscribe.as_view(), name="unsubscribe"),
    path("u/<str:token>/undo", unsubscribe.Resubscribe.as_view(), name="resubscribe"),
]
