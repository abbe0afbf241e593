"""The pages of one bulk operation: form, preview, progress and results."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any

from bson import ObjectId
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import reverse

from domain.channels import Channel
from domain.states import (
    ACTIVE_BULK_STAGES,
    OPEN,
    BulkAction,
    BulkOutcome,
    BulkStage,
    DeliveryStatus,
)
from domain.tables.table import escape_formula
from domain.time import utc_now
from notifications import queries
from notifications.actions.actions import InvalidStateError
from notifications.actions.risk import RiskKind
from notifications.bulk import decisions, results
from notifications.bulk import operation as bulk_operation
from notifications.bulk.decisions import StartOptions
from notifications.bulk.operation import Operation, Selection
from notifications.catalog.texts import total_price
from notifications.documents.bulk import OperationResultDocument
from notifications.documents.notification import NotificationDocument
from notifications.store.reading import recipient_of
from recipients.masking import mask_address

from ..texts.labels import BULK_LABELS, CHANNELS, RESEND_RISKS
from ..widgets.actions import render_page, staff_of
from ..widgets.columns import chip
from ..widgets.links import HOME, NOTIFICATION
from ..widgets.prices import parts_and_price
from . import labels, selection
from .labels import ACTIONS
from .selection import UnknownListError

PAGE = "admin:notifications_bulkoperation_change"
MAX_SAMPLES = 3  # Example deliveries of each resend risk
RISK_ACTIONS = frozenset({BulkAction.RETRY, BulkAction.RESEND})
REFRESH_SECONDS = 1  # Between refreshes during the operation
OPEN_REFRESH_SECONDS = 3  # Between refreshes after the operation, while deliveries are open
CSV_COLUMNS = (
    "notification_id",
    "user_id",
    "recipient",
    "channel",
    "resend_risk",
    "risk_reason",
    "outcome",
    "reason",
    "detail",
    "result",
    "failure_code",
    "new_notification_id",
    "at",
)
"""``result`` is the status that the delivery has now."""
CSV_BATCH = 500
_INTEGER = re.compile(r"\d{1,6}", re.ASCII)
_CANCEL = ("cancel", "Cancel", "button-danger")
BUTTONS = {
    BulkStage.PREVIEWING: (("cancel", "Discard preview", ""),),
    BulkStage.RUNNING: (("pause", "Pause", "button-primary"), _CANCEL),
    BulkStage.PAUSED: (("resume", "Resume", "button-primary"), _CANCEL),
}
"""Buttons of each stage: transition, label, and style."""
RISK_ORDER = (
    RiskKind.SAFE,
    RiskKind.MAY_DUPLICATE,
    RiskKind.WILL_FAIL_AGAIN,
    RiskKind.EXPIRED,
    RiskKind.SUPPRESSED,
)


def new_operation(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Show the form of an operation on all matches of a list; on POST, start its preview."""
    form = request.POST if request.method == "POST" else request.GET
    name = form.get("list", "")
    query = selection.filter_query(
        form.get("query", "") if request.method == "POST" else request.GET.urlencode()
    )
    try:
        list_admin, selected = selection.selection_of_list(request, name=name, query=query)
    except UnknownListError as problem:
        messages.warning(request, str(problem))
        return HttpResponseRedirect(reverse(HOME))
    available_actions = _available_actions(request, selected)
    if not available_actions:
        raise PermissionDenied
    if request.method == "POST":
        try:
            operation = _preview(request, selected, available_actions)
        except InvalidStateError as problem:
            messages.error(request, str(problem))
        else:
            return HttpResponseRedirect(reverse(PAGE, args=[operation.id]))
    list_url = reverse(f"admin:notifications_{list_admin.opts.model_name}_changelist")
    return render_page(
        model_admin,
        request,
        "console/bulk/new.html",
        title="Bulk action",
        description=selected.description,
        list_name=name,
        query=query,
        available_actions=[(action, ACTIONS[action]) for action in available_actions],
        chosen=form.get("action") or available_actions[0],
        channels=[(channel.value, CHANNELS[channel]) for channel in selected.channels],
        back=f"{list_url}?{query}",
    )


