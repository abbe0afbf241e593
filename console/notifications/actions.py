"""Actions on one notification: the form, the confirmation, the result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html

from domain.states import SUCCEEDED, BulkAction, Channel, DeliveryStatus
from domain.time import utc_now
from notifications import queries
from notifications.resend.actions import ActionResult, ChannelSelection, Staff, act_on_each
from notifications.resend.assessment import assess_risks
from notifications.resend.risk import ResendRisk
from notifications.store import Document

from ..widgets import names
from ..widgets.actions import require_post
from ..widgets.columns import delivery_chip
from ..widgets.labels import CHANNELS, RESEND_RISKS
from .summary import summarize

S = DeliveryStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class StaffAction:
    """Something staff may do to notifications."""

    name: str
    """Its place in URLs, and the action's name with ``_selected``."""
    verb: str
    button: str
    """What is written on its button."""
    action: BulkAction
    statuses: frozenset[DeliveryStatus]
    """The channels it is about, by where they stand."""
    consequence: str
    done_phrase: str
    """What to say after it was done to a number of notifications."""
    permission: str
    has_channel_choice: bool = False
    has_time_input: bool = False
    """The form has a field for the send time."""
    shows_resend_risk: bool = False
    """It sends again what was sent or tried: each channel's verdict is told first."""
    is_for_scheduled: bool = False
    """It is about channels only whose time lies in the future."""
    is_for_unattempted: bool = False
    """It is about channels only that nothing was tried on."""

    def applies_to(self, delivery: Mapping[str, Any], *, now: datetime) -> bool:
        """Return whether one channel of a notification is among what it is about."""
        if delivery["status"] not in self.statuses:
            return False
        if self.is_for_unattempted and delivery["attempt_count"]:
            return False
        at = delivery.get("next_attempt_at")
        return not self.is_for_scheduled or (at is not None and at > now)


RETRY = StaffAction(
    name="retry",
    verb="Retry",
    button="Retry failed channels",
    action=BulkAction.RETRY,
    statuses=frozenset({S.FAILED}),
    consequence="What failed is tried again now, on the same notification.",
    done_phrase="tried again now",
    permission="notifications.retry_notification",
    shows_resend_risk=True,
)
RESEND = StaffAction(
    name="resend",
    verb="Resend",
    button="Resend",
    action=BulkAction.RESEND,
    statuses=frozenset(DeliveryStatus),
    consequence="A new notification that says the same is sent now, and linked to this one.",
    done_phrase="sent again as a new notification",
    permission="notifications.resend_notification",
    has_channel_choice=True,
    shows_resend_risk=True,
)
CANCEL = StaffAction(
    name="cancel",
    verb="Cancel",
    button="Cancel what is pending",
    action=BulkAction.CANCEL,
    statuses=frozenset({S.PENDING}),
    consequence="What has not been sent is withdrawn for good. What is on its way goes out.",
    done_phrase="withdrawn",
    permission="notifications.cancel_notification",
)
SEND_NOW = StaffAction(
    name="run",
    verb="Run now",
    button="Run now",
    action=BulkAction.RUN_NOW,
    statuses=frozenset({S.PENDING}),
    consequence="What waits is due now. Quiet hours, suppressions and an expiry hold all the same.",
    done_phrase="due now",
    permission="notifications.reschedule_notification",
    is_for_scheduled=True,
)
RESCHEDULE = StaffAction(
    name="reschedule",
    verb="Reschedule",
    button="Reschedule",
    action=BulkAction.RESCHEDULE,
    statuses=frozenset({S.PENDING}),
    consequence="It is sent at the time you choose. What was tried already keeps its times.",
    done_phrase="scheduled anew",
    permission="notifications.reschedule_notification",
    has_time_input=True,
    is_for_unattempted=True,
)
STAFF_ACTIONS = (RETRY, RESEND, SEND_NOW, RESCHEDULE, CANCEL)
TEMPLATE = "admin/notifications/notification/confirm.html"
LIST = "admin:notifications_notification_changelist"
DETAIL = "admin:notifications_notification_change"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationChannel:
    """One channel of a notification, as the question shows it."""

    channel: Channel
    name: str
    chip: str
    risk: str
    color: str
    risk_reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationItem:
    """One notification, as the question shows it, with the channels that it is about."""

    id: ObjectId
    type: str
    user_id: str | None
    summary: str
    channels: Sequence[ConfirmationChannel]


def parse_id(text: str) -> ObjectId | None:
    """Return the id a URL names, None if it is none."""
    return ObjectId(text) if ObjectId.is_valid(text) else None


def run_on_selected(
    admin: Any, request: HttpRequest, queryset: QuerySet, action: StaffAction
) -> HttpResponse | None:
    """Ask about the ticked notifications, or do it and return None: the list comes next."""
    ids = [row.pk for row in queryset.only("pk")[: admin.list_per_page]]
    if not _is_confirmed(request):
        return _confirmation_page(admin, request, action, ids, is_single=False)
    outcome = _run(action, request, ids)
    if outcome is not None:
        _show_result(request, action, outcome)
    return None


