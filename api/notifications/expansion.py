"""What ``expand`` adds to a notification, as its own operations return it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from drf_spectacular.utils import OpenApiParameter

from access.models import Scope
from callbacks import outbox
from notifications import queries
from notifications.documents.notification import NotificationDocument
from notifications.validation import ProblemCollector

from ..callbacks.schemas import delivery_view
from ..http.problems import INSUFFICIENT_SCOPE
from ..http.query import parse_choices
from ..http.requests import ClientRequest
from .schemas import attempt_view

MAX_EXPANDED = 100
"""Entries of each kind. The list of its own has all."""


class Expandable(StrEnum):
    """What a notification can be expanded by."""

    ATTEMPTS = "attempts"
    EVENTS = "events"


EXPAND = OpenApiParameter(
    "expand",
    str,
    description=f"What the response has besides, separated by commas: {', '.join(Expandable)}. The "
    f"last {MAX_EXPANDED} of each; events need the scope {Scope.CALLBACKS_WRITE}.",
)


def parse(request: ClientRequest, problems: ProblemCollector) -> Sequence[Expandable]:
    """Return what a request expands. Reports other names. Raises ApiError 403."""
    names = parse_choices(EXPAND.name, list(Expandable), request.query_params, problems)
    if Expandable.EVENTS in names and not request.client.has_scope(Scope.CALLBACKS_WRITE):
        raise INSUFFICIENT_SCOPE.error(scope=Scope.CALLBACKS_WRITE)
    return [Expandable(name) for name in names]


def expanded(document: NotificationDocument, wanted: Sequence[Expandable]) -> dict[str, Any]:
    """Return the lists, oldest first, each read by one query."""
    lists: dict[str, Any] = {}
    if Expandable.ATTEMPTS in wanted:
        attempts = queries.attempts_with_receipts(document)
        lists["attempts"] = [attempt_view(attempt) for attempt in attempts[-MAX_EXPANDED:]]
    if Expandable.EVENTS in wanted:
        events = outbox.of_notification(document["_id"], limit=MAX_EXPANDED)
        lists["events"] = [delivery_view(event) for event in events]
    return lists
