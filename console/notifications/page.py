"""The page of one notification: what happened, what to do now, and the timeline."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotFound
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode

from access.clients.registry import CONSOLE_CLIENT
from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import OPEN, DeliveryStatus
from domain.time import utc_now
from domain.wait_reasons import WaitReason
from notifications import queries
from notifications.actions.actions import correctable_channels
from notifications.actions.assessment import assess_risks
from notifications.actions.retries import RetryChoice, liftable_channels, retry_choices
from notifications.actions.risk import ResendRisk, RiskKind
from notifications.content import looks
from notifications.content.engine import TemplateError
from notifications.documents.notification import (
    DeliveryDocument,
    NotificationDocument,
)
from notifications.models import Notification
from notifications.store.reading import content_of, current_hold, recipient_of
from notifications.store.removal import is_content_removed
from notifyproject.platform import doc_pages, tracing
from providers.labels import provider_name
from recipients import suppressions
from recipients.documents import SuppressionDocument
from recipients.masking import can_reveal_addresses, can_see_addresses

from ..suppressions import lift_url
from ..texts.failure_codes import Step, explain
from ..texts.labels import notification_state
from ..texts.staff_actions import (
    CORRECT,
    LIFT_AND_RESEND,
    RESEND,
    RESTORE,
    RETRY,
    SEND_NOW,
    STAFF_ACTIONS,
    StaffAction,
)
from ..widgets import columns, names, panels
from ..widgets.actions import not_found, parse_id, record_change, render_page
from ..widgets.links import (
    DIGEST,
    MAY_VIEW_DESIGN,
    NOTIFICATION,
    NOTIFICATIONS,
    PROVIDERS,
    RECIPIENT,
    SUPPRESSION,
    url_of_design_item,
    url_to_send,
)
from . import presentation
from .send_now import find_obstacles
from .summary import problems_first, summarize_delivery
from .timeline import History, notification_link, read_history, resend_in_effect, timeline

F, S = FailureCode, DeliveryStatus
STEPS = {Step(action.name): action for action in (RETRY, RESEND, CORRECT, LIFT_AND_RESEND)}
TIMES = (
    ("Created", "created_at"),
    ("Scheduled", "scheduled_at"),
    ("Expires", "expires_at"),
    ("Purged on", "purge_at"),
)
REFRESH_SECONDS, SLOW_REFRESH_SECONDS = 2, 30
SOON = timedelta(minutes=1)
"""A delivery that is due later than this is refreshed slowly."""
RECEIPT_WAIT = timedelta(minutes=10)
"""After a send, the page waits this long for the provider's receipt."""
ADDRESS_FAILURES = frozenset({F.BOUNCED, F.INVALID_RECIPIENT, F.NO_ADDRESS, F.DROPPED})
"""Failures for which the best action is to correct the address."""
OFFERS_CORRECTION = ADDRESS_FAILURES | {F.BLOCKED, F.REPORTED_FAILED, F.SUPPRESSED}
"""Failures that a wrong address can cause."""


def show(
    admin: Any, request: HttpRequest, object_id: str, *, is_revealed: bool = False
) -> HttpResponse:
    """Show one notification, with recorded unmasked addresses if ``is_revealed``."""
    document = _find(admin, request, object_id)
    if document is None:
        return not_found(request, "Notification", NOTIFICATIONS)
    if is_revealed:
        name = f"{document['type']} {document['_id']}"
        record_change(request, Notification, document["_id"], "Revealed addresses.", name=name)
    unmasked = is_revealed or can_see_addresses(request.user)
    now = utc_now()
    context = _changing(request, document, unmasked=unmasked, now=now)
    if is_revealed:
        # A refresh would hide the addresses again.
        context["refresh_url"] = None
    return render_page(
        admin,
        request,
        "console/notifications/page.html",
        **context,
        **_constant(request, document, unmasked=unmasked),
        is_revealed=is_revealed,
    )


