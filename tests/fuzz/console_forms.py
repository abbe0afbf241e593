"""The forms on pages of the console, with their fields and present values."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

from django.test import Client
from django.urls import reverse

TOKEN = "csrfmiddlewaretoken"
CHECKED = ("checkbox", "radio")
IGNORED = ("submit", "button", "image", "reset", "file")


@dataclass(kw_only=True)
class Form:
    """A form that is posted."""

    action: str
    values: dict[str, list[str]] = field(default_factory=dict)
    """By name, those that a browser sends. Empty for a box that isn't checked."""

    @property
    def deletes(self) -> bool:
        """Whether it deletes an object, which other forms need."""
        return self.action.endswith(("/delete/", "/erase/"))


class _Parser(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.found: list[Form] = []
        self._form: Form | None = None
        self._name = ""
        self._is_text = self._is_multiple = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        name = given.get("name", "")
        if tag == "form":
            is_posted = given.get("method", "").lower() == "post"
            self._form = Form(action=urljoin(self.url, given.get("action", "")))
            self.found += [self._form] if is_posted else []
        elif self._form is None or name == TOKEN:
            return
        elif tag == "input" and name and given.get("type") not in IGNORED:
            values = self._form.values.setdefault(name, [])
            is_box = given.get("type") in CHECKED
            if not is_box or "checked" in given:
                values.append(given.get("value", "on" if is_box else ""))
        elif tag in ("textarea", "select") and name:
            self._name, self._is_text = name, tag == "textarea"
            self._is_multiple = "multiple" in given
            self._form.values[name] = [""] if self._is_text else []
            self._is_chosen = False
        elif tag == "option" and self._name:
            values, value = self._form.values[self._name], given.get("value", "")
            if self._is_multiple:
                values += [value] if "selected" in given else []
            # Of a select without a selected option, a browser sends the first.
            elif not values or ("selected" in given and not self._is_chosen):
                values[:] = [value]
                self._is_chosen = "selected" in given

    def handle_data(self, data: str) -> None:
        if self._form is not None and self._is_text:
            self._form.values[self._name][0] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag in ("textarea", "select"):
            if self._is_text and self._form is not None:
                # A browser drops the line end after the tag, and sends others as CRLF.
                lines = self._form.values[self._name][0].removeprefix("\n").split("\n")
                self._form.values[self._name] = ["\r\n".join(lines)]
            self._name, self._is_text = "", False


def every_form(console: Client, pages: Iterable[str]) -> list[Form]:
    """Return the forms of these pages, those that delete last.

    Submits each, because some are answered with another that asks for a confirmation.
    """
    found: dict[tuple[str, frozenset[str]], Form] = {}
    for path in pages:
        for form in forms_of(console.get(path), path):
            found.setdefault((form.action, frozenset(form.values)), form)
    for form in [candidate for candidate in found.values() if not candidate.deletes]:
        for asked in forms_of(console.post(form.action, form.values), form.action):
            found.setdefault((asked.action, frozenset(asked.values)), asked)
    return sorted(found.values(), key=lambda form: form.deletes)


def forms_of(answer: Any, url: str) -> list[Form]:
    """Return the forms of a page that are posted, without the one that signs out."""
    if not answer.headers.get("Content-Type", "").startswith("text/html"):
        return []
    parser = _Parser(url)
    parser.feed(answer.content.decode())
    return [form for form in parser.found if form.action != reverse("admin:logout")]
