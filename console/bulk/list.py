"""The list of bulk operations, and the URLs that show and control one."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from domain.states import BulkAction, BulkOutcome, BulkStage
from domain.time import utc_now
from notifications.actions.actions import InvalidStateError
from notifications.bulk import decisions, repository
from notifications.bulk.operation import Operation
from notifications.models import BulkOperation

from ..texts.labels import BULK_LABELS, options_of
from ..widgets import columns
from ..widgets.actions import ask, is_confirmed, not_found, parse_id, require_post, staff_of
from ..widgets.filters import choice_filter, time_filter
from ..widgets.formats import count_of
from ..widgets.links import FAILURES
from ..widgets.lists import ReadOnlyAdmin
from . import page
from .labels import ACTIONS

RUN_PERMISSION = "notifications.run_bulkoperation"
LIST = "admin:notifications_bulkoperation_changelist"
PAGE = "admin:notifications_bulkoperation_change"
TRANSITIONS = {
    "pause": (decisions.pause, "Paused"),
    "resume": (decisions.resume, "Resumed"),
    "cancel": (decisions.cancel, "Cancelled. Completed changes remain."),
}


ActionFilter = choice_filter(
    "action", ((action.value, texts.verb) for action, texts in ACTIONS.items()), is_unindexed=True
)
StageFilter = choice_filter("stage", options_of(BULK_LABELS), is_unindexed=True)


@admin.register(BulkOperation)
class BulkOperationAdmin(ReadOnlyAdmin):
    """The bulk operations, newest first."""

    list_display = ("created", "operation", "state", "actor", "reason_display")
    list_display_links = ("created", "operation")
    list_filter = (ActionFilter, StageFilter, time_filter("created", "created_at"))
    empty_title = "No bulk operations"
    empty_text = (
        "To start one, filter a list of notifications and select “Bulk action on all matches…”."
    )
    empty_link = (FAILURES, "Failed deliveries")
    ordering = ("-created_at", "-id")
    list_fullwidth = True
    created = columns.time_column("Created", "created_at")
    reason_display = columns.text_column("Reason", "reason")

    def own_urls(self) -> list[URLPattern]:
        """Return the URLs that show and control an operation."""
        return [
            self.url("new/", self.new_view, "new"),
            self.url("<str:object_id>/start/", self.start_view, "start"),
            *(
                self.url(f"<str:object_id>/{name}/", self.transition_view, name, transition=name)
                for name in TRANSITIONS
            ),
            self.url("<str:object_id>/progress/", self.progress_view, "progress"),
            self.url("<str:object_id>/results.csv", self.results_view, "results"),
        ]

    def new_view(self, request: HttpRequest) -> HttpResponseBase:
        """Show the form of an operation on a list, or start its preview."""
        if not request.user.has_perm(RUN_PERMISSION):
            raise PermissionDenied
        return page.new_operation(self, request)

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        """Show one operation."""
        operation = self._find_operation(request, object_id)
        return page.page(self, request, operation) if operation else self._not_found(request)

    def progress_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Return the part of the page that shows the progress."""
        operation = self._find_operation(request, object_id)
        return page.progress(request, operation) if operation else HttpResponse(status=404)

    def start_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Start an operation after its preview; POST only."""
        operation = self._find_for_change(request, object_id)
        if isinstance(operation, HttpResponse):
            return operation
        try:
            plan = page.start_options(request, operation)
            decisions.start(operation.id, options=plan, by=staff_of(request), now=utc_now())
        except InvalidStateError as problem:
            messages.error(request, f"Not started. {problem}")
            return page.page(self, request, repository.get(operation.id) or operation)
        return HttpResponseRedirect(reverse(PAGE, args=[operation.id]))

    def transition_view(
        self, request: HttpRequest, object_id: str, transition: str
    ) -> HttpResponseBase:
        """Pause, resume or cancel an operation; POST only. A cancellation asks first."""
        operation = self._find_for_change(request, object_id)
        if isinstance(operation, HttpResponse):
            return operation
        has_begun = operation.stage in (BulkStage.RUNNING, BulkStage.PAUSED)
        if transition == "cancel" and has_begun and not is_confirmed(request):
            left = max(operation.delivery_count - operation.settled_count, 0)
            consequence = (
                f"Ends it for good: {count_of(left, 'delivery')} of "
                f"{operation.delivery_count:,} stay as they are. What is done stays done."
            )
            return ask(
                self,
                request,
                question="Cancel this bulk operation?",
                consequences=[consequence],
                button="Cancel operation",
                back=reverse(PAGE, args=[operation.id]),
            )
        apply, message = TRANSITIONS[transition]
        try:
            apply(operation.id, by=staff_of(request), now=utc_now())
            messages.success(request, message)
        except InvalidStateError as problem:
            messages.warning(request, str(problem))
        return HttpResponseRedirect(reverse(PAGE, args=[operation.id]))

    def results_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Stream the result of each delivery as CSV."""
        operation = self._find_operation(request, object_id)
        if operation is None:
            return self._not_found(request)
        return StreamingHttpResponse(
            page.csv_lines(operation),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="operation-{operation.id}.csv"'},
        )

    def _find_operation(self, request: HttpRequest, object_id: str) -> Operation | None:
        """Return an operation, or None if it doesn't exist. Raises PermissionDenied."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        operation_id = parse_id(object_id)
        return repository.get(operation_id) if operation_id else None

    def _find_for_change(self, request: HttpRequest, object_id: str) -> Operation | HttpResponse:
        if refused := require_post(request, allowed=request.user.has_perm(RUN_PERMISSION)):
            return refused
        operation = self._find_operation(request, object_id)
        if operation is None:
            return self._not_found(request)
        if not request.user.has_perm(ACTIONS[operation.action].permission):
            raise PermissionDenied
        return operation

    def _not_found(self, request: HttpRequest) -> HttpResponse:
        return not_found(request, "Bulk operation", LIST)

    @admin.display(description="Operation")
    def operation(self, row: Any) -> SafeString:
        """Return the action and the filters."""
        list_name, *filters = row.described or ("",)
        text = " · ".join(filters)
        return columns.two_lines(
            f"{ACTIONS[BulkAction(row.action)].verb} {list_name.lower()}",
            format_html('<span class="ellipsis" title="{}">{}</span>', text, text),
        )

    @admin.display(description="Stage")
    def state(self, row: Any) -> SafeString:
        """Return the stage and the number of changed deliveries."""
        done = row.counts.get(BulkOutcome.DONE.value, 0)
        return columns.two_lines(columns.chip(*BULK_LABELS[BulkStage(row.stage)]), f"{done:,} done")

    @admin.display(description="Started by")
    def actor(self, row: Any) -> str:
        """Return the user who started or previewed the operation."""
        return row.started_by_name or row.created_by_name
