"""Actions of staff on notifications: confirmation, execution, audit and result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import DELETION
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html

from domain.states import SUCCEEDED, BulkAction, Channel, DeliveryStatus
from domain.time import utc_now
from notifications import queries, store
from notifications.resend.actions import ActionResult, ChannelSelection, act_on_each
from notifications.resend.assessment import assess_risks
from notifications.resend.retries import LIFTABLE_STATUSES, liftable_channels
from notifications.resend.risk import ResendRisk
from notifications.store import Document
from recipients import suppressions
from recipients.masking import mask_address
from recipients.models import Suppression

from ..texts.labels import CHANNELS, RESEND_RISKS, delivery_state
from ..widgets import names
from ..widgets.actions import (
    is_confirmed,
    not_found,
    parse_id,
    record_change,
    render_page,
    require_post,
    staff_of,
)
from ..widgets.columns import chip
from ..widgets.formats import count_of
from ..widgets.links import NOTIFICATION, NOTIFICATIONS
from .summary import summarize

S = DeliveryStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class StaffAction:
    """An action of staff on notifications."""

    name: str  # Its segment in URLs; the admin's action is ``{name}_selected``
    button: str
    question: str  # Heading of the confirmation, with a placeholder for the notifications
    action: BulkAction
    statuses: frozenset[DeliveryStatus]
    consequence: str
    done_phrase: str
    permission: str
    has_channel_choice: bool = False
    has_time_input: bool = False
    shows_resend_risk: bool = False
    is_for_scheduled: bool = False  # It applies only to deliveries with a due time in the future
    is_for_unattempted: bool = False
    lifts_suppressions: bool = False  # It lifts those of the addresses that it sends to

    def is_permitted(self, user: Any) -> bool:
        """Return whether the user may run the action."""
        more = ("recipients.delete_suppression",) if self.lifts_suppressions else ()
        return bool(user.has_perms((self.permission, *more)))

    def applies_to(self, delivery: Mapping[str, Any], *, now: datetime) -> bool:
        """Return whether the action applies to a delivery."""
        if delivery["status"] not in self.statuses:
            return False
        if self.is_for_unattempted and delivery["attempt_count"]:
            return False
        at = delivery.get("next_attempt_at")
        return not self.is_for_scheduled or (at is not None and at > now)


RETRY = StaffAction(
    name="retry",
    button="Retry failed channels",
    question="Retry {}?",
    action=BulkAction.RETRY,
    statuses=frozenset({S.FAILED}),
    consequence="Retries the failed channels of this notification.",
    done_phrase="requeued",
    permission="notifications.retry_notification",
    shows_resend_risk=True,
)
RESEND = StaffAction(
    name="resend",
    button="Resend",
    question="Resend {}?",
    action=BulkAction.RESEND,
    statuses=frozenset(DeliveryStatus),
    consequence="Sends a copy as a new, linked notification.",
    done_phrase="resent",
    permission="notifications.resend_notification",
    has_channel_choice=True,
    shows_resend_risk=True,
)
LIFT_AND_RESEND = StaffAction(
    name="lift",
    button="Lift suppression and resend",
    question="Lift suppression and resend {}?",
    action=BulkAction.RESEND,
    statuses=LIFTABLE_STATUSES,
    consequence="Lifts the bounce or manual suppression of the address, for all notifications to "
    "it, and sends a copy as a new, linked notification.",
    done_phrase="resent",
    permission="notifications.resend_notification",
    lifts_suppressions=True,
)
CANCEL = StaffAction(
    name="cancel",
    button="Cancel pending",
    question="Cancel {}?",
    action=BulkAction.CANCEL,
    statuses=frozenset({S.PENDING}),
    consequence="Permanently cancels pending deliveries. Sends in progress complete.",
    done_phrase="cancelled",
    permission="notifications.cancel_notification",
)
SEND_NOW = StaffAction(
    name="run",
    button="Send now",
    question="Send {} now?",
    action=BulkAction.RUN_NOW,
    statuses=frozenset({S.PENDING}),
    consequence="Makes pending deliveries due now. Quiet hours, suppressions, and expiry still "
    "apply.",
    done_phrase="due now",
    permission="notifications.reschedule_notification",
    is_for_scheduled=True,
)
RESCHEDULE = StaffAction(
    name="reschedule",
    button="Reschedule",
    question="Reschedule {}?",
    action=BulkAction.RESCHEDULE,
    statuses=frozenset({S.PENDING}),
    consequence="Changes the send time of deliveries without attempts.",
    done_phrase="rescheduled",
    permission="notifications.reschedule_notification",
    has_time_input=True,
    is_for_unattempted=True,
)
STAFF_ACTIONS = (RETRY, RESEND, LIFT_AND_RESEND, SEND_NOW, RESCHEDULE, CANCEL)
RESTORE = "notifications.restore_notification"
"""The permission to undo a client's deletion."""


