"""Forms of stored objects: a save changes what the user changed, and nothing else.

A browser sends every field of a form back, also those that nobody touched, and some in another
spelling: with CRLF line ends, without blanks, in another order. Meanwhile, others change the same
object. So a page carries a digest of each field's text, and what returns unchanged isn't stored.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from types import new_class
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.functional import cached_property

from ..texts.labels import code_label

SHOWN = "_shown"
"""Name of the hidden input with the digests of the fields' texts."""
Posted = dict[str, list[str]]


def compared(form: Any) -> Any:
    """Return a form class that compares what is sent with what was shown."""
    return new_class(form.__name__, (_ComparedForm, form))


class _ComparedForm(forms.ModelForm):
    """A form whose ``changed_data`` names only the fields that the user changed."""

    data: QueryDict

    def __init__(self, data: Any = None, *args: Any, **options: Any) -> None:
        super().__init__(_with_stored_line_ends(data), *args, **options)
        _offer_stored_choices(self)
        self._shown_before: Mapping[str, str] = {}
        if self.is_bound and self._is_stored:
            self._shown_before = _read_digests(self.data)
            self._take_over_what_others_changed()

    @property
    def shown_digests(self) -> str:
        """The digests of the fields' texts, for the hidden input; empty for a new object."""
        if not self._is_stored:
            return ""
        return json.dumps({name: _digest(_shown(self, name)) for name in self._compared_names()})

    @cached_property
    def changed_data(self) -> list[str]:
        """The names of the fields that differ from the stored ones."""
        found: list[str] = super().changed_data
        if not self._is_stored:
            return found
        return [
            name
            for name in found
            if name not in self._compared_names() or _sent(self, name) != _shown(self, name)
        ]

    def clean(self) -> dict[str, Any]:
        """Return the fields. Adds an error to each that someone else changed as well."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        for name in self.changed_data:
            before = self._shown_before.get(name)
            if before is not None and before != _digest(_shown(self, name)):
                now = ", ".join(filter(None, _flat(_shown(self, name)))) or "empty"
                self.add_error(
                    name,
                    f"Someone changed this after you opened the page. It is now: {now}. "
                    "To replace that, save again.",
                )
        return cleaned

    @property
    def _is_stored(self) -> bool:
        return not self.instance._state.adding

    def _compared_names(self) -> list[str]:
        return [name for name, field in self.fields.items() if not field.disabled]

    def _take_over_what_others_changed(self) -> None:
        """Replace each text that came back as it was shown, but is stored differently by now."""
        data = None
        for name in self._compared_names():
            shown, sent = _shown(self, name), _sent(self, name)
            if sent != shown and self._shown_before.get(name) == _digest(sent):
                data = data or self.data.copy()
                for key in {*shown, *sent}:
                    data.setlist(key, shown.get(key, []))
        if data is not None:
            self.data = data


def _with_stored_line_ends(data: Any) -> Any:
    """Return what a browser sent, whose line ends are CRLF, with those that are stored: LF."""
    if not isinstance(data, QueryDict) or not any("\r\n" in text for text in data.values()):
        return data
    data = data.copy()
    for key, texts in data.lists():
        data.setlist(key, [text.replace("\r\n", "\n") for text in texts])
    return data


def _offer_stored_choices(form: forms.ModelForm) -> None:
    """Add stored values to the choices, which may be fewer than when the object was stored."""
    for name, field in form.fields.items():
        if not isinstance(field, forms.ChoiceField) or isinstance(field, forms.ModelChoiceField):
            continue
        value = form.get_initial_for_field(field, name)
        values = value if isinstance(value, list | tuple) else [value]
        known = set(_values(field.choices))
        others = [value for value in values if value not in (None, "") and str(value) not in known]
        if others:
            added = [(value, f"{code_label(str(value))} (no longer offered)") for value in others]
            field.choices = [*field.choices, *added]


def _values(choices: Any) -> Iterator[str]:
    for value, label in choices:
        if isinstance(label, list | tuple):
            yield from _values(label)
        else:
            yield str(value)


def _read_digests(data: QueryDict) -> Mapping[str, str]:
    try:
        found = json.loads(data.get(SHOWN, ""))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _digest(posted: Posted) -> str:
    text = json.dumps(posted, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _shown(form: forms.ModelForm, name: str) -> Posted:
    """Return what a browser sends for a field of the stored object."""
    return _normal(_posted_of(form, name))


def _sent(form: forms.ModelForm, name: str) -> Posted:
    """Return what the browser has sent for a field."""
    keys = set(_posted_of(form, name))
    if hasattr(form.fields[name].widget, "posted"):
        keys |= {key for key in form.data if key.startswith(f"{form[name].html_name}-")}
    return _normal({key: form.data.getlist(key) for key in keys})


def _posted_of(form: forms.ModelForm, name: str) -> Posted:
    bound = form[name]
    value = bound.field.prepare_value(bound.initial)
    return _posted(_inner(bound.field.widget), bound.html_name, value)


def _inner(widget: Any) -> Any:
    """Return the widget within the admin's wrapper of a relation."""
    return getattr(widget, "widget", widget)


def _posted(widget: Any, key: str, value: Any) -> Posted:
    if hasattr(widget, "posted"):
        within: Posted = {}
        for name, field, part in widget.posted(key, value):
            within |= _posted(field.widget, name, field.prepare_value(part))
        return within
    if isinstance(widget, forms.MultiWidget):
        parts = value if isinstance(value, list | tuple) else widget.decompress(value)
        found: Posted = {}
        for suffix, inner, part in zip(widget.widgets_names, widget.widgets, parts, strict=True):
            found |= _posted(_inner(inner), key + suffix, part)
        return found
    if isinstance(widget, forms.CheckboxInput):
        return {key: ["on"] if widget.check_test(value) else []}
    text = widget.format_value(value)
    if isinstance(text, list | tuple | set):
        return {key: sorted(map(str, text))}
    return {key: [str(text)] if text is not None else []}


def _normal(posted: Posted) -> Posted:
    """Return lists without empty texts, and with the line ends that are stored.

    Line ends before a text don't count, because a browser drops the first one.
    """
    return {
        key: sorted(text.replace("\r\n", "\n").lstrip("\n") for text in texts if text)
        for key, texts in posted.items()
        if any(texts)
    }


def _flat(posted: Posted) -> Iterator[str]:
    for texts in posted.values():
        yield from texts
