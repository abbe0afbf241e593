"""Fields whose values are objects, or lists of objects: as inputs, instead of JSON in a box.

Each is a form within the form: its fields are Django's, and so are their errors. The value is made
of dicts and lists, as the API takes them; what is empty is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.utils import ErrorList
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

Fields = Mapping[str, forms.Field]
ROW = "{}-{}"
"""Prefix of the inputs of one object in a list."""


class _Part(forms.Form):
    """The inputs of one object."""

    declared: Fields

    def clean(self) -> dict[str, Any]:
        """Return the fields that aren't empty."""
        return {
            name: value
            for name, value in self.cleaned_data.items()
            if value not in (None, "", [], False)
        }

    @property
    def is_empty(self) -> bool:
        """Whether no field differs from that of a new object."""
        return not self.has_changed()


def _part(fields: Fields, *, title: str) -> type[_Part]:
    return type("Part", (_Part,), {**fields, "title": title})


class StructureWidget(forms.Widget):
    """The inputs of one object, or of up to ``rows`` objects."""

    template_name = "console/widgets/structure.html"
    use_fieldset = True

    def __init__(self, part: type[_Part], *, rows: int | None, noun: str, spare: int) -> None:
        self.part, self.rows, self.noun, self.spare = part, rows, noun, spare
        self._sent: tuple[Any, str, list[_Part]] | None = None
        super().__init__()

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        """Return the bound forms of the objects, the same ones for the same data."""
        if self._sent is None or self._sent[0] is not data or self._sent[1] != name:
            bound = [
                self.part(data, prefix=prefix, empty_permitted=True, use_required_attribute=False)
                for prefix in self._prefixes(name, self._count_sent(data, name))
            ]
            self._sent = (data, name, bound)
        return self._sent[2]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        """Return False: an object without any input is an empty one."""
        return False

    def posted(self, key: str, value: Any) -> Iterator[tuple[str, forms.Field, Any]]:
        """Return name, field, and value of each input for a stored value."""
        for form in self.unbound(key, value):
            for name, field in form.fields.items():
                yield form.add_prefix(name), field, form[name].initial

    def unbound(self, name: str, value: Any) -> list[_Part]:
        """Return the forms that show a stored value, with a few empty ones after it."""
        found = value or [] if self.rows else [value or {}]
        if not isinstance(found, Sequence) or not all(isinstance(item, Mapping) for item in found):
            found = []
        count = len(found)
        if self.rows:
            count = max(min(count + self.spare, self.rows), len(found))
        return [
            self.part(initial=found[number] if number < len(found) else None, prefix=prefix)
            for number, prefix in enumerate(self._prefixes(name, count))
        ]

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Return the inputs, by a template of the project rather than of the forms' renderer."""
        return render_to_string(self.template_name, self.get_context(name, value, attrs))

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        """Return the forms, for the template."""
        context = super().get_context(name, value, attrs)
        is_bound = isinstance(value, list) and value and isinstance(value[0], _Part)
        parts = value if is_bound else self.unbound(name, value)
        return {
            **context,
            "rows": [
                {
                    "form": form,
                    "number": number + 1,
                    "is_spare": number > 0 and bool(self.rows) and _is_blank(form),
                }
                for number, form in enumerate(parts)
            ],
            "is_list": self.rows is not None,
            "noun": self.noun,
        }

    def id_for_label(self, id_: str) -> str:
        """Return nothing: the label is of a group of inputs."""
        return ""

    def _prefixes(self, name: str, count: int) -> list[str]:
        return [ROW.format(name, number) for number in range(count)] if self.rows else [name]

    def _count_sent(self, data: Any, name: str) -> int:
        numbers = {
            int(parts[0])
            for key in data
            if key.startswith(f"{name}-")
            and (parts := key.removeprefix(f"{name}-").split("-", 1))[0].isdecimal()
            and len(parts[0]) < len(str(self.rows or 0)) + 2
        }
        return min(max(numbers, default=-1) + 1, self.rows or 1)


def _is_blank(form: _Part) -> bool:
    return form.is_empty if form.is_bound else not form.initial


class StructureField(forms.Field):
    """An object as inputs; None if all are empty. With ``rows``, a list of up to that number."""

    widget: StructureWidget

    def __init__(
        self,
        fields: Fields,
        *,
        rows: int | None = None,
        noun: str = "",
        spare: int = 1,
        **options: Any,
    ) -> None:
        part = _part(fields, title=noun)
        widget = StructureWidget(part, rows=rows, noun=noun, spare=spare)
        super().__init__(required=False, widget=widget, **options)

    def clean(self, value: Any) -> Any:
        """Return the object or the list. Raises ValidationError if an input is wrong."""
        forms_ = [form for form in value or () if not form.is_empty]
        valid = [form.is_valid() for form in forms_]  # Of each, so that each shows its errors
        if not all(valid):
            raise ValidationError("See the marked inputs.")
        found = [self.built(dict(form.cleaned_data)) for form in forms_]
        if self.widget.rows:
            return found
        return found[0] if found else None

    def built(self, values: dict[str, Any]) -> Any:
        """Return the object of the inputs' values."""
        return values

    def taken_apart(self, value: Any) -> Any:
        """Return the inputs' values of an object, the reverse of :meth:`built`."""
        return value

    def prepare_value(self, value: Any) -> Any:
        """Return what the widget shows: bound forms as they are, and objects taken apart."""
        if isinstance(value, list) and value and isinstance(value[0], _Part):
            return value
        if self.widget.rows:
            return [self.taken_apart(item) for item in value or ()]
        return self.taken_apart(value) if value else value

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return the bound forms."""
        return data

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether the objects differ in more than what is empty."""
        try:
            return bool(_plain(self.clean(data)) != _plain(self._read(initial)))
        except ValidationError:
            return True

    def _read(self, value: Any) -> Any:
        """Return a stored value as this field cleans it."""
        shown = self.widget.unbound("x", self.prepare_value(value))
        found = [
            self.built(
                {
                    name: form[name].initial
                    for name in form.fields
                    if form[name].initial not in (None, "", [], False)
                }
            )
            for form in shown
            if form.initial
        ]
        return found if self.widget.rows else (found[0] if found else None)

    def show_error(self, forms_: Any, path: Sequence[str], text: str) -> None:
        """Mark the input at a path within the value, such as ``("steps", "1", "after")``."""
        rows = [form for form in forms_ or () if not form.is_empty]
        numbers = [int(part) for part in path if part.isdecimal()]
        names = [part for part in path if not part.isdecimal()]
        number = numbers[0] if self.widget.rows and numbers else 0
        if number < len(rows):
            form = rows[number]
            name = next((part for part in reversed(names) if part in form.fields), None)
            form.errors.setdefault(name or forms.forms.NON_FIELD_ERRORS, ErrorList()).append(text)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items() if v not in (None, "", [], False)}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
