"""Actions on one notification: the form, the confirmation, the result."""

from collections.abc import Callable, Mapping, Sequence
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

from domain.states import SUCCEEDED, Channel, DeliveryStatus
from domain.time import utc_now
from notifications import queries
from notifications.resend.assessment import assess_risks
from notifications.resend.risk import ResendRisk
from notifications.store import Document

from .. import staff_actions
from ..staff_actions import Outcome, Staff, Work
from ..widgets import names
from ..widgets.actions import refusal
from ..widgets.columns import delivery_chip
from ..widgets.labels import CHANNELS, VERDICTS
from .summary import headline

S = DeliveryStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Something staff may do to notifications."""

    name: str
    """Its place in URLs, and the action's name with ``_selected``."""
    verb: str
    button: str
    """What is written on its button."""
    run: Callable[..., Outcome]
    concerns: frozenset[DeliveryStatus]
    """The channels it is about, by where they stand."""
    consequence: str
    done: str
    """What to say after it was done to a number of notifications."""
    permission: str
    chooses_channels: bool = False
    asks_time: bool = False
    """It asks when; :attr:`run` is told, as ``at``."""
    is_judged: bool = False
    """It sends again what was sent or tried: each channel's verdict is told first."""
    is_for_what_waits: bool = False
    """It is about channels only whose time lies in the future."""
    is_for_untried: bool = False
    """It is about channels only that nothing was tried on."""

    def is_about(self, delivery: Mapping[str, Any], *, now: datetime) -> bool:
        """Return whether one channel of a notification is among what it is about."""
        if delivery["status"] not in self.concerns:
            return False
        if self.is_for_untried and delivery["attempt_count"]:
            return False
        at = delivery.get("next_attempt_at")
        return not self.is_for_what_waits or (at is not None and at > now)


