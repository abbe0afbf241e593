"""Bulk operations: their list, the question, the preview, the progress and the results."""

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
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from domain.states import BulkAction, BulkOutcome, BulkStage
from domain.time import utc_now
from notifications.bulk import decisions, repository
from notifications.bulk.operation import Operation
from notifications.models import BulkOperation
from notifications.resend.actions import InvalidStateError, Staff
from notifyproject.db.fields import choices

from ..notifications.actions import parse_id
from ..widgets import columns
from ..widgets.actions import require_post
from ..widgets.filters import ChoiceFilter, TimeFilter
from ..widgets.lists import ReadOnlyAdmin
from . import page
from .labels import ACTIONS, STAGES

RUN_PERMISSION = "notifications.run_bulkoperation"
LIST = "admin:notifications_bulkoperation_changelist"
PAGE = "admin:notifications_bulkoperation_change"
TRANSITIONS = {
    "pause": (decisions.pause, "It is paused."),
    "resume": (decisions.resume, "It goes on."),
    "cancel": (decisions.cancel, "It is cancelled. What was done stays done."),
}


class ActionFilter(ChoiceFilter):
    """By what is done."""

    title = "action"
    parameter_name = "action"
    options = tuple((action.value, words.verb) for action, words in ACTIONS.items())
    is_unindexed = True


class StageFilter(ChoiceFilter):
    """By where it stands."""

    title = "stage"
    parameter_name = "stage"
    options = tuple(choices(BulkStage))
    is_unindexed = True


class CreatedFilter(TimeFilter):
    """By when it was asked for."""

    title = "created"
    parameter_name = "created"
    path = "created_at"


@admin.register(BulkOperation)
class BulkOperationAdmin(ReadOnlyAdmin):
    """What was done to many notifications at once, the newest first."""

    list_display = ("requested", "operation", "state", "actor", "reason_display")
    list_display_links = ("requested", "operation")
    list_filter = (ActionFilter, StageFilter, CreatedFilter)
    empty_title = "No operation yet"
    empty_words = "It begins with a cause or a filter: choose them, then “All matching…”."
    empty_link = ("admin:notifications_failednotification_changelist", "Failed deliveries")
    ordering = ("-created_at", "-id")
    list_fullwidth = True

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, and those of an operation's pages and steps."""

        def url(route: str, view: Any, name: str, **kwargs: Any) -> URLPattern:
            url_name = f"notifications_bulkoperation_{name}"
            return path(route, self.admin_site.admin_view(view), kwargs, name=url_name)

        return [
            url("new/", self.new_view, "new"),
            url("<str:object_id>/start/", self.start_view, "start"),
            *(
                url(
                    f"<str:object_id>/{transition}/",
                    self.transition_view,
                    transition,
                    transition=transition,
                )
                for transition in TRANSITIONS
            ),
            url("<str:object_id>/progress/", self.progress_view, "progress"),
            url("<str:object_id>/results.csv", self.results_view, "results"),
            *super().get_urls(),
        ]

    def new_view(self, request: HttpRequest) -> HttpResponseBase:
        """Ask what to do to the notifications of a list, or have that previewed."""
        if not request.user.has_perm(RUN_PERMISSION):
            raise PermissionDenied
        return page.new_operation(self, request)

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        """Show an operation."""
        operation = self._find_operation(request, object_id)
        return page.page(self, request, operation) if operation else self._not_found(request)

    def progress_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Return the part of the page that shows how far it has come."""
        operation = self._find_operation(request, object_id)
        return page.progress(request, operation) if operation else HttpResponse(status=404)

    def start_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Start a previewed operation; POST only."""
        if refused := require_post(request, allowed=request.user.has_perm(RUN_PERMISSION)):
            return refused
        operation = self._find_operation(request, object_id)
        if operation is None:
            return self._not_found(request)
        self._require_run_permission(request, operation)
        try:
            plan = page.start_options(request, operation)
            decisions.start(operation.id, options=plan, by=staff_of(request), now=utc_now())
        except InvalidStateError as problem:
            messages.error(request, f"It was not started. {problem}")
            return page.page(self, request, repository.get(operation.id) or operation)
        return HttpResponseRedirect(reverse(PAGE, args=[operation.id]))

    def transition_view(
        self, request: HttpRequest, object_id: str, transition: str
    ) -> HttpResponseBase:
        """Pause, resume or cancel an operation; POST only."""
        if refused := require_post(request, allowed=request.user.has_perm(RUN_PERMISSION)):
            return refused
        operation = self._find_operation(request, object_id)
        if operation is None:
            return self._not_found(request)
        self._require_run_permission(request, operation)
        apply, message = TRANSITIONS[transition]
        try:
            apply(operation.id, by=staff_of(request), now=utc_now())
            messages.success(request, message)
        except InvalidStateError as problem:
            messages.warning(request, str(problem))
        return HttpResponseRedirect(reverse(PAGE, args=[operation.id]))

    def results_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Return what became of each delivery as CSV, a row at a time."""
        operation = self._find_operation(request, object_id)
        if operation is None:
            return self._not_found(request)
        return StreamingHttpResponse(
            page.csv_lines(operation),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="operation-{operation.id}.csv"'},
        )

    def _find_operation(self, request: HttpRequest, object_id: str) -> Operation | None:
        """Return an operation; None if there is none. Raises PermissionDenied."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        operation_id = parse_id(object_id)
        return repository.get(operation_id) if operation_id else None

    def _require_run_permission(self, request: HttpRequest, operation: Operation) -> None:
        """Raise PermissionDenied for who may not have this done to many."""
        if not request.user.has_perms((RUN_PERMISSION, ACTIONS[operation.action].permission)):
            raise PermissionDenied

    def _not_found(self, request: HttpRequest) -> HttpResponse:
        messages.warning(request, "There is no such bulk operation. It may have been deleted.")
        return HttpResponseRedirect(reverse(LIST))

    @admin.display(description="Asked for (UTC)")
    def requested(self, row: Any) -> SafeString | str:
        """When it was asked for."""
        return columns.timestamp(row.created_at)

    @admin.display(description="What")
    def operation(self, row: Any) -> SafeString:
        """What is done, and to what."""
        list_name, *filters = row.described or ("",)
        words = " · ".join(filters)
        return columns.two_lines(
            f"{ACTIONS[BulkAction(row.action)].verb} {list_name.lower()}",
            format_html('<span class="one-line" title="{}">{}</span>', words, words),
        )

    @admin.display(description="BulkStage")
    def state(self, row: Any) -> SafeString:
        """Where it stands, and how much was done."""
        words, color = STAGES[BulkStage(row.stage)]
        done = row.counts.get(BulkOutcome.DONE.value, 0)
        return columns.two_lines(columns.chip(words, color), f"{done:,} done")

    @admin.display(description="By")
    def actor(self, row: Any) -> str:
        """Who started it, or had it previewed."""
        return row.started_by_name or row.created_by_name

    @admin.display(description="Why")
    def reason_display(self, row: Any) -> str:
        """The reason that was given."""
        return row.reason or columns.EMPTY


def staff_of(request: HttpRequest) -> Staff:
    """Return who asks, as it is kept."""
    return Staff(id=request.user.pk, username=request.user.get_username())
