"""Actions of staff on notifications: confirmation, execution, audit and result."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from domain.addresses import InvalidAddressError
from domain.channels import ADDRESS_CHANNELS, Channel
from domain.states import SUCCEEDED, DeliveryStatus
from domain.time import utc_now
from notifications import queries
from notifications.actions.actions import (
    ActionResult,
    ChannelSelection,
    Correction,
    InvalidStateError,
    act_on_each,
    corrected_recipient,
)
from notifications.actions.assessment import assess_risks
from notifications.actions.retries import liftable_channels, retry_choices
from notifications.actions.risk import ResendRisk
from notifications.catalog.texts import price_of_text
from notifications.documents.notification import (
    DeliveryDocument,
    NotificationDocument,
)
from notifications.store.acceptance import recipient_document
from notifications.store.reading import recipient_of
from recipients import registration

from ..texts.labels import CHANNELS, RESEND_RISKS, delivery_state
from ..texts.staff_actions import CORRECT, LIFT_AND_RESEND, RETRY, SEND_NOW, StaffAction
from ..widgets import names
from ..widgets.actions import (
    is_confirmed,
    not_found,
    parse_id,
    render_page,
    require_post,
    staff_of,
)
from ..widgets.columns import chip
from ..widgets.formats import count_of
from ..widgets.links import NOTIFICATION, NOTIFICATIONS
from ..widgets.prices import price_text
from ..widgets.waits import find_pauses
from .send_now import Obstacles, find_obstacles
from .summary import summarize

S = DeliveryStatus
MAX_REASON = 200
MAX_REASONS = 5
"""Maximum of reasons in one message."""


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
    if action.needs_confirmation and not is_confirmed(request):
        return _confirmation_page(model_admin, request, action, [notification_id], is_single=True)
    done = _run(action, request, [notification_id])
    shown = done[0] if done and action.sends_copy else notification_id
    return HttpResponseRedirect(reverse(NOTIFICATION, args=[shown]))


def _confirmation_items(
    documents: Sequence[NotificationDocument], action: StaffAction, correction: Correction | None
) -> list[dict[str, Any]]:
    types = names.type_names({document["type"] for document in documents})
    now = utc_now()
    corrected = [correction.channel] if correction else []
    pauses = find_pauses()
    risks = assess_risks(documents, corrected=corrected, now=now)
    obstacles = find_obstacles(documents, now=now) if action is SEND_NOW else {}
    units = queries.sent_units([document["_id"] for document in documents if _pays(document)])
    return [
        {
            "id": document["_id"],
            "type": types[document["type"]],
            "user_id": document.get("user_id"),
            "summary": summarize(document, pauses=pauses, now=now),
            "channels": [
                _channel(d, risks[document["_id"], Channel(d["channel"])], now=now)
                | {"price": _price(document, d, units)}
                | {"outcome": _outcome(obstacles, document, d) if action is SEND_NOW else ""}
                for d in document["delivery"]
                if action.applies_to(d, now=now) and (not corrected or d["channel"] in corrected)
            ],
        }
        for document in _narrowed(documents, action, now=now)
    ]


def _pays(document: NotificationDocument) -> bool:
    return any(Channel(delivery["channel"]).pays_by_part for delivery in document["delivery"])


def _price(
    document: NotificationDocument,
    delivery: DeliveryDocument,
    units: Mapping[tuple[ObjectId, str], int],
) -> str:
    """Return what sending a delivery costs, by its earlier attempts; empty if it costs nothing."""
    channel = Channel(delivery["channel"])
    if not channel.pays_by_part:
        return ""
    known = units.get((document["_id"], channel.value))
    total = price_of_text(recipient_of(document).address(channel), units=known or 1)
    if total.price is None:
        return f"{capfirst(price_text(total))}."
    return f"Costs {price_text(total)}{'' if known else ' a part'}."


def _narrowed(
    documents: Sequence[NotificationDocument], action: StaffAction, *, now: datetime
) -> Sequence[NotificationDocument]:
    """Return the notifications with only those deliveries that the action concerns."""
    if action is LIFT_AND_RESEND:
        return _liftable(documents, now=now)
    if action is RETRY:
        choices = retry_choices(documents, now=now)
        return [
            {
                **document,
                "delivery": [d for d in document["delivery"] if choices[document["_id"]].covers(d)],
            }
            for document in documents
        ]
    return documents


def _outcome(
    obstacles: Obstacles, document: NotificationDocument, delivery: DeliveryDocument
) -> SafeString | str:
    """Return what Send now does to a delivery."""
    obstacle = obstacles.get((document["_id"], Channel(delivery["channel"])))
    return "Is sent." if obstacle is None else format_html("Stays held: {}.", obstacle)


def _liftable(
    documents: Sequence[NotificationDocument], *, now: datetime
) -> list[NotificationDocument]:
    """Return the notifications with only those deliveries whose suppression is lifted."""
    return [
        {
            **document,
            "delivery": [
                delivery
                for delivery in document["delivery"]
                if delivery["channel"] in liftable_channels(document, now=now)
            ],
        }
        for document in documents
    ]


def _channel(delivery: DeliveryDocument, risk: ResendRisk, *, now: datetime) -> dict[str, Any]:
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
) -> HttpResponse:
    order = {notification_id: place for place, notification_id in enumerate(ids)}
    documents = sorted(queries.get_many(ids), key=lambda document: order[document["_id"]])
    back = reverse(NOTIFICATION, args=[ids[0]]) if is_single else request.get_full_path()
    correction, may_update_profile = None, False
    if action is CORRECT:
        try:
            correction = _read_correction(request)
            recipient = corrected_recipient(documents[0], correction)
        except (_InputError, InvalidStateError) as problem:
            messages.error(request, f"No change: {problem}")
            return HttpResponseRedirect(back)
        may_update_profile = _is_in_profile(documents[0], correction.channel)
        documents = [{**documents[0], "recipient": recipient_document(recipient)}]
    subject = "this notification" if is_single else count_of(len(documents), "notification")
    return render_page(
        model_admin,
        request,
        "console/notifications/confirm.html",
        title=action.question.format(subject),
        consequence=action.consequence
        if is_single
        else action.consequence.replace("this notification", "these notifications"),
        action=action,
        items=_confirmation_items(documents, action, correction),
        is_single=is_single,
        channel_choices=_choices(documents),
        correction=correction,
        may_update_profile=may_update_profile,
        action_checkbox_name=ACTION_CHECKBOX_NAME,
        back=back,
    )


def _is_in_profile(document: NotificationDocument, channel: Channel) -> bool:
    """Return whether the recipient's profile contains the address of a notification's channel."""
    user_id = document.get("user_id")
    profile = registration.get(user_id) if user_id else None
    address = recipient_of(document).address(channel)
    return profile is not None and profile.get(channel.address_kind.field) == address


def _choices(documents: Sequence[NotificationDocument]) -> list[dict[str, Any]]:
    deliveries = [d for document in documents for d in document["delivery"]]
    missing = {d["channel"] for d in deliveries if d["status"] not in SUCCEEDED}
    had = {d["channel"] for d in deliveries}
    return [
        {"value": channel.value, "name": CHANNELS[channel], "chosen": channel in missing}
        for channel in Channel
        if channel in had
    ]


class _InputError(ValueError):
    """An input of a confirmation page is missing or invalid. The message says what to enter."""


def _run(action: StaffAction, request: HttpRequest, ids: Sequence[ObjectId]) -> list[ObjectId]:
    """Run an action, show its result, and return the changed or new notifications."""
    if action is SEND_NOW:
        ids = _sendable(request, ids)
        if not ids:
            return []
    try:
        selection: ChannelSelection = (
            _read_selection(action, request, ids)
            if action.has_channel_choice
            else dict.fromkeys(ids)
        )
        result = act_on_each(
            action.action,
            selection,
            by=staff_of(request),
            now=utc_now(),
            send_at=_read_time(request) if action.has_time_input else None,
            reason=request.POST.get("reason", "")[:MAX_REASON],
            correction=_read_correction(request) if action is CORRECT else None,
        )
    except _InputError as problem:
        messages.error(request, f"No change: {problem}")
        return []
    _show_result(request, action, result, is_shown=len(ids) == 1)
    return result.done


def _sendable(request: HttpRequest, ids: Sequence[ObjectId]) -> list[ObjectId]:
    """Return the notifications of which something is sent, and report what holds the others."""
    now = utc_now()
    documents = queries.get_many(ids)
    obstacles = find_obstacles(documents, now=now)
    held: dict[ObjectId, str] = {}
    for document in documents:
        waiting = [
            (document["_id"], Channel(delivery["channel"]))
            for delivery in document["delivery"]
            if SEND_NOW.applies_to(delivery, now=now)
        ]
        if waiting and all(pair in obstacles for pair in waiting):
            held[document["_id"]] = obstacles[waiting[0]]
    if held:
        reasons = Counter(held.values()).most_common(MAX_REASONS)
        text = format_html_join("; ", "{}", ((reason,) for reason, _ in reasons))
        what = "Still held" if len(ids) == 1 else f"{len(held)} still held"
        messages.warning(request, format_html("{}: {}.", what, text))
    return [notification_id for notification_id in ids if notification_id not in held]


def _read_time(request: HttpRequest) -> datetime:
    try:
        send_at = datetime.fromisoformat(request.POST.get("at", ""))
    except ValueError:
        raise _InputError("enter the time as 2026-12-01T09:00.") from None
    return send_at if send_at.tzinfo else send_at.replace(tzinfo=UTC)


def _read_correction(request: HttpRequest) -> Correction:
    named = request.POST.get("channel", "")
    channel = next((channel for channel in ADDRESS_CHANNELS if channel == named), None)
    if channel is None:
        raise _InputError("select a channel to correct.")
    try:
        address = channel.address_kind.normalize(request.POST.get("address", "").strip())
    except InvalidAddressError as problem:
        raise _InputError(str(problem)) from None
    return Correction(
        channel=channel,
        address=address,
        updates_profile=request.POST.get("update_profile") == "yes",
    )


def _read_selection(
    action: StaffAction, request: HttpRequest, ids: Sequence[ObjectId]
) -> ChannelSelection:
    known = {channel.value for channel in Channel}
    chosen = [Channel(c) for c in request.POST.getlist("channels") if c in known]
    if not chosen:
        raise _InputError(f"select a channel to {action.name} on.")
    if len(ids) == 1 or request.POST.get("again") == "yes":
        done = frozenset[str]()
    else:
        done = frozenset(status.value for status in SUCCEEDED)
    found = {
        document["_id"]: {d["channel"] for d in document["delivery"] if d["status"] not in done}
        for document in queries.get_many(ids)
    }
    return {key: [c for c in chosen if c in found.get(key, chosen)] for key in ids}


def _show_result(
    request: HttpRequest, action: StaffAction, result: ActionResult, *, is_shown: bool
) -> None:
    count = len(result.done)
    phrase = action.done_phrase.replace("is ", "are ", 1) if count > 1 else action.done_phrase
    text = f"{count_of(count, 'notification')} {phrase}."
    if action.sends_copy and count == 1 and not is_shown:
        url = reverse(NOTIFICATION, args=[result.done[0]])
        messages.success(request, format_html('{} <a href="{}">View it</a>.', text, url))
    elif count:
        messages.success(request, text)
    if result.refused:
        messages.warning(request, f"{len(result.refused)} skipped: {' '.join(result.reasons)}")
