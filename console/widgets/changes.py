"""What an audit entry says about a form: each changed field, from which value to which."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from django import forms
from django.db.models import Model, QuerySet

from recipients.masking import mask_text

from .durations import DurationField
from .formats import utc_text

MAX_VALUE = 80  # Characters of one value
_NOTHING: tuple[Any, ...] = (None, "", [], {}, ())


def changed_fields(form: Any) -> list[str]:
    """Return each changed field of a valid form as "Max retries (3 → 5)"; addresses are masked."""
    return [change for name in form.changed_data if (change := _change(form, name))]


def _change(form: Any, name: str) -> str:
    field = form.fields.get(name)
    if field is None:
        return str(name)
    label = str(field.label or name.replace("_", " ")).strip()
    label = label[:1].upper() + label[1:]
    if isinstance(field.widget, forms.PasswordInput):
        return label
    before, after = form.get_initial_for_field(field, name), form.cleaned_data.get(name)
    if isinstance(field, forms.MultipleChoiceField | forms.ModelMultipleChoiceField):
        return f"{label} ({_difference(field, before, after)})"
    old, new = _text(field, before), _text(field, after)
    # An empty input may stand for the default, and a list may be entered as text.
    return f"{label} ({_shown(old)} → {_shown(new)})" if old != new else ""


def _difference(field: Any, before: Any, after: Any) -> str:
    old, new = (
        [_text(field, value) for value in values or ()]
        for values in (_items(before), _items(after))
    )
    added = [name for name in new if name not in old]
    removed = [name for name in old if name not in new]
    parts = (("added", added), ("removed", removed))
    return (
        "; ".join(f"{verb} {', '.join(map(_shown, names))}" for verb, names in parts if names)
        or "order"
    )


def _items(values: Any) -> Iterable[Any]:
    return values.all() if isinstance(values, QuerySet) else values


def _text(field: Any, value: Any) -> str:
    if value in _NOTHING:
        return "empty"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return utc_text(value)
    if isinstance(field, DurationField) and isinstance(value, int):
        return field.text(value)
    if isinstance(field, forms.ModelChoiceField):
        chosen = value if isinstance(value, Model) else field.queryset.filter(pk=value).first()
        value = value if chosen is None else field.label_from_instance(chosen)
    elif isinstance(field, forms.ChoiceField):
        value = dict(_flat(field.choices)).get(str(value), value)
    elif isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = ", ".join(value)
    elif isinstance(value, Mapping | list | tuple | msgspec.Struct):
        value = json.dumps(msgspec.to_builtins(value), ensure_ascii=False, default=str)
    return " ".join(str(value).split())


def _shown(text: str) -> str:
    text = mask_text(text)
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"


def _flat(choices: Iterable[Any]) -> Iterable[tuple[str, str]]:
    for value, label in choices:
        if isinstance(label, list | tuple):
            yield from _flat(label)
        else:
            yield str(value), str(label)
