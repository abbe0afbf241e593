"""The parameters of the list of a user's devices, each checked."""

from dataclasses import dataclass

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from devices.queries import NEWEST_FIRST, Position
from notifyproject.db.paging import Page

from ..models.notification import USER_ID_LENGTH
from ..validation import ProblemCollector
from . import paging
from .parameters import check_names

LIST = "device"
PARAMETERS = ("user_id", *paging.PARAMETERS)
DESCRIBED = (
    OpenApiParameter("user_id", str, required=True, description="Whose devices."),
    *paging.DESCRIBED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """What part of whose list is asked for."""

    user_id: str
    limit: int
    after: Position | None = None
    before: Position | None = None


def parse(query: QueryDict) -> ListRequest:
    """Return a checked list request.

    Raises Problem 400 for a parameter nobody knows, one given twice, or a cursor that is not ours;
    InvalidRequest for a value that cannot be.
    """
    check_names(query, allowed=PARAMETERS)
    problems = ProblemCollector()
    user_id = query.get("user_id", "")
    if not user_id:
        problems.add("/user_id", "required", "Whose devices? Give a user_id.")
    elif "\x00" in user_id or len(user_id) > USER_ID_LENGTH:
        problems.add("/user_id", "invalid", "Not a value of this parameter.")
    limit = paging.limit_of(query, problems)
    problems.raise_if_any()
    after, before = paging.sides_of(query, of=LIST, kind=Position)
    return ListRequest(user_id=user_id, limit=limit, after=after, before=before)


def cursors(page: Page) -> dict[str, str | None]:
    """Return the cursors to the neighbouring pages."""
    return paging.cursors(page, of=LIST, order=NEWEST_FIRST)