def selected_action(action: StaffAction, permission: str) -> Callable[..., Any]:
    """Return the admin action that runs on the selected rows, after a confirmation."""

    @admin.action(description=action.button, permissions=[permission])
    def run(model_admin: Any, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        ids = [row.pk for row in queryset.only("pk")[: model_admin.list_per_page]]
        if not is_confirmed(request):
            return _confirmation_page(model_admin, request, action, ids, is_single=False)
        _run(action, request, ids)
        return None

    return run


def run_on_one(
    model_admin: Any, request: HttpRequest, object_id: str, action: StaffAction
) -> HttpResponse:
    """Show the confirmation for one notification; once confirmed, run the action. POST only."""
    if refused := require_post(
        request,
        allowed=model_admin.has_view_permission(request) and action.is_permitted(request.user),
    ):
        return refused
    notification_id = parse_id(object_id)
    if notification_id is None or queries.get(notification_id=notification_id) is None:
        return not_found(request, "Notification", NOTIFICATIONS)
    if not is_confirmed(request):
        return _confirmation_page(model_admin, request, action, [notification_id], is_single=True)
    _run(action, request, [notification_id])
    return HttpResponseRedirect(reverse(NOTIFICATION, args=[notification_id]))


def _confirmation_items(documents: Sequence[Document], action: StaffAction) -> list[dict[str, Any]]:
    types = names.type_names({document["type"] for document in documents})
    now = utc_now()
    risks = assess_risks(documents, now=now)
    liftable = {
        document["_id"]: liftable_channels(document, now=now)
        for document in documents
        if action.lifts_suppressions
    }
    return [
        {
            "id": document["_id"],
            "type": types[document["type"]],
            "user_id": document.get("user_id"),
            "summary": summarize(document, now=now),
            "channels": [
                _channel(d, risks[document["_id"], Channel(d["channel"])], now=now)
                for d in document["delivery"]
                if action.applies_to(d, now=now)
                and (not action.lifts_suppressions or d["channel"] in liftable[document["_id"]])
            ],
        }
        for document in documents
    ]


def _channel(delivery: Mapping[str, Any], risk: ResendRisk, *, now: datetime) -> dict[str, str]:
    label, color = RESEND_RISKS[risk.kind]
    return {
        "name": CHANNELS[Channel(delivery["channel"])],
        "chip": chip(*delivery_state(delivery, now=now)),
        "risk": label.lower(),
        "color": color,
        "risk_reason": risk.reason,
    }


def _confirmation_page(
    model_admin: Any,
    request: HttpRequest,
    action: StaffAction,
    ids: Sequence[ObjectId],
    *,
    is_single: bool,
) -> TemplateResponse:
    order = {notification_id: place for place, notification_id in enumerate(ids)}
    documents = sorted(queries.get_many(ids), key=lambda document: order[document["_id"]])
    subject = "this notification" if is_single else count_of(len(documents), "notification")
    return render_page(
        model_admin,
        request,
        "console/notifications/confirm.html",
        title=action.question.format(subject),
        action=action,
        items=_confirmation_items(documents, action),
        is_single=is_single,
        channel_choices=_choices(documents),
        action_checkbox_name=ACTION_CHECKBOX_NAME,
        back=reverse(NOTIFICATION, args=[ids[0]]) if is_single else request.get_full_path(),
    )


def _choices(documents: Sequence[Document]) -> list[dict[str, Any]]:
    deliveries = [d for document in documents for d in document["delivery"]]
    missing = {d["channel"] for d in deliveries if d["status"] not in SUCCEEDED}
    had = {d["channel"] for d in deliveries}
    return [
        {"value": channel.value, "name": CHANNELS[channel], "chosen": channel in missing}
        for channel in Channel
        if channel in had
    ]


def _run(action: StaffAction, request: HttpRequest, ids: Sequence[ObjectId]) -> None:
    selection: ChannelSelection = dict.fromkeys(ids)
    send_at: datetime | None = None
    if action.has_time_input:
        try:
            send_at = datetime.fromisoformat(request.POST.get("at", ""))
        except ValueError:
            messages.error(request, "No change: enter the time as 2026-12-01T09:00.")
            return
        send_at = send_at if send_at.tzinfo else send_at.replace(tzinfo=UTC)
    if action.has_channel_choice:
        known = {channel.value for channel in Channel}
        chosen = [Channel(c) for c in request.POST.getlist("channels") if c in known]
        if not chosen:
            messages.error(request, f"No change: select a channel to {action.name} on.")
            return
        include_succeeded = len(ids) == 1 or request.POST.get("again") == "yes"
        selection = _resend_selection(ids, chosen, include_succeeded=include_succeeded)
    if action.lifts_suppressions:
        selection = {one["_id"]: _lift(request, one) for one in queries.get_many(ids)}
    result = act_on_each(
        action.action, selection, by=staff_of(request), now=utc_now(), send_at=send_at
    )
    _show_result(request, action, result)


def _lift(request: HttpRequest, document: Document) -> list[Channel]:
    """Lift the suppressions of a notification's addresses; return their channels."""
    recipient = store.recipient_of(document)
    channels = liftable_channels(document, now=utc_now())
    for channel in channels:
        address = recipient.address(channel) or ""
        for reason in suppressions.lift(
            channel=channel.value, address=address, reasons=sorted(suppressions.OPERATOR_REASONS)
        ):
            record_change(
                request,
                Suppression,
                suppressions.suppression_id(channel.value, address, reason),
                f"Lifted to resend {document['_id']}.",
                name=f"{CHANNELS[channel]} {mask_address(address)}",
                flag=DELETION,
            )
    return channels


def _resend_selection(
    ids: Sequence[ObjectId], chosen: Sequence[Channel], *, include_succeeded: bool
) -> ChannelSelection:
    done = (
        frozenset[str]() if include_succeeded else frozenset(status.value for status in SUCCEEDED)
    )
    found = {
        document["_id"]: {d["channel"] for d in document["delivery"] if d["status"] not in done}
        for document in queries.get_many(ids)
    }
    return {key: [c for c in chosen if c in found.get(key, chosen)] for key in ids}


def _show_result(request: HttpRequest, action: StaffAction, result: ActionResult) -> None:
    count = len(result.done)
    text = f"{count_of(count, 'notification')} {action.done_phrase}."
    if action.action is BulkAction.RESEND and count == 1:
        url = reverse(NOTIFICATION, args=[result.done[0]])
        messages.success(request, format_html('{} <a href="{}">View it</a>.', text, url))
    elif count:
        messages.success(request, text)
    if result.refused:
        messages.warning(request, f"{len(result.refused)} skipped: {' '.join(result.reasons)}")
