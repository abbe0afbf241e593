"""Choice and time filters whose conditions MongoDB's indexes can serve."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bson import ObjectId
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import DropdownFilter
from unfold.widgets import INPUT_CLASSES, UnfoldAdminSelectWidget

from notifyproject.db.match import Match

RECENT = "7d"
"""Time range of a list with an unindexed filter and no chosen time."""
SPANS = {
    "1h": ("Last hour", timedelta(hours=1)),
    "24h": ("Last 24 hours", timedelta(hours=24)),
    "7d": ("Last 7 days", timedelta(days=7)),
    "30d": ("Last 30 days", timedelta(days=30)),
}
_INPUT = "%Y-%m-%dT%H:%M"


class TimeForm(forms.Form):
    """A time range: back from now, or explicit limits in UTC."""

    def __init__(self, *, name: str, label: str, data: dict[str, str]) -> None:
        super().__init__(data)
        spans = [("", "Any time"), *((key, label) for key, (label, _) in SPANS.items())]
        self.fields[f"{name}_within"] = forms.ChoiceField(
            label=label, required=False, choices=spans, widget=UnfoldAdminSelectWidget
        )
        for end, words in (("from", "From (UTC)"), ("until", "Until (UTC)")):
            self.fields[f"{name}_{end}"] = forms.DateTimeField(
                label=words,
                required=False,
                input_formats=[_INPUT, f"{_INPUT}:%S"],
                widget=forms.DateTimeInput(
                    attrs={"type": "datetime-local", "class": " ".join(INPUT_CLASSES)},
                    format=_INPUT,
                ),
            )


class TimeFilter(admin.SimpleListFilter):
    """A time range over one ``path``: back from now, or explicit limits.

    The parameters are ``<parameter_name>_within``, ``_from`` and ``_until``.
    """

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
        """Return no choices: they are in the form."""
        return ()

    def has_output(self) -> bool:
        """Return True: the filter is always shown."""
        return True

    def expected_parameters(self) -> list[str | None]:
        """Return the names of the parameters."""
        return [f"{self.parameter_name}_{part}" for part in ("within", "from", "until")]

    def value(self) -> str | None:
        """Return the chosen range back from now."""
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
            since = datetime.now(UTC) - SPANS[span][1]
        return since, chosen.get(f"{self.parameter_name}_until")

    def since(self, span: str) -> Match:
        """Return the condition for a range back from now."""
        return self.condition(datetime.now(UTC) - SPANS[span][1], None)

    def condition(self, since: datetime | None, until: datetime | None) -> Match:
        """Return the condition for these limits; at least one must be given."""
        bounds = {"$gte": since} if since is not None else {}
        if until is not None:
            bounds["$lt"] = until
        return Match({self.path: bounds})

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Return the rows within the limits; show an error for invalid limits."""
        if self.form.errors:
            messages.error(request, f"{self.title}: enter times as 2026-12-01T09:00.")
        return queryset.filter(self.condition(*self.limits)) if self.is_active else queryset

    def choices(self, changelist: ChangeList) -> Iterator[dict[str, Any]]:
        """Return the form."""
        yield {"form": self.form}


class ObjectIdTimeFilter(TimeFilter):
    """A time range over the key, which begins with a time; no other index is needed."""

    path = "_id"

    def condition(self, since: datetime | None, until: datetime | None) -> Match:
        """Return the condition on the key, to the second."""
        bounds = {"$gte": ObjectId.from_datetime(since)} if since is not None else {}
        if until is not None:
            bounds["$lt"] = ObjectId.from_datetime(until)
        return Match({self.path: bounds})


class ChoiceFilter(DropdownFilter):
    """A choice of one value.

    ``is_unindexed``: no index serves the filter together with the list's order, so that the list
    needs a time range.
    """

    is_unindexed = False
    options: Sequence[tuple[str, str]] = ()

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        """Return the choices."""
        return self.options

    def condition(self, word: str) -> dict[str, Any]:
        """Return the MongoDB condition for a choice."""
        return {str(self.parameter_name): word}

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Return the matching rows. Raises IncorrectLookupParameters for an unknown choice."""
        word = self.value()
        if not word:
            return queryset
        if word not in {str(known) for known, _ in self.lookup_choices}:
            raise IncorrectLookupParameters(f"{self.title}: unknown choice")
        return queryset.filter(Match(self.condition(word)))


def time_filter(title: str, path: str) -> type[TimeFilter]:
    """Return a time filter over one path; its parameters begin with the title."""
    fields = {"title": title, "parameter_name": title, "path": path}
    return type(f"{title.capitalize()}Filter", (TimeFilter,), fields)


def choice_filter(
    title: str,
    options: Iterable[tuple[str, str]],
    *,
    parameter: str = "",
    is_unindexed: bool = False,
    condition: Callable[[str], dict[str, Any]] | None = None,
) -> type[ChoiceFilter]:
    """Return a choice filter; without a ``condition``, a field of the parameter's name is equal."""
    fields: dict[str, Any] = {
        "title": title,
        "parameter_name": parameter or title,
        "options": tuple(options),
        "is_unindexed": is_unindexed,
    }
    if condition is not None:
        fields["condition"] = lambda _self, word: condition(word)
    return type(f"{title.title().replace(' ', '')}Filter", (ChoiceFilter,), fields)
