"""Panels that several pages show."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.http import HttpResponse

from .names import client_names, staff_names

AUDIT_LINES = 50
EMAIL_POLICY = "; ".join(
    (
        "sandbox",
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src https: data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
    )
)
"""For an email in a frame: it may load images, and runs nothing."""
LIVE_POLICY = EMAIL_POLICY.replace("sandbox", "sandbox allow-same-origin", 1)
"""For a frame whose document its page replaces, which runs nothing either."""
# Links open new windows, which the sandbox forbids, so that they lead nowhere.
_NO_LINKS = '<base target="_blank">'
_HEAD = "<head>"
_HAS_DIRECTION = re.compile(r"<(?:html|body)\b[^>]*\sdir\s*=", re.IGNORECASE)


def email_document(html: str) -> HttpResponse:
    """Return an email's HTML as the document of a frame.

    It has an address of its own because a frame with ``srcdoc`` has the policy of its page, which
    refuses the inline styles of an email.
    """
    return _document_of_frame(framed(html), EMAIL_POLICY)


def live_document() -> HttpResponse:
    """Return the empty document of a frame, which its page fills with what :func:`framed` gives."""
    return _document_of_frame("<!doctype html><title>Preview</title>", LIVE_POLICY)


def framed(html: str) -> str:
    """Return an email's HTML as a frame needs it."""
    marked = html.replace(_HEAD, _HEAD + _NO_LINKS, 1) if _HEAD in html else _NO_LINKS + html
    if not _HAS_DIRECTION.search(html):
        # A mail program finds the direction of a text by itself; a frame needs to be told.
        marked = f'<div dir="auto">{marked}</div>'
    return marked


def _document_of_frame(html: str, policy: str) -> HttpResponse:
    response = HttpResponse(html)
    response["Content-Security-Policy"] = policy
    response["X-Frame-Options"] = "SAMEORIGIN"
    return response


def times(
    document: Mapping[str, object], fields: Iterable[tuple[str, str]]
) -> list[tuple[str, datetime]]:
    """Return a label and a time for each of ``fields`` that the document has."""
    found = ((label, document.get(name)) for label, name in fields)
    return [(label, at) for label, at in found if isinstance(at, datetime)]


def audit_log(model: type[Model], object_id: Any) -> list[dict[str, Any]]:
    """Return the newest audit entries of one object, for ``console/widgets/audit.html``."""
    content_type = ContentType.objects.get_for_model(model)
    entries = LogEntry.objects.filter(content_type_id=content_type.pk, object_id=str(object_id))
    found = list(entries.order_by("-id")[:AUDIT_LINES])
    actors = {entry.user_id for entry in found}
    users = staff_names(actors)
    clients = client_names(actors - users.keys()) if actors - users.keys() else {}
    lines: list[dict[str, Any]] = []
    for entry in found:
        what, name = entry.get_change_message(), clients.get(entry.user_id)
        who = users.get(entry.user_id) or f"client {name}"
        line = {"at": entry.action_time, "who": who, "what": what}
        if name is not None:
            line["what"] = what.removeprefix(f"By client {name}: ")
        # A client that repeats a request leaves the same entry again: the first one counts.
        if lines and (lines[-1]["who"], lines[-1]["what"]) == (line["who"], line["what"]):
            lines.pop()
        lines.append(line)
    return lines
