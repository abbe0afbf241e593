"""Inputs for the data of a type, made from its schema or, without one, from its example data.

An empty input is left out of the data. What is missing or wrong is for intake to say, which checks
the data against the schema and the template.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from domain.time import InvalidTimeError, parse_timestamp
from notifications.catalog.definitions import MAX_DEPTH, exceeds_depth
from notifications.content.properties import (
    LONG_TEXT,
    MAX_TEXT,
    DataProperty,
    kind_of,
    properties_of,
    with_offset,
)
from notifications.documents.catalog import NotificationTypeDocument

from ..texts.labels import code_label

PREFIX = "data:"
"""Begins the names of the inputs of data."""
MAX_TIME = 34
"""Characters of an entered time. A request takes 40; an offset and seconds add up to 4."""
OMITTED = object()
"""The value of an empty input."""
OPTIONAL = "Optional."
MASKED = "Secret: masked in the preview, and in the console once it is sent."
UTC_TIME = "In UTC."
_BLANK = ("", "Not given")
_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_INPUT_TYPES = {"date": "date", "date-time": "datetime-local", "email": "email", "uri": "url"}
"""The type of the input for each format of a text."""


def fields_of(document: NotificationTypeDocument) -> Iterator[tuple[str, forms.Field]]:
    """Yield name and field of each input of a stored type's data."""
    for one in properties_of(document):
        yield f"{PREFIX}{one.name}", _field(one)


def _field(one: DataProperty) -> forms.Field:
    schema = one.schema
    notes = [schema.get("description", "")]
    kind = kind_of(schema)
    if kind == "string" and schema.get("format") == "date-time":
        notes.append(UTC_TIME)
    if one.is_secret:
        notes.append(MASKED)
    if not one.is_required:
        notes.append(OPTIONAL)
    options: dict[str, Any] = {
        "label": schema.get("title") or code_label(one.name),
        "help_text": " ".join(note for note in notes if note),
        "required": False,
    }
    default = schema.get("default")
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if choices is None and kind == "boolean":
        choices = [True, False]
    if choices is not None:
        initial = json.dumps(default) if "default" in schema else None
        return ValueChoiceField(choices, initial=initial, **options)
    # An empty input stands for null, which has no text.
    options["initial"] = None if default is None else _shown(default)
    example = next(iter(schema.get("examples", ())), one.example)
    hint = {"placeholder": "" if example is None else _shown(example), "autocomplete": "off"}
    if kind == "string":
        return _text_field(schema, hint, options)
    if kind in ("number", "integer"):
        mode = "numeric" if kind == "integer" else "decimal"
        widget = UnfoldAdminTextInputWidget(attrs={**hint, "inputmode": mode})
        return NumberField(is_whole=kind == "integer", widget=widget, **options)
    area = UnfoldAdminTextareaWidget(attrs={**hint, "rows": 4, "spellcheck": "false"})
    return JsonField(widget=area, **options)


def _text_field(
    schema: Mapping[str, Any], hint: Mapping[str, Any], options: Mapping[str, Any]
) -> forms.Field:
    is_long = schema.get("format") is None and schema.get("maxLength", 0) > LONG_TEXT
    is_time = schema.get("format") == "date-time"
    # Of several lines, an input of one line would leave out the line breaks.
    has_lines = any("\n" in (text or "") for text in (options["initial"], hint["placeholder"]))
    if is_long or (has_lines and not is_time):
        return TextField(widget=UnfoldAdminTextareaWidget(attrs={**hint, "rows": 4}), **options)
    widget = UnfoldAdminTextInputWidget(attrs=dict(hint))
    widget.input_type = _INPUT_TYPES.get(schema.get("format", ""), "text")
    if is_time:
        return TimeField(widget=widget, **{**options, "initial": _entered(options["initial"])})
    return TextField(widget=widget, **options)


def _entered(default: str | None) -> str | None:
    """Return a time in UTC without an offset, as a browser takes it; None for another text."""
    try:
        at = parse_timestamp(with_offset(default or ""))
    except InvalidTimeError:
        return None
    parts = "milliseconds" if at.microsecond else "seconds"
    return at.replace(tzinfo=None).isoformat(timespec=parts)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class TextField(forms.CharField):
    """A text, without blanks around it."""

    def __init__(self, *, max_length: int = MAX_TEXT, **options: Any) -> None:
        super().__init__(max_length=max_length, empty_value=OMITTED, **options)

    def to_python(self, value: Any) -> Any:
        """Return the text with the line ends that templates have."""
        found = super().to_python(value)
        return found.replace("\r\n", "\n") if isinstance(found, str) else found

    def run_validators(self, value: Any) -> None:
        """Check the length of a text. Other values have none."""
        if isinstance(value, str):
            super().run_validators(value)


class TimeField(TextField):
    """A time in UTC, as RFC 3339 has it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_TIME, **options)

    def to_python(self, value: Any) -> Any:
        """Return the time with its offset; a browser's input has none."""
        found = super().to_python(value)
        return with_offset(found) if isinstance(found, str) else found


class NumberField(TextField):
    """A number in decimal notation."""

    def __init__(self, *, is_whole: bool, **options: Any) -> None:
        self.is_whole = is_whole
        super().__init__(**options)

    def to_python(self, value: Any) -> Any:
        """Return the number. Raises ValidationError for a text that isn't one."""
        found = super().to_python(value)
        if not isinstance(found, str):
            return found
        if _INTEGER.fullmatch(found):
            return int(found)
        if self.is_whole:
            raise ValidationError("Enter a whole number, such as 12.")
        try:
            number = float(found)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise ValidationError("Enter a number, such as 12.5.")
        return number


class ValueChoiceField(forms.ChoiceField):
    """One of several JSON values."""

    def __init__(self, values: list[Any], **options: Any) -> None:
        choices = [(json.dumps(value), _label(value)) for value in values]
        super().__init__(choices=[_BLANK, *choices], widget=UnfoldAdminSelectWidget, **options)

    def clean(self, value: Any) -> Any:
        """Return the value. Raises ValidationError for an unknown one."""
        found = super().clean(value)
        return json.loads(found) if found else OMITTED


def _label(value: Any) -> str:
    return {True: "Yes", False: "No"}[value] if isinstance(value, bool) else _shown(value)


class JsonField(TextField):
    """A list, an object, or another value that has no input of its own, as JSON."""

    def to_python(self, value: Any) -> Any:
        """Return the value. Raises ValidationError with the place of the first fault."""
        found = super().to_python(value)
        if not isinstance(found, str):
            return found
        try:
            parsed = json.loads(
                found, parse_constant=_refuse_constant, object_pairs_hook=_refuse_duplicates
            )
        except json.JSONDecodeError as error:
            place = f"line {error.lineno}, character {error.colno}"
            raise ValidationError(f"Not JSON: {error.msg} at {place}.") from error
        except ValueError as error:
            raise ValidationError("A number has too many digits.") from error
        except RecursionError as error:
            raise ValidationError(f"Nesting exceeds {MAX_DEPTH} levels.") from error
        if exceeds_depth(parsed, MAX_DEPTH):
            raise ValidationError(f"Nesting exceeds {MAX_DEPTH} levels.")
        return parsed


def _refuse_constant(name: str) -> Any:
    raise ValidationError(f"{name} is not JSON.")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValidationError("An object has the same key twice.")
    return found
