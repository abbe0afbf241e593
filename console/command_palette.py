"""Search of the command palette (Ctrl K)."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from unfold.dataclasses import SearchResult

from notifications import queries
from recipients.masking import can_see_addresses

from .notifications.search import find_ids
from .widgets import columns, names
from .widgets.links import NOTIFICATION

SEARCH_LIMIT = 20


def search(request: HttpRequest, _term: str) -> list[SearchResult]:
    """Return up to SEARCH_LIMIT notifications that match the search text, newest first."""
    if not request.user.has_perm("notifications.view_notification"):
        return []
    # The theme lowers the case of the term, and keys are case-sensitive.
    text = request.GET.get("s", "").strip()
    ids = sorted(find_ids(text, cap=SEARCH_LIMIT), reverse=True)[:SEARCH_LIMIT]
    unmasked = can_see_addresses(request.user)
    found = {document["_id"]: document for document in queries.get_many(ids)}
    types = names.type_names({document["type"] for document in found.values()})
    return [
        _result(found[key], type_name=types[found[key]["type"]], unmasked=unmasked)
        for key in ids
        if key in found
    ]


def _result(document: Mapping[str, Any], *, type_name: str, unmasked: bool) -> SearchResult:
    recipient = document["recipient"]
    address = columns.address(recipient.get("email") or recipient.get("phone"), unmasked=unmasked)
    created = f"{document['created_at']:%Y-%m-%d %H:%M} UTC"
    return SearchResult(
        title=f"{type_name} {document.get('entity_id') or document['_id']}",
        description=" · ".join(
            part for part in (document.get("user_id"), address, created) if part
        ),
        link=reverse(NOTIFICATION, args=[document["_id"]]),
        icon="notifications",
    )
