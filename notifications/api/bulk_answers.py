"""What a call that brought many notifications is answered with."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from bson import ObjectId
from django.http import HttpRequest
from msgspec import Meta

from ..intake.bulk import Outcome
from .problems import ProblemView, problem_of


class BulkItemView(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What became of one item: its notification's id, or why it was not accepted."""

    index: Annotated[int, Meta(description="Its place in the call, from 0.")]
    id: str | None = None
    error: ProblemView | None = None
    """What POST /notifications would have answered; its pointers are inside the item."""


class BulkView(msgspec.Struct, kw_only=True, frozen=True):
    """What became of every item of a call."""

    accepted: int
    rejected: int
    results: list[BulkItemView]


def bulk_view(outcomes: Sequence[Outcome], request: HttpRequest) -> BulkView:
    """Return what became of the items of a call, in their order."""
    results = [
        BulkItemView(index=place, id=str(outcome))
        if isinstance(outcome, ObjectId)
        else BulkItemView(index=place, error=problem_of(outcome).body(request))
        for place, outcome in enumerate(outcomes)
    ]
    accepted = sum(one.error is None for one in results)
    return BulkView(accepted=accepted, rejected=len(results) - accepted, results=results)