RETRY = Operation(
    name="retry",
    verb="Retry",
    button="Retry failed channels",
    run=staff_actions.retry,
    concerns=frozenset({S.FAILED}),
    consequence="What failed is tried again now, on the same notification.",
    done="tried again now",
    permission="notifications.retry_notification",
    is_judged=True,
)
RESEND = Operation(
    name="resend",
    verb="Resend",
    button="Resend",
    run=staff_actions.resend,
    concerns=frozenset(DeliveryStatus),
    consequence="A new notification that says the same is sent now, and linked to this one.",
    done="sent again as a new notification",
    permission="notifications.resend_notification",
    chooses_channels=True,
    is_judged=True,
)
CANCEL = Operation(
    name="cancel",
    verb="Cancel",
    button="Cancel what is pending",
    run=staff_actions.cancel,
    concerns=frozenset({S.PENDING}),
    consequence="What has not been sent is withdrawn for good. What is on its way goes out.",
    done="withdrawn",
    permission="notifications.cancel_notification",
)
RUN = Operation(
    name="run",
    verb="Run now",
    button="Run now",
    run=staff_actions.run_now,
    concerns=frozenset({S.PENDING}),
    consequence="What waits is due now. Quiet hours, suppressions and an expiry hold all the same.",
    done="due now",
    permission="notifications.reschedule_notification",
    is_for_what_waits=True,
)
RESCHEDULE = Operation(
    name="reschedule",
    verb="Reschedule",
    button="Reschedule",
    run=staff_actions.reschedule,
    concerns=frozenset({S.PENDING}),
    consequence="It is sent at the time you choose. What was tried already keeps its times.",
    done="scheduled anew",
    permission="notifications.reschedule_notification",
    asks_time=True,
    is_for_untried=True,
)
OPERATIONS = (RETRY, RESEND, RUN, RESCHEDULE, CANCEL)
TEMPLATE = "admin/notifications/notification/confirm.html"
LIST = "admin:notifications_notification_changelist"
DETAIL = "admin:notifications_notification_change"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelAsked:
    """One channel of a notification, as the question shows it."""

    channel: Channel
    name: str
    chip: str
    verdict: str
    tone: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One notification, as the question shows it, with the channels that it is about."""

    id: ObjectId
    type: str
    user_id: str | None
    headline: str
    channels: Sequence[ChannelAsked]


def parse_id(text: str) -> ObjectId | None:
    """Return the id a URL names, None if it is none."""
    return ObjectId(text) if ObjectId.is_valid(text) else None


def on_selected(
    admin: Any, request: HttpRequest, queryset: QuerySet, operation: Operation
) -> HttpResponse | None:
    """Ask about the ticked notifications, or do it and return None: the list comes next."""
    ids = [row.pk for row in queryset.only("pk")[: admin.list_per_page]]
    if not _is_confirmed(request):
        return _question(admin, request, operation, ids, single=False)
    outcome = _run(operation, request, ids)
    if outcome is not None:
        _tell(request, operation, outcome)
    return None


def on_one(admin: Any, request: HttpRequest, object_id: str, operation: Operation) -> HttpResponse:
    """Ask about one notification, or do it; POST only."""
    if refused := refusal(
        request,
        may=admin.has_view_permission(request) and request.user.has_perm(operation.permission),
    ):
        return refused
    notification_id = parse_id(object_id)
    if notification_id is None or queries.get(notification_id=notification_id) is None:
        messages.warning(request, "There is no such notification.")
        return HttpResponseRedirect(reverse(LIST))
    if not _is_confirmed(request):
        return _question(admin, request, operation, [notification_id], single=True)
    outcome = _run(operation, request, [notification_id])
    if outcome is not None:
        _tell(request, operation, outcome)
    return HttpResponseRedirect(reverse(DETAIL, args=[notification_id]))


def asked_about(documents: Sequence[Document], operation: Operation) -> list[Asked]:
    """Return what the question shows of each notification."""
    types = names.of_types({document["type"] for document in documents})
    now = utc_now()
    judged = assess_risks(documents, now=now)
    return [
        Asked(
            id=document["_id"],
            type=types[document["type"]],
            user_id=document.get("user_id"),
            headline=headline(document, now=now),
            channels=[
                _channel(d, judged[(document["_id"], Channel(d["channel"]))])
                for d in document["delivery"]
                if operation.is_about(d, now=now)
            ],
        )
        for document in documents
    ]


def _channel(delivery: Mapping[str, Any], judged: ResendRisk) -> ChannelAsked:
    channel = Channel(delivery["channel"])
    words, tone = VERDICTS[judged.kind]
    return ChannelAsked(
        channel=channel,
        name=CHANNELS[channel],
        chip=delivery_chip(delivery["status"]),
        verdict=words,
        tone=tone,
        why=judged.why,
    )


def _question(
    admin: Any,
    request: HttpRequest,
    operation: Operation,
    ids: Sequence[ObjectId],
    *,
    single: bool,
) -> TemplateResponse:
    order = {notification_id: place for place, notification_id in enumerate(ids)}
    documents = sorted(queries.get_many(ids), key=lambda document: order[document["_id"]])
    asked = asked_about(documents, operation)
    context = {
        **admin.admin_site.each_context(request),
        "title": f"{operation.verb}?",
        "opts": admin.opts,
        "operation": operation,
        "asked": asked,
        "single": single,
        "channel_choices": _choices(documents),
        "action_checkbox_name": ACTION_CHECKBOX_NAME,
        "back": reverse(DETAIL, args=[ids[0]]) if single else request.get_full_path(),
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


def _run(operation: Operation, request: HttpRequest, ids: Sequence[ObjectId]) -> Outcome | None:
    """Do it; None if no channel or no time was chosen, which the user is told."""
    work: Work = dict.fromkeys(ids)
    chosen_time: dict[str, datetime] = {}
    if operation.asks_time:
        try:
            at = datetime.fromisoformat(request.POST.get("at", ""))
        except ValueError:
            messages.error(request, "Nothing was done: write the time such as 2026-12-01T09:00.")
            return None
        chosen_time["at"] = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    if operation.chooses_channels:
        known = {channel.value for channel in Channel}
        chosen = [Channel(c) for c in request.POST.getlist("channels") if c in known]
        if not chosen:
            messages.error(request, f"Nothing was done: choose a channel to {operation.name} on.")
            return None
        again = len(ids) == 1 or request.POST.get("again") == "yes"
        work = _resends(ids, chosen, again=again)
    staff = Staff(id=request.user.pk, username=request.user.get_username())
    return operation.run(work, by=staff, now=utc_now(), **chosen_time)


def _resends(ids: Sequence[ObjectId], chosen: Sequence[Channel], *, again: bool) -> Work:
    """Return each notification with those of the chosen channels that it had.

    ``again``: also the channels on which it went out already.
    """
    done = frozenset[str]() if again else frozenset(status.value for status in SUCCEEDED)
    found = {
        document["_id"]: {d["channel"] for d in document["delivery"] if d["status"] not in done}
        for document in queries.get_many(ids)
    }
    return {one: [c for c in chosen if c in found.get(one, chosen)] for one in ids}


def _tell(request: HttpRequest, operation: Operation, outcome: Outcome) -> None:
    count = len(outcome.done)
    if operation is RESEND and count == 1:
        link = reverse(DETAIL, args=[outcome.done[0]])
        text = format_html('It is {}: <a href="{}">open it</a>.', operation.done, link)
        messages.success(request, text)
    elif count:
        are = "notification is" if count == 1 else "notifications are"
        messages.success(request, f"{count} {are} {operation.done}.")
    if outcome.refused:
        left = len(outcome.refused)
        was = "One was" if left == 1 else f"{left} were"
        messages.warning(request, f"{was} left as before: {' '.join(outcome.reasons)}")