def page(model_admin: Any, request: HttpRequest, operation: Operation) -> HttpResponse:
    """Show one operation. The values of a rejected form are kept."""
    context = {
        **_progress(operation),
        "title": ACTIONS[operation.action].verb,
        "headline": labels.summarize(operation),
        "filters": operation.selection.description[1:],
        "texts": ACTIONS[operation.action],
        "may_run": request.user.has_perm("notifications.run_bulkoperation")
        and request.user.has_perm(ACTIONS[operation.action].permission),
        "resend_risks": _resend_risks(request, operation)
        if operation.stage is BulkStage.READY
        else [],
        "shows_resend_risk": operation.action in RISK_ACTIONS,
        "given": request.POST,
        "min_rate": bulk_operation.MIN_PER_SECOND,
        "max_rate": bulk_operation.MAX_PER_SECOND,
        "default_rate": request.POST.get("per_second") or bulk_operation.DEFAULT_PER_SECOND,
        "buttons": BUTTONS.get(operation.stage, ()),
        "acts_on": [
            RESEND_RISKS[kind][0] for kind in RISK_ORDER if kind in operation.included_risks
        ],
    }
    return render_page(model_admin, request, "console/bulk/page.html", **context)


def progress(request: HttpRequest, operation: Operation) -> HttpResponse:
    """Return the progress for htmx, or make the browser reload the page at a new stage."""
    if request.GET.get("was") != operation.stage:
        return HttpResponse(headers={"HX-Refresh": "true"})
    text = render_to_string("console/bulk/progress.html", _progress(operation), request)
    return HttpResponse(text)


def start_options(request: HttpRequest, operation: Operation) -> StartOptions:
    """Return the options in the form. Raises InvalidStateError if one is invalid."""
    selected = request.POST.getlist("include")
    known = {kind.value: kind for kind in RiskKind}
    if unknown := [value for value in selected if value not in known]:
        raise InvalidStateError(f"Unknown resend risk {unknown[0][:20]!r}.")
    rate = request.POST.get("per_second", "")
    if not _INTEGER.fullmatch(rate):
        raise InvalidStateError("The rate limit must be a whole number per second.")
    shows_resend_risk = operation.action in RISK_ACTIONS
    return StartOptions(
        included_risks=frozenset(known[value] for value in selected)
        if shows_resend_risk
        else frozenset({RiskKind.SAFE}),
        per_second=int(rate),
        reason=request.POST.get("reason", ""),
        duplicate_reason=request.POST.get("duplicate_reason") or None,
    )


def csv_lines(operation: Operation) -> Iterator[str]:
    """Yield the results as lines of CSV."""
    # Without the mark, Excel reads UTF-8 as the code page of its country.
    yield "\ufeff" + _csv_line(CSV_COLUMNS)
    rows = results.iter_rows(operation.id)
    while batch := list(islice(rows, CSV_BATCH)):
        new_ids = {
            row["_id"]: bulk_operation.resend_id(operation, row["notification_id"])
            for row in batch
            if operation.action is BulkAction.RESEND and row["outcome"] == BulkOutcome.DONE
        }
        ids = {row["notification_id"] for row in batch} | set(new_ids.values())
        documents = {document["_id"]: document for document in queries.get_many(sorted(ids))}
        for row in batch:
            values = _csv_values(operation, row, new_ids.get(row["_id"]), documents)
            yield _csv_line(escape_formula(values[name]) for name in CSV_COLUMNS)


def _csv_values(
    operation: Operation,
    row: OperationResultDocument,
    new_id: ObjectId | None,
    documents: Mapping[ObjectId, NotificationDocument],
) -> dict[str, str]:
    channel = Channel(row["channel"])
    original = documents.get(row["notification_id"])
    sent_as = documents.get(new_id) if new_id else original
    address = recipient_of(original).address(channel) if original else None
    deliveries = [] if sent_as is None else sent_as["delivery"]
    delivery = next((delivery for delivery in deliveries if delivery["channel"] == channel), None)
    status = None if delivery is None else delivery["status"]
    has_failed = status in (DeliveryStatus.FAILED, DeliveryStatus.EXPIRED)
    risk = RiskKind(row["risk"])
    return {
        "notification_id": str(row["notification_id"]),
        "user_id": original.get("user_id") or "" if original else "",
        "recipient": mask_address(address) if address else "",
        "channel": channel.value,
        "resend_risk": RESEND_RISKS[risk][0].lower(),
        "risk_reason": row["why"],
        "outcome": labels.outcome_label(operation.action, BulkOutcome(row["outcome"])).lower(),
        "reason": labels.REASON_LABELS.get(row.get("reason") or "", row.get("reason") or ""),
        "detail": row.get("detail") or "",
        "result": str(status or ""),
        "failure_code": delivery.get("failure_code") or "" if delivery and has_failed else "",
        "new_notification_id": str(new_id or ""),
        "at": f"{row['at']:%Y-%m-%dT%H:%M:%SZ}",
    }


