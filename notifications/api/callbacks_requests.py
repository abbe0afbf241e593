"""What apps send about callbacks, and whether it makes sense."""

from dataclasses import dataclass
from typing import Annotated

import msgspec
from django.conf import settings
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from msgspec import Meta

from callbacks import endpoints
from callbacks.events import SUBSCRIBABLE, CallbackStatus, EventType
from callbacks.models import URL_LENGTH

from ..validation import ProblemCollector
from . import paging
from .paging import Asked

LIST = "callback-deliveries"
EVENTS = sorted(event.value for event in SUBSCRIBABLE)
STATUSES = sorted(status.value for status in CallbackStatus)
DESCRIBED = (OpenApiParameter("status", str, enum=STATUSES), *paging.DESCRIBED)


class CallbackRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to call back, and what for."""

    url: Annotated[
        str,
        Meta(
            max_length=URL_LENGTH,
            description="https, on port 443 or one above 1024, at a public address.",
            examples=["https://shop.example.com/hooks/notifications"],
        ),
    ]
    events: Annotated[
        list[Annotated[str, Meta(extra_json_schema={"enum": EVENTS})]],
        Meta(min_length=1, max_length=20, examples=[["delivery.failed", "notification.completed"]]),
    ]


@dataclass(frozen=True, slots=True)
class ListRequest:
    """What part of which deliveries is asked for."""

    asked: Asked
    status: CallbackStatus | None


def events_of(body: CallbackRequest) -> list[EventType]:
    """Return the events a callback is to be for, each once; raises InvalidRequest.

    What is wrong with the URL is found at the same time.
    """
    problems = ProblemCollector()
    try:
        endpoints.parse_url(body.url, loopback=settings.CALLBACK_LOOPBACK)
    except endpoints.InvalidUrlError as problem:
        problems.add("/url", problem.code, str(problem))
    for place, name in enumerate(body.events):
        if name not in EVENTS:
            problems.add(f"/events/{place}", "unknown_event", _expected(EVENTS))
    problems.raise_if_any()
    return [EventType(name) for name in dict.fromkeys(body.events)]


def list_request(query: QueryDict) -> ListRequest:
    """Return a checked list request; raises Problem 400 or InvalidRequest."""
    problems = ProblemCollector()
    asked = paging.parse(query, of=LIST, problems=problems, others=("status",))
    status = query.get("status")
    if status is not None and status not in STATUSES:
        problems.add("/status", "unknown_status", _expected(STATUSES))
    problems.raise_if_any()
    return ListRequest(asked, CallbackStatus(status) if status else None)


def _expected(words: list[str]) -> str:
    return f"Expected one of {', '.join(words)}."
