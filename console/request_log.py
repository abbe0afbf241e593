"""The recent requests of API clients, found by their request IDs."""

from operator import itemgetter
from typing import Any

from bson import ObjectId
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from access.models import APIClient
from notifications.models import LoggedRequest
from notifyproject.platform import doc_pages

from .callbacks.endpoints import ClientOwnedAdmin
from .widgets.columns import chip, json_block, notification_column, text_column, time_column
from .widgets.filters import KeyTimeFilter, choice_filter
from .widgets.formats import EMPTY, count_of
from .widgets.keyset_list import KeysetChangeList
from .widgets.lists import section

_COLORS = {2: "success", 4: "warning", 5: "danger"}
_OUTCOMES = {
    "refused": ("Refused (4xx)", {"$gte": 400, "$lt": 500}),
    "failed": ("Failed (5xx)", {"$gte": 500}),
    "succeeded": ("Succeeded", {"$lt": 400}),
}
OutcomeFilter = choice_filter(
    "outcome",
    ((name, label) for name, (label, _) in _OUTCOMES.items()),
    is_unindexed=True,
    condition=lambda value: {"status": _OUTCOMES[value][1]},
)


def _clients() -> list[tuple[str, str]]:
    found = APIClient.objects.values_list("pk", "name")
    return sorted(((str(key), name) for key, name in found), key=itemgetter(1))


ClientFilter = choice_filter(
    "client", _clients, condition=lambda value: {"client_id": ObjectId(value)}
)


class AnsweredFilter(KeyTimeFilter):
    """When a request got its response."""

    parameter_name = "answered"


@admin.register(LoggedRequest)
class RequestLogAdmin(ClientOwnedAdmin):
    """The requests of API clients, newest first. They contain no value that names anybody."""

    list_display = ("time", "client", "asked", "result", "took", "given_id")
    list_filter = (ClientFilter, OutcomeFilter, AnsweredFilter)
    fieldsets = (
        section(None, "client", "asked", "result", "time", "took", "given_id", "notification"),
        section("Body", "size", "body_display"),
        section("Problem", "problem", "fields_display"),
    )
    changelist_class = KeysetChangeList
    search_fields = ("request_id",)
    search_help_text = "Request ID: X-Request-Id of a response, request_id of a problem"
    ordering = ("-id",)
    empty_title = "No requests"
    empty_text = "Requests of API clients are shown here a second or two after their response."
    object_label = "Request"
    time = time_column("Time", "at")
    given_id = text_column("Request ID", "request_id")
    notification = notification_column()

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return the requests. The list leaves out their bodies."""
        queryset = super().get_queryset(request)
        match = request.resolver_match
        is_list = match is not None and not match.kwargs
        return queryset.defer("body", "errors") if is_list else queryset

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the sections: that of the problem only if there is one."""
        return self.fieldsets if obj is None or obj.code else self.fieldsets[:-1]

    def object_title(self, obj: Any) -> str:
        """Return the method and the path."""
        return str(obj)

    def search(self, request: HttpRequest, queryset: QuerySet, text: str) -> QuerySet:
        """Return the requests with this ID. A client may have given several the same."""
        return queryset.filter(request_id=text)

    @admin.display(description="Request")
    def asked(self, row: Any) -> SafeString:
        """Return the method and the path."""
        return format_html('<code class="wraps">{} {}</code>', row.method, row.path)

    @admin.display(description="Response")
    def result(self, row: Any) -> SafeString:
        """Return the status, with the problem's code."""
        text = f"{row.status} {row.code}" if row.code else row.status
        return chip(text, _COLORS.get(row.status // 100, "info"))

    @admin.display(description="Duration")
    def took(self, row: Any) -> str:
        """Return the time from the request to its response."""
        return f"{row.duration_ms:,} ms"

    @admin.display(description="Size")
    def size(self, row: Any) -> str:
        """Return the length of the body."""
        return count_of(row.body_bytes, "byte")

    @admin.display(description="Masked")
    def body_display(self, row: Any) -> SafeString | str:
        """Return the masked body, indented."""
        return json_block(row.body) if row.body else EMPTY

    @admin.display(description="Code")
    def problem(self, row: Any) -> SafeString | str:
        """Return the code, with a link to its page of the documentation."""
        if not row.code:
            return EMPTY
        page = doc_pages.problem_type(row.code)
        if not page.startswith("http"):
            return str(row.code)
        return format_html('<a class="text-link" href="{}">{}</a>', page, row.code)

    @admin.display(description="Fields")
    def fields_display(self, row: Any) -> SafeString | str:
        """Return the pointer and the code of each invalid field."""
        if not row.errors:
            return EMPTY
        lines = format_html_join("", "<li><code>{}</code></li>", ((each,) for each in row.errors))
        return format_html("<ul>{}</ul>", lines)