def _csv_line(values: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(values)
    return text.getvalue()


def _available_actions(request: HttpRequest, selected: Selection) -> list[BulkAction]:
    is_failure_list = selected.order == bulk_operation.FAILED_AT
    return [
        action
        for action, texts in ACTIONS.items()
        if request.user.has_perm(texts.permission)
        and (texts.is_for_failures or not is_failure_list)
    ]


def _preview(
    request: HttpRequest, selected: Selection, available_actions: list[BulkAction]
) -> Operation:
    """Start the preview that the form requests. Raises InvalidStateError for invalid values."""
    if request.POST.get("action") not in available_actions:
        raise InvalidStateError("Select an action.")
    chosen = request.POST.getlist("channels")
    return decisions.preview(
        action=BulkAction(request.POST["action"]),
        selection=Selection(
            match=selected.match,
            order=selected.order,
            description=selected.description,
            channels=tuple(channel for channel in selected.channels if channel in chosen),
            delivery_filter=selected.delivery_filter,
        ),
        send_at=_send_at(request.POST.get("send_at", "")),
        by=staff_of(request),
        now=utc_now(),
    )


def _send_at(text: str) -> datetime | None:
    """Parse a UTC time; an empty text is None. Raises InvalidStateError."""
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M").replace(tzinfo=UTC)
    except ValueError:
        raise InvalidStateError("Enter the time as 2026-12-01T09:00.") from None


def _progress(operation: Operation) -> dict[str, Any]:
    label, color = BULK_LABELS[operation.stage]
    has_begun = operation.started_at is not None
    statuses: Mapping[DeliveryStatus, int] = {}
    if has_begun and operation.action in RISK_ACTIONS:
        statuses = results.delivery_statuses(
            operation.id,
            sent_as=partial(bulk_operation.resend_id, operation)
            if operation.action is BulkAction.RESEND
            else lambda notification_id: notification_id,
        )
    is_worked_on = operation.stage in ACTIVE_BULK_STAGES
    refresh_seconds = REFRESH_SECONDS if is_worked_on else None
    if not is_worked_on and any(statuses.get(status) for status in OPEN):
        refresh_seconds = OPEN_REFRESH_SECONDS
    return {
        "operation": operation,
        "stage": label,
        "color": color,
        "progress": labels.progress(operation, now=utc_now()),
        "is_worked_on": is_worked_on,
        "refresh_seconds": refresh_seconds,
        "has_begun": has_begun,
        "delivered": labels.delivered(statuses) if statuses else [],
        "is_status_capped": sum(statuses.values()) >= results.STATUS_CAP,
        "status_cap": results.STATUS_CAP,
        "outcomes": labels.outcomes(operation),
        "reasons": labels.reasons(operation),
    }


def _price(operation: Operation, kind: RiskKind) -> str:
    """Return what the texts with a resend risk cost; empty if there are none."""
    units = operation.units(kind) if operation.action in RISK_ACTIONS else {}
    return f"SMS: {parts_and_price(total_price(units))}." if units else ""


def _resend_risks(request: HttpRequest, operation: Operation) -> list[dict[str, Any]]:
    selected = (
        request.POST.getlist("include") if request.method == "POST" else [RiskKind.SAFE.value]
    )
    return [
        {
            "kind": kind.value,
            "chip": chip(*RESEND_RISKS[kind]),
            "meaning": labels.RISK_MEANINGS[kind],
            "count": operation.preview_counts[kind],
            "price": _price(operation, kind),
            "is_selected": kind in selected,
            "is_duplicate": kind is RiskKind.MAY_DUPLICATE,
            "is_skipped": kind in decisions.ALWAYS_SKIPPED,
            "samples": [
                {
                    "id": delivery.notification_id,
                    "url": reverse(NOTIFICATION, args=[delivery.notification_id]),
                    "channel": CHANNELS[Channel(delivery.channel)],
                    "reason": row.risk.reason,
                }
                for delivery, row in results.samples(operation.id, kind, limit=MAX_SAMPLES).items()
            ],
        }
        for kind in RISK_ORDER
        if operation.preview_counts.get(kind)
    ]
