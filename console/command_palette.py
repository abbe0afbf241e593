"""Search of the command palette (Ctrl K): pages and actions, recipients, and notifications."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse

from domain.time import utc_now
from notifications import queries
from recipients.documents import RECIPIENTS
from recipients.masking import can_see_addresses

from .navigation import command_links
from .notifications.search import find_ids as find_notification_ids
from .recipients.page import recipient_url
from .recipients.search import find_ids as find_user_ids
from .saved_views.menu import icon_of, url_of, visible_views
from .texts.labels import notification_state
from .widgets import columns, formats, names
from .widgets.links import NOTIFICATION
from .widgets.search import REFUSAL, pasted, searched_addresses

LIMIT = 8  # Maximum results of each kind
_RECIPIENT = {"name": 1, "email": 1, "phone": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One line of the palette: a link, its kind, and a description."""

    kind: str
    icon: str
    title: str
    description: str
    url: str


def search_view(request: HttpRequest) -> HttpResponse:
    """Return the results for a search text, as the part of the page that the palette shows."""
    text = pasted(request.GET.get("s", ""))
    results = [*_pages(request, text), *_recipients(request, text), *_notifications(request, text)]
    refusal = REFUSAL if searched_addresses(text, user=request.user).is_refused else ""
    context = {"text": text, "results": results if text else [], "refusal": refusal}
    return render(request, "console/widgets/command_results.html", context)


def _pages(request: HttpRequest, text: str) -> Iterator[Result]:
    wanted = text.lower().split()
    found = 0
    views = (("View", v["name"], icon_of(v), url_of(v)) for v in visible_views(request))
    for kind, title, icon, url in chain(command_links(request), views):
        is_match = all(part in title.lower() for part in wanted)
        if is_match and found < LIMIT:
            found += 1
            yield Result(kind=kind, icon=icon, title=title, description="", url=url)


def _recipients(request: HttpRequest, text: str) -> Iterator[Result]:
    if not text or not request.user.has_perm("recipients.view_recipient"):
        return
    unmasked = can_see_addresses(request.user)
    ids = find_user_ids(text, user=request.user, cap=LIMIT)[:LIMIT]
    rows = RECIPIENTS().find({"_id": {"$in": ids}}, _RECIPIENT)
    found = {row["_id"]: row for row in rows}
    for user_id in ids:
        row = found.get(user_id)
        name = row.get("name") if row else None
        addresses = (row.get("email"), row.get("phone")) if row else ()
        parts = (
            user_id if name else "",
            *(columns.address(address, unmasked=unmasked) for address in addresses),
        )
        yield Result(
            kind="Recipient",
            icon="person",
            title=name or user_id,
            description=" · ".join(part for part in parts if part),
            url=recipient_url(user_id),
        )


def _notifications(request: HttpRequest, text: str) -> Iterator[Result]:
    if not text or not request.user.has_perm("notifications.view_notification"):
        return
    ids = sorted(find_notification_ids(text, user=request.user, cap=LIMIT), reverse=True)[:LIMIT]
    unmasked, now = can_see_addresses(request.user), utc_now()
    found = {document["_id"]: document for document in queries.get_many(ids)}
    types = names.type_names({document["type"] for document in found.values()})
    for key in ids:
        if key not in found:
            continue
        document = found[key]
        recipient = document["recipient"]
        state, _ = notification_state(document["status"], document["delivery"], now=now)
        parts = (
            state,
            document.get("user_id"),
            columns.address(recipient.get("email") or recipient.get("phone"), unmasked=unmasked),
            formats.utc_text(document["created_at"]),
        )
        yield Result(
            kind="Notification",
            icon="notifications",
            title=f"{types[document['type']]} {document.get('entity_id') or key}",
            description=" · ".join(part for part in parts if part),
            url=reverse(NOTIFICATION, args=[key]),
        )


urlpatterns = [path("", admin.site.admin_view(search_view))]
