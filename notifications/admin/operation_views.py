"""Asking before an operation is carried out, and telling what became of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bson import ObjectId
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html

from notifyproject.db.collections import collection

from .. import queries
from ..states import SUCCEEDED, AttemptStatus, Channel, DeliveryStatus
from ..store import Document
from ..timing import utc_now
from . import names, operations
from .columns import delivery_chip
from .explanations import CHANNELS, VERDICT_TONES, Verdict
from .operations import Outcome, Staff, Work
from .sentences import headline, verdict

TEMPLATE = "admin/notifications/notification/confirm.html"
LIST = "admin:notifications_notification_changelist"
DETAIL = "admin:notifications_notification_change"
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
    chooses_channels: bool = False

    @property
    def permission(self) -> str:
        """The permission it needs."""
        return f"notifications.{self.name}_notification"


RETRY = Operation(
    name="retry",
    verb="Retry",
    button="Retry failed channels",
    run=operations.retry,
    concerns=frozenset({S.FAILED}),
    consequence="What failed is tried again now, on the same notification.",
    done="tried again now",
)
RESEND = Operation(
    name="resend",
    verb="Resend",
    button="Resend",
    run=operations.resend,
    concerns=frozenset(DeliveryStatus),
    consequence="A new notification that says the same is sent now, and linked to this one.",
    done="sent again as a new notification",
    chooses_channels=True,
)
CANCEL = Operation(
    name="cancel",
    verb="Cancel",
    button="Cancel what is pending",
    run=operations.cancel,
    concerns=frozenset({S.PENDING}),
    consequence="What has not been sent is withdrawn for good. What is on its way goes out.",
    done="withdrawn",
)
OPERATIONS = (RETRY, RESEND, CANCEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelAsked:
    """One channel of a notification, as the question shows it."""

    channel: Channel
    name: str
    chip: str
    verdict: Verdict
    tone: str
    why: str
    concerned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One notification, as the question shows it."""

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
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    if not (admin.has_view_permission(request) and request.user.has_perm(operation.permission)):
        raise PermissionDenied
    notification_id = parse_id(object_id)
    if notification_id is None or queries.one(notification_id=notification_id) is None:
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
    unknown = _ever_unknown([document["_id"] for document in documents])
    now = utc_now()
    return [
        Asked(
            id=document["_id"],
            type=types[document["type"]],
            user_id=document.get("user_id"),
            headline=headline(document, now=now),
            channels=[
                _channel(d, operation, (document["_id"], d["channel"]) in unknown)
                for d in document["delivery"]
            ],
        )
        for document in documents
    ]


def _channel(delivery: Mapping[str, Any], operation: Operation, in_doubt: bool) -> ChannelAsked:
    judged, why = verdict(delivery, ever_unknown=in_doubt)
    channel = Channel(delivery["channel"])
    return ChannelAsked(
        channel=channel,
        name=CHANNELS[channel],
        chip=delivery_chip(delivery["status"]),
        verdict=judged,
        tone=VERDICT_TONES[judged],
        why=why,
        concerned=delivery["status"] in operation.concerns,
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
    documents = sorted(queries.many(ids), key=lambda document: order[document["_id"]])
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
    """Do it; None if no channel was chosen, which the user is told."""
    work: Work = dict.fromkeys(ids)
    if operation.chooses_channels:
        known = {channel.value for channel in Channel}
        chosen = [Channel(c) for c in request.POST.getlist("channels") if c in known]
        if not chosen:
            messages.error(request, f"Nothing was done: choose a channel to {operation.name} on.")
            return None
        again = len(ids) == 1 or request.POST.get("again") == "yes"
        work = _resends(ids, chosen, again=again)
    staff = Staff(id=request.user.pk, username=request.user.get_username())
    return operation.run(work, by=staff, now=utc_now())


def _resends(ids: Sequence[ObjectId], chosen: Sequence[Channel], *, again: bool) -> Work:
    """Return each notification with those of the chosen channels that it had.

    ``again``: also the channels on which it went out already.
    """
    done = frozenset[str]() if again else frozenset(status.value for status in SUCCEEDED)
    found = {
        document["_id"]: {d["channel"] for d in document["delivery"] if d["status"] not in done}
        for document in queries.many(ids)
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


def _ever_unknown(ids: Sequence[ObjectId]) -> set[tuple[ObjectId, str]]:
    """Return the channels of which one attempt had an outcome nobody knows."""
    found = collection("delivery_attempts").find(
        {"notification_id": {"$in": list(ids)}, "status": AttemptStatus.UNKNOWN.value},
        {"notification_id": 1, "channel": 1},
    )
    return {(row["notification_id"], row["channel"]) for row in found}