def run_on_one(
    admin: Any, request: HttpRequest, object_id: str, action: StaffAction
) -> HttpResponse:
    """Ask about one notification, or do it; POST only."""
    if refused := require_post(
        request,
        allowed=admin.has_view_permission(request) and request.user.has_perm(action.permission),
    ):
        return refused
    notification_id = parse_id(object_id)
    if notification_id is None or queries.get(notification_id=notification_id) is None:
        messages.warning(request, "There is no such notification.")
        return HttpResponseRedirect(reverse(LIST))
    if not _is_confirmed(request):
        return _confirmation_page(admin, request, action, [notification_id], is_single=True)
    outcome = _run(action, request, [notification_id])
    if outcome is not None:
        _show_result(request, action, outcome)
    return HttpResponseRedirect(reverse(DETAIL, args=[notification_id]))


def confirmation_items(
    documents: Sequence[Document], action: StaffAction
) -> list[ConfirmationItem]:
    """Return what the question shows of each notification."""
    types = names.type_names({document["type"] for document in documents})
    now = utc_now()
    risks = assess_risks(documents, now=now)
    return [
        ConfirmationItem(
            id=document["_id"],
            type=types[document["type"]],
            user_id=document.get("user_id"),
            summary=summarize(document, now=now),
            channels=[
                _channel(d, risks[(document["_id"], Channel(d["channel"]))])
                for d in document["delivery"]
                if action.applies_to(d, now=now)
            ],
        )
        for document in documents
    ]


def _channel(delivery: Mapping[str, Any], risk: ResendRisk) -> ConfirmationChannel:
    channel = Channel(delivery["channel"])
    label, color = RESEND_RISKS[risk.kind]
    return ConfirmationChannel(
        channel=channel,
        name=CHANNELS[channel],
        chip=delivery_chip(delivery["status"]),
        risk=label,
        color=color,
        risk_reason=risk.reason,
    )


def _confirmation_page(
    admin: Any,
    request: HttpRequest,
    action: StaffAction,
    ids: Sequence[ObjectId],
    *,
    is_single: bool,
) -> TemplateResponse:
    order = {notification_id: place for place, notification_id in enumerate(ids)}
    documents = sorted(queries.get_many(ids), key=lambda document: order[document["_id"]])
    items = confirmation_items(documents, action)
    context = {
        **admin.admin_site.each_context(request),
        "title": f"{action.verb}?",
        "opts": admin.opts,
        "action": action,
        "items": items,
        "is_single": is_single,
        "channel_choices": _choices(documents),
        "action_checkbox_name": ACTION_CHECKBOX_NAME,
        "back": reverse(DETAIL, args=[ids[0]]) if is_single else request.get_full_path(),
    }
    request.current_app = admin.admin_site.name
    return TemplateResponse(request, TEMPLATE, context)


def _choices(documents: Sequence[Document]) -> list[dict[str, Any]]:
    """Return the channels to choose from; those that did not succeed are chosen to begin with."""
    missing = {
        d["channel"]
        for document in documents
        for d in document["delivery"]
        if d["status"] not in SUCCEEDED
    }
    had = {d["channel"] for document in documents for d in document["delivery"]}
    return [
        {"value": channel.value, "name": CHANNELS[channel], "chosen": channel in missing}
        for channel in Channel
        if channel in had
    ]


def _is_confirmed(request: HttpRequest) -> bool:
    return request.POST.get("confirmed") == "yes"


def _run(action: StaffAction, request: HttpRequest, ids: Sequence[ObjectId]) -> ActionResult | None:
    """Do it; None if no channel or no time was chosen, which the user is told."""
    selection: ChannelSelection = dict.fromkeys(ids)
    send_at: datetime | None = None
    if action.has_time_input:
        try:
            at = datetime.fromisoformat(request.POST.get("at", ""))
        except ValueError:
            messages.error(request, "Nothing was done: write the time such as 2026-12-01T09:00.")
            return None
        send_at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    if action.has_channel_choice:
        known = {channel.value for channel in Channel}
        chosen = [Channel(c) for c in request.POST.getlist("channels") if c in known]
        if not chosen:
            messages.error(request, f"Nothing was done: choose a channel to {action.name} on.")
            return None
        include_succeeded = len(ids) == 1 or request.POST.get("again") == "yes"
        selection = _resend_selection(ids, chosen, include_succeeded=include_succeeded)
    staff = Staff(id=request.user.pk, username=request.user.get_username())
    return act_on_each(action.action, selection, by=staff, now=utc_now(), send_at=send_at)


def _resend_selection(
    ids: Sequence[ObjectId], chosen: Sequence[Channel], *, include_succeeded: bool
) -> ChannelSelection:
    """Return each notification with those of the chosen channels that it had.

    ``again``: also the channels on which it went out already.
    """
    done = (
        frozenset[str]() if include_succeeded else frozenset(status.value for status in SUCCEEDED)
    )
    found = {
        document["_id"]: {d["channel"] for d in document["delivery"] if d["status"] not in done}
        for document in queries.get_many(ids)
    }
    return {one: [c for c in chosen if c in found.get(one, chosen)] for one in ids}


def _show_result(request: HttpRequest, action: StaffAction, result: ActionResult) -> None:
    count = len(result.done)
    if action is RESEND and count == 1:
        link = reverse(DETAIL, args=[result.done[0]])
        text = format_html('It is {}: <a href="{}">open it</a>.', action.done_phrase, link)
        messages.success(request, text)
    elif count:
        are = "notification is" if count == 1 else "notifications are"
        messages.success(request, f"{count} {are} {action.done_phrase}.")
    if result.refused:
        left = len(result.refused)
        was = "One was" if left == 1 else f"{left} were"
        messages.warning(request, f"{was} left as before: {' '.join(result.reasons)}")
