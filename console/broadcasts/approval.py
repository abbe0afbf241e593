"""What an approver sees and decides about a broadcast. The console calls what the API calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bson import ObjectId
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from access import actors
from access.clients import registry
from access.models import StaffUser
from domain.states import BroadcastStatus
from domain.time import utc_now
from notifications.actions.actions import InvalidStateError
from notifications.broadcasts import approvals, review
from notifications.broadcasts.review import BroadcastReview
from notifications.catalog import types
from notifications.documents.broadcasts import ApprovalDocument, BroadcastDocument
from notifications.intake.requests import ScopeRequiredError
from notifications.models import Broadcast
from notifications.models.broadcasts import REASON_LENGTH
from notifications.validation import InvalidRequestError

from ..texts.labels import CHANNELS, code_label
from ..types.preview import channel_preview, preview_of
from ..widgets.actions import record_change
from ..widgets.links import BROADCAST
from ..widgets.panels import email_document
from ..widgets.reauthentication import require_reauthentication
from .actions import find_broadcast, posted_about

GONE = "It can't be shown as it would be sent: {}"
OWN = "You wrote or submitted this broadcast, so another person must decide."
MAX_NAMES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What somebody decides about a broadcast."""

    name: str  # Segment in URLs, and beginning of the permission's name
    permission: str
    run: Callable[..., BroadcastDocument]
    success_message: str
    audit_message: str
    needs_reason: bool = True
    needs_password: bool = False


DECISIONS = (
    Decision(
        name="approve",
        permission="notifications.approve_broadcast",
        run=approvals.approve,
        success_message="Approved.",
        audit_message="Approved.",
        needs_reason=False,
    ),
    Decision(
        name="reject",
        permission="notifications.approve_broadcast",
        run=approvals.reject,
        success_message="Rejected. Its authors may change it.",
        audit_message="Rejected: {reason}",
    ),
    Decision(
        name="override",
        permission="notifications.override_broadcast",
        run=approvals.override,
        success_message="Sent without an approval. Operators are alerted.",
        audit_message="Sent without an approval: {reason}",
        needs_password=True,
    ),
)


def decide(admin: Any, request: HttpRequest, object_id: str, decision: Decision) -> HttpResponse:
    """Decide about one broadcast; POST only."""
    document = posted_about(admin, request, object_id, permission=decision.permission)
    if isinstance(document, HttpResponse):
        return document
    back = HttpResponseRedirect(reverse(BROADCAST, args=[document["_id"]]))
    reason = request.POST.get("reason", "").strip()[:REASON_LENGTH]
    if decision.needs_reason and not reason:
        messages.error(request, "No change: enter a reason.")
        return back
    if decision.needs_password and (refused := require_reauthentication(request)):
        return refused
    given = {"reason": reason} if decision.needs_reason else {}
    try:
        decision.run(
            document["_id"],
            fingerprint=request.POST.get("fingerprint", ""),
            by=actors.staff_actor(request.user.pk),
            now=utc_now(),
            **given,
        )
    except InvalidStateError as problem:
        messages.warning(request, f"No change: {problem}")
    else:
        name = f"{document['type']} {document['_id']}"
        message = decision.audit_message.format(reason=reason)
        record_change(request, Broadcast, document["_id"], message, name=name)
        messages.success(request, decision.success_message)
    return back


def approval_context(request: HttpRequest, document: BroadcastDocument) -> dict[str, Any]:
    """Return the context of the panel about a broadcast's approval; empty if it needs none."""
    approval = document.get("approval")
    if approval is None:
        return {}
    context: dict[str, Any] = {"approval": approval, "approval_facts": _facts(approval)}
    if document["status"] != BroadcastStatus.AWAITING_APPROVAL:
        return context
    try:
        found = review.review(document, now=utc_now())
    except (InvalidRequestError, InvalidStateError, ScopeRequiredError, LookupError) as problem:
        return context | {"review_problem": GONE.format(problem)}
    own = actors.staff_actor(request.user.pk).keys
    is_author = not own.isdisjoint(approval["authors"])
    may = {d.name for d in DECISIONS if request.user.has_perm(d.permission)}
    return context | {
        "effect": _effect(found),
        # They have the data of a row, which only those see who decide.
        "messages_shown": _messages(found, document) if may else [],
        "preview": preview_of(()),
        "email_url": reverse("admin:notifications_broadcast_email", args=[document["_id"]]),
        "may_decide": "approve" in may and not is_author,
        "is_refused": OWN if is_author and "approve" in may else "",
        "may_override": "override" in may,
        "reason_length": REASON_LENGTH,
    }


def email(admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """Return the email of a broadcast that awaits an approval. Raises Http404 without one."""
    may_decide = any(request.user.has_perm(decision.permission) for decision in DECISIONS)
    if not (may_decide and admin.has_view_permission(request)):
        raise PermissionDenied
    document = find_broadcast(object_id)
    if document is None or document["status"] != BroadcastStatus.AWAITING_APPROVAL:
        raise Http404
    try:
        shown = review.review(document, now=utc_now()).messages
    except (InvalidRequestError, InvalidStateError, ScopeRequiredError, LookupError):
        raise Http404 from None
    for channel in shown:
        if channel.message is not None and channel.message.html is not None:
            return email_document(channel.message.html)
    raise Http404


def _effect(found: BroadcastReview) -> list[tuple[str, str]]:
    effect = found.effect
    size = "Not counted" if effect.audience_size is None else f"{effect.audience_size:,}"
    rows = [("Audience, about", size), ("Sampled now", f"{effect.sampled:,}")]
    rows.append(("Of these, notified", f"{effect.page.accepted:,}"))
    for what, reasons in (("skipped", effect.page.skipped), ("rejected", effect.page.rejected)):
        rows += [
            (f"Of these, {what}: {code_label(code).lower()}", f"{len(users):,}")
            for code, users in reasons.items()
        ]
    rows += [(f"Beyond the limit {one.limit.name}", f"{one.recipients:,}") for one in effect.limits]
    return rows


def _messages(found: BroadcastReview, document: BroadcastDocument) -> list[dict[str, Any]]:
    kind = types.read_type(document["type"])
    return [
        {
            "shown": channel_preview(one.channel, one.message, kind)
            if one.message is not None and kind is not None
            else None,
            "name": CHANNELS[one.channel],
            "icon": one.channel.spec.icon,
            "kind": one.channel.spec.preview,
            "problem": one.problem,
            "reason": one.not_sent_reason,
        }
        for one in found.messages
    ]


def _facts(approval: ApprovalDocument) -> list[tuple[str, str]]:
    known = _names([*approval["authors"], approval.get("decided_by", "")])
    authors = ", ".join(known[key] for key in approval["authors"] if key in known)
    facts = (
        ("Written by", authors),
        ("Template version", str(approval["template_version"] or "built-in")),
        ("Decided by", known.get(approval.get("decided_by", ""), "")),
        ("Without another person", "yes" if "overridden_at" in approval else ""),
        ("Reason", approval.get("reason", "")),
    )
    return [(label, value) for label, value in facts if value]


def _names(keys: Sequence[str]) -> dict[str, str]:
    """Return the names of the accounts and clients among the keys of actors."""
    ids = {
        key: ObjectId(number)
        for key in keys
        for kind, _, number in (key.partition(":"),)
        if kind in ("staff", "client") and ObjectId.is_valid(number)
    }
    staff = StaffUser.objects.in_bulk([one for key, one in ids.items() if key[0] == "s"])
    clients = registry.names(limit=MAX_NAMES)
    return {
        key: staff[one].get_username() if one in staff else clients.get(one, key)
        for key, one in ids.items()
    }