def refresh(admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """Return the parts of the page that change, or 204 if nothing has changed since ``was``."""
    document = _find(admin, request, object_id)
    if document is None:
        return HttpResponseNotFound()
    context = _changing(request, document, unmasked=can_see_addresses(request.user), now=utc_now())
    if request.GET.get("was") == context["version"]:
        return HttpResponse(status=204)
    parts = [
        render_to_string(f"console/notifications/{part}.html", context, request)
        for part in ("state", "timeline")
    ]
    return HttpResponse("".join(parts))


def email(admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """Return the previewed email, for a frame of the page. Raises Http404 if there is none."""
    document = _find(admin, request, object_id)
    messages = presentation.render_content(document).messages if document else ()
    for message in messages:
        if message.html is not None:
            return panels.email_document(message.html)
    raise Http404


def _find(admin: Any, request: HttpRequest, object_id: str) -> NotificationDocument | None:
    if not admin.has_view_permission(request):
        raise PermissionDenied
    notification_id = parse_id(object_id)
    return queries.get(notification_id=notification_id) if notification_id else None


def _changing(
    request: HttpRequest, document: NotificationDocument, *, unmasked: bool, now: datetime
) -> dict[str, Any]:
    """Return what may change while the page is open: the state and the timeline."""
    suppressed = _active_suppressions(document, now=now)
    history = read_history(document, suppressed)
    risks = {channel: risk for (_, channel), risk in assess_risks([document], now=now).items()}
    worst, *_ = ordered = problems_first(document["delivery"])
    goal = document.get("plan_until")
    sentence, *other_sentences = (
        summarize_delivery(delivery, goal=goal, pauses=history.pauses, now=now)
        for delivery in ordered
    )
    choice = retry_choices([document], now=now)[document["_id"]]
    retry_refusal = choice.refusal(None)
    permitted = _permitted_actions(request, document, choice, now=now)
    if all(is_hopeless(risk) for risk in risks.values()):
        permitted = [action for action in permitted if action not in (RETRY, RESEND)]
    best = _best_action(document, worst, risks, permitted, can_retry=retry_refusal is None)
    resend = resend_in_effect(history, Channel(worst["channel"]))
    if resend is not None and worst["status"] not in OPEN:
        best = None
    version = history.version(document)
    interval = _refresh_interval(document, history, now=now)
    status, color = notification_state(document["status"], document["delivery"], now=now)
    refresh_url = reverse("admin:notifications_notification_refresh", args=[document["_id"]])
    return {
        "document": document,
        "key": document["_id"],
        "status": status,
        "color": color,
        "type_name": names.type_names([document["type"]])[document["type"]],
        "deleted_chip": columns.deleted_chip() if document.get("deleted_at") else "",
        "test_chip": columns.test_chip() if document.get("is_test") else "",
        "sentence": sentence,
        "other_sentences": other_sentences,
        "failure_page": doc_pages.failure_page(worst.get("failure_code")),
        "advice": None
        if resend is not None or is_content_removed(document)
        else presentation.advice(
            worst,
            risks[Channel(worst["channel"])],
            can_retry=retry_refusal is None,
            may=lambda step: STEPS[step].is_permitted(request.user),
            now=now,
        ),
        "hold": _hold_links(request, worst),
        "carried_digest": _carried_digest(document),
        "resent_from": _link(document.get("resent_from")),
        "resends": [
            {
                "link": notification_link(resend["_id"]),
                "chip": columns.chip(
                    *notification_state(resend["status"], resend["delivery"], now=now)
                ),
            }
            for resend in history.resends
        ],
        "best": best,
        "actions": sorted(
            (action for action in permitted if action is not CORRECT),
            key=lambda action: action is not best,
        ),
        "retry_refusal": retry_refusal,
        "rows": presentation.channel_rows(
            document,
            risks,
            _suppression_links(request, document, suppressed),
            carriers=history.carriers,
            pauses=history.pauses,
            unmasked=unmasked,
            now=now,
        ),
        "corrections": _corrections(document, worst) if CORRECT in permitted else [],
        "is_correction_best": best is CORRECT,
        "timeline": timeline(document, history, unmasked=unmasked, now=now),
        "version": version,
        "refresh_seconds": interval,
        "refresh_url": f"{refresh_url}?{urlencode({'was': version})}" if interval else None,
    }


def _constant(
    request: HttpRequest, document: NotificationDocument, *, unmasked: bool
) -> dict[str, Any]:
    type_name = names.type_names([document["type"]])[document["type"]]
    user_id = document.get("user_id")
    original = Notification(pk=document["_id"], type=type_name)
    original.page_title = names.page_title(type_name, user_id=user_id, at=document["created_at"])
    may_view_recipient = request.user.has_perm("recipients.view_recipient")
    return {
        "title": original.page_title,
        "original": original,
        "shown": presentation.render_content(document),
        "contact": presentation.contact(document, unmasked=unmasked),
        "variables": presentation.variables(document, unmasked=unmasked),
        "facts": [*_facts(document), *_look_facts(request, document)],
        "times": panels.times(document, TIMES),
        "recipient_url": reverse(RECIPIENT, args=[quote(user_id)])
        if user_id and may_view_recipient
        else None,
        "may_reveal": not unmasked and can_reveal_addresses(request.user),
        "send_url": url_to_send(request, user_id) if user_id else None,
    }


def _permitted_actions(
    request: HttpRequest, document: NotificationDocument, choice: RetryChoice, *, now: datetime
) -> list[StaffAction]:
    """Return the actions that the user may run and that apply, in the order of STAFF_ACTIONS."""
    if document.get("deleted_at") is not None:
        is_restorable = document.get("erased_at") is None and RESTORE.is_permitted(request.user)
        return [RESTORE] if is_restorable else []
    if not document["is_active"]:
        return []
    is_removed = is_content_removed(document)
    found = [
        action
        for action in STAFF_ACTIONS
        if action is not RESTORE
        and action.is_permitted(request.user)
        and not (is_removed and (action.shows_resend_risk or action.sends_copy))
        and _applies(action, document, choice, now=now)
    ]
    return (
        found if choice.refusal(None) is None else sorted(found, key=lambda action: action is RETRY)
    )


def _applies(
    action: StaffAction, document: NotificationDocument, choice: RetryChoice, *, now: datetime
) -> bool:
    """Return whether an action does something to a notification."""
    if action is RETRY:
        # What merely waits for its next attempt has Send now.
        return any(choice.covers(d) and d["status"] != S.PENDING for d in document["delivery"])
    if action is CORRECT:
        return bool(correctable_channels(document))
    if action is LIFT_AND_RESEND:
        return bool(liftable_channels(document, now=now))
    applying = [
        delivery for delivery in document["delivery"] if action.applies_to(delivery, now=now)
    ]
    if action is SEND_NOW and applying:
        # Only where it sends something.
        held = find_obstacles([document], now=now)
        return any(
            (document["_id"], Channel(delivery["channel"])) not in held for delivery in applying
        )
    return bool(applying)


def is_hopeless(risk: ResendRisk) -> bool:
    """Return whether no retry or resend can help, such as after its data was destroyed."""
    return risk.kind is RiskKind.WILL_FAIL_AGAIN and not risk.is_by_failure


def _best_action(
    document: NotificationDocument,
    worst: DeliveryDocument,
    risks: Mapping[Channel, ResendRisk],
    permitted: Sequence[StaffAction],
    *,
    can_retry: bool,
) -> StaffAction | None:
    """Return the action to suggest: one that helps and doesn't send a duplicate.

    It is the one that the advice names.
    """
    channel, code = Channel(worst["channel"]), worst.get("failure_code")
    risk = risks[channel].kind
    wanted: list[StaffAction] = [RESTORE]
    if any(delivery["status"] in OPEN for delivery in document["delivery"]):
        # What waits needs no resend, and is sent by itself.
        wanted = []
    elif channel in correctable_channels(document) and code in ADDRESS_FAILURES:
        wanted += [CORRECT, LIFT_AND_RESEND]
    elif risk is RiskKind.SUPPRESSED:
        wanted += [LIFT_AND_RESEND]
    elif risk is RiskKind.SAFE and worst["status"] == S.FAILED:
        wants_retry = can_retry and explain(code).step is not Step.RESEND
        wanted += [RETRY] if wants_retry else [RESEND]
    elif risk in (RiskKind.SAFE, RiskKind.EXPIRED):
        wanted += [RESEND]
    return next((action for action in wanted if action in permitted), None)


def _hold_links(request: HttpRequest, delivery: DeliveryDocument) -> dict[str, Any] | None:
    """Return where to end the outage that holds a delivery. None if none does."""
    hold = current_hold(delivery)
    if delivery["status"] not in OPEN or hold is None:
        return None
    if not request.user.has_perm("notifications.view_providerstate"):
        return None
    is_paused = hold.reason is WaitReason.PROVIDER_PAUSED
    may_resume = is_paused and request.user.has_perm("notifications.pause_provider")
    return {
        "provider": provider_name(hold.provider),
        "url": f"{reverse(PROVIDERS)}#{hold.provider}",
        "resume_url": reverse("admin:notifications_providerstate_resume", args=[hold.provider])
        if may_resume
        else None,
    }


def _corrections(document: NotificationDocument, worst: DeliveryDocument) -> list[dict[str, Any]]:
    """Return the channels whose address can be corrected, that of the worst delivery first."""
    codes = {delivery["channel"]: delivery.get("failure_code") for delivery in document["delivery"]}
    found = sorted(
        (
            channel
            for channel in correctable_channels(document)
            if codes[channel] in OFFERS_CORRECTION
        ),
        key=lambda channel: channel != worst["channel"],
    )
    return [
        {
            "channel": channel.value,
            "label": channel.address_kind.title,
            "input": channel.address_kind.input_type,
            "example": channel.address_kind.placeholder,
        }
        for channel in found
    ]


def _active_suppressions(
    document: NotificationDocument, *, now: datetime
) -> list[SuppressionDocument]:
    recipient = recipient_of(document)
    return [
        suppression
        for delivery in document["delivery"]
        if (address := recipient.address(Channel(delivery["channel"])))
        for suppression in suppressions.find_by_address(
            channel=delivery["channel"], address=address
        )
        if suppressions.is_active(suppression, now=now)
    ]


def _suppression_links(
    request: HttpRequest, document: NotificationDocument, found: Sequence[SuppressionDocument]
) -> list[dict[str, Any]]:
    back = reverse(NOTIFICATION, args=[document["_id"]])
    may_view = request.user.has_perm("recipients.view_suppression")
    may_lift = request.user.has_perm("recipients.delete_suppression")
    return [
        {
            "channel": suppression["channel"],
            "reason": suppression["reason"].replace("_", " "),
            "since": suppression["created_at"],
            "url": reverse(SUPPRESSION, args=[quote(suppression["_id"])]) if may_view else None,
            "lift_url": lift_url(suppression["_id"], back=back) if may_lift else None,
        }
        for suppression in found
    ]


def _refresh_interval(
    document: NotificationDocument, history: History, *, now: datetime
) -> int | None:
    """Return the seconds between refreshes, or None once everything has ended."""
    intervals = [
        interval
        for document_ in (document, *history.resends)
        for delivery in document_["delivery"]
        if (interval := _delivery_interval(delivery, now=now))
    ]
    return min(intervals, default=None)


def _delivery_interval(delivery: DeliveryDocument, *, now: datetime) -> int | None:
    if delivery["status"] == S.SENT:
        sent_at = delivery.get("sent_at")
        return REFRESH_SECONDS if sent_at and now - sent_at < RECEIPT_WAIT else None
    if delivery["status"] not in OPEN:
        return None
    due_at = delivery.get("next_attempt_at")
    is_later = due_at is not None and due_at - now > SOON
    return SLOW_REFRESH_SECONDS if is_later else REFRESH_SECONDS


def _facts(document: NotificationDocument) -> list[tuple[str, str]]:
    client_id, content = document["client_id"], document["content"]
    template, version = content.get("template_id"), content.get("template_version")
    client = names.client_names([client_id])[client_id]
    facts = (
        ("ID", str(document["_id"])),
        ("Client", client),
        ("Category", document["category"]),
        ("Priority", document["priority"]),
        ("Entity ID", document.get("entity_id")),
        ("External ID", document.get("external_id")),
        *_origin(document, client),
        ("Idempotency key", document.get("idempotency_key")),
        ("Request ID", document.get("request_id")),
        ("Trace ID", tracing.trace_id(document.get("traceparent"))),
        ("Template", f"{template}, version {version}" if template and version else template),
        *_brand(document),
    )
    return [(label, value) for label, value in facts if value]


def _brand(document: NotificationDocument) -> Iterator[tuple[str, str]]:
    """Yield the brand, and what it says about the sender and the accounts that send."""
    look = content_of(document).look
    try:
        brand = looks.brand_of(look)
    except TemplateError:
        return
    if look is None or brand is None:
        return
    yield "Brand", f"{brand.name} ({look.brand})"
    if (sender := looks.sender_of(look)) is not None:
        yield "Sender", str(sender)
    if brand.reply_to is not None and document["content"].get("reply_to") is None:
        yield "Replies to", brand.reply_to
    for channel, accounts in brand.accounts.items():
        yield f"Accounts for {channel}", ", ".join(map(provider_name, accounts))


def _look_facts(request: HttpRequest, document: NotificationDocument) -> list[tuple[str, str]]:
    """Return the brand and the layout that a notification was accepted with, with links."""
    look = document["content"].get("look")
    if look is None:
        return []
    may_view = request.user.has_perm(MAY_VIEW_DESIGN)
    return [
        (
            kind.capitalize(),
            columns.link(url_of_design_item(kind, name, number=look["design"]), name)
            if may_view
            else name,
        )
        for kind, name in (("brand", look.get("brand")), ("layout", look.get("layout")))
        if name
    ]


def _origin(document: NotificationDocument, client: str) -> list[tuple[str, str | None]]:
    """Return the part of the client that sent it; of the console, the member of staff."""
    source = document.get("source")
    if client != CONSOLE_CLIENT or not source or not ObjectId.is_valid(source):
        return [("Source", source)]
    user_id = ObjectId(source)
    return [("Sent by", names.staff_names([user_id]).get(user_id, source))]


def _carried_digest(document: NotificationDocument) -> dict[str, Any] | None:
    """Return the digest that a notification carries, and its members. Raises PyMongoError."""
    if (digest_id := document.get("digest_id")) is None:
        return None
    return {
        "link": columns.link(reverse(DIGEST, args=[digest_id]), "digest"),
        "members": [
            notification_link(document["_id"]) for document in queries.members_of_digest(digest_id)
        ],
    }


def _link(notification_id: ObjectId | None) -> Any:
    return None if notification_id is None else notification_link(notification_id)
