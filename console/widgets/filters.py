"""Choice and time filters whose conditions MongoDB's indexes can serve."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bson import ObjectId
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import DropdownFilter
from unfold.widgets import INPUT_CLASSES, UnfoldAdminSelectWidget

from domain.time import utc_now
from notifyproject.db.match import Match
from notifyproject.db.stored_match import ago

RECENT = "7d"  # Default range of a list with an unindexed filter
SPANS = {
    "1h": ("Last hour", timedelta(hours=1)),
    "24h": ("Last 24 hours", timedelta(hours=24)),
    "7d": ("Last 7 days", timedelta(days=7)),
    "30d": ("Last 30 days", timedelta(days=30)),
}
Options = Iterable[tuple[str, str]]  # Values and labels
TIME_INPUT = "%Y-%m-%dT%H:%M"
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
"""Bounds of an entered time. A span before or after it is within what a datetime can hold."""


class TimeForm(forms.Form):
    """Form for a time range: a span back from now, or explicit limits in UTC."""

    def __init__(self, *, name: str, label: str, data: dict[str, str]) -> None:
        super().__init__(data)
        spans = [("", "Any time"), *((key, label) for key, (label, _) in SPANS.items())]
        self.fields[f"{name}_within"] = forms.ChoiceField(
            label=label, required=False, choices=spans, widget=UnfoldAdminSelectWidget
        )
        for end in ("from", "until"):
            self.fields[f"{name}_{end}"] = forms.DateTimeField(
                label=f"{end.capitalize()} (UTC)",
                required=False,
                input_formats=[TIME_INPUT, f"{TIME_INPUT}:%S"],
                validators=[MinValueValidator(EARLIEST), MaxValueValidator(LATEST)],
                widget=forms.DateTimeInput(
                    attrs={"type": "datetime-local", "class": " ".join(INPUT_CLASSES)},
                    format=TIME_INPUT,
                ),
            )


class TimeFilter(admin.SimpleListFilter):
    """Filter by the time in ``path``: a span back from now, or explicit limits."""

    path: str
    template = "unfold/filters/filters_field.html"
    is_unindexed = False

    def __init__(self, request: HttpRequest, params: dict[str, Any], *args: Any) -> None:
        super().__init__(request, params, *args)
        for name in self.expected_parameters():
            if name in params:
                self.used_parameters[name] = params.pop(name)[-1]
        self.form = TimeForm(
            name=str(self.parameter_name),
            label=str(self.title).capitalize(),
            data=self.used_parameters,
        )
        self.form.is_valid()

    def lookups(self, request: HttpRequest, model_admin: Any) -> tuple[()]:
        """Return no choices, because the filter has a form."""
        return ()

    def has_output(self) -> bool:
        """Return True: the filter is always shown."""
        return True

    def expected_parameters(self) -> list[str | None]:
        """Return the names of the parameters."""
        return [f"{self.parameter_name}_{part}" for part in ("within", "from", "until")]

    def value(self) -> str | None:
        """Return the name of the chosen span back from now."""
        return self.form.cleaned_data.get(f"{self.parameter_name}_within") or None

    @property
    def is_active(self) -> bool:
        """Whether a time is chosen."""
        return any(self.limits)

    @property
    def limits(self) -> tuple[datetime | None, datetime | None]:
        """The chosen limits: from (inclusive) and until (exclusive)."""
        chosen = self.form.cleaned_data
        since = chosen.get(f"{self.parameter_name}_from")
        span = self.value()
        if since is None and span is not None:
            since = ago(SPANS[span][1], now=utc_now())
        return since, chosen.get(f"{self.parameter_name}_until")

    def since(self, span: str) -> Match:
        """Return the condition for a span back from now."""
        return self.condition(ago(SPANS[span][1], now=utc_now()), None)

    def condition(self, since: datetime | None, until: datetime | None) -> Match:
        """Return the condition for these limits. At least one is required."""
        limits = {"$gte": since, "$lt": until}
        return Match({self.path: {op: self.bound(at) for op, at in limits.items() if at}})

    def bound(self, at: datetime) -> Any:
        """Return a limit in the stored form of the path's values."""
        return at

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Return the rows within the limits; show an error for invalid limits."""
        if self.form.errors:
            messages.error(request, f"{self.title}: enter times as 2026-12-01T09:00.")
        return queryset.filter(self.condition(*self.limits)) if self.is_active else queryset

    def choices(self, changelist: ChangeList) -> Iterator[dict[str, Any]]:
        """Return the form."""
        yield {"form": self.form}


class KeyTimeFilter(TimeFilter):
    """A time range over the key, an ObjectId that begins with its time. Uses the key's index."""

    title = "time"
    path = "_id"

    def bound(self, at: datetime) -> ObjectId:
        """Return the lowest key of the second that contains ``at``."""
        return ObjectId.from_datetime(at)


class ChoiceFilter(DropdownFilter):
    """Filter by one of several values. An unindexed filter needs a time range to be fast."""

    is_unindexed = False
    options: Sequence[tuple[str, str]] = ()

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        """Return the choices."""
        return self.options

    def condition(self, value: str) -> dict[str, Any]:
        """Return the MongoDB condition for a choice."""
        return {str(self.parameter_name): value}

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Return the matching rows. Raises IncorrectLookupParameters for an unknown choice."""
        value = self.value()
        if not value:
            return queryset
        if value not in {str(known) for known, _ in self.lookup_choices}:
            raise IncorrectLookupParameters(f"{self.title}: unknown choice")
        return queryset.filter(Match(self.condition(value)))


def time_filter(title: str, path: str, *, parameter: str = "") -> type[TimeFilter]:
    """Return a time filter on a path. Its parameters begin with ``parameter`` or the title."""
    fields = {"title": title, "parameter_name": parameter or title, "path": path}
    return type(f"{title.title().replace(' ', '')}Filter", (TimeFilter,), fields)


def choice_filter(
    title: str,
    options: Options | Callable[[], Options],
    *,
    parameter: str = "",
    is_unindexed: bool = False,
    condition: Callable[[str], dict[str, Any]] | None = None,
) -> type[ChoiceFilter]:
    """Return a choice filter. Without ``condition``, it filters by the field ``parameter``."""
    fields: dict[str, Any] = {
        "title": title,
        "parameter_name": parameter or title,
        "is_unindexed": is_unindexed,
    }
    if callable(options):
        fields["lookups"] = lambda *_request: list(options())
    else:
        fields["options"] = tuple(options)
    if condition is not None:
        fields["condition"] = lambda _self, value: condition(value)
    return type(f"{title.title().replace(' ', '')}Filter", (ChoiceFilter,), fields)
