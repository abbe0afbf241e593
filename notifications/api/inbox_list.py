"""The parameters of an inbox's list, each checked."""

from dataclasses import dataclass

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from notifyproject.db.paging import Page

from ..inbox.feed import NEWEST_FIRST, FeedPosition
from ..validation import ProblemCollector
from . import paging

LIST = "inbox"
FLAGS = ("unread", "archived")
PARAMETERS = (*FLAGS, *paging.PARAMETERS)
DESCRIBED = (
    OpenApiParameter("unread", bool, description="true: only what is unread."),
    OpenApiParameter(
        "archived", bool, description="true: what is archived; otherwise what is not."
    ),
    *paging.DESCRIBED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """What part of an inbox is asked for."""

    unread: bool
    archived: bool
    limit: int
    after: FeedPosition | None = None
    before: FeedPosition | None = None

    @property
    def is_beginning(self) -> bool:
        """Whether this is what somebody sees who opens their inbox."""
        return not self.archived and self.after is None and self.before is None


def parse(query: QueryDict) -> ListRequest:
    """Return a checked list request.

    Raises Problem 400 for a cursor that is not ours; InvalidRequest for a value that cannot be.
    """
    problems = ProblemCollector()
    flags = {name: query.get(name, "false") for name in FLAGS}
    for name, value in flags.items():
        if value not in ("true", "false"):
            problems.add(f"/{name}", "wrong_type", "Expected true or false.")
    limit = paging.limit_of(query, problems)
    problems.raise_if_any()
    after, before = paging.sides_of(query, of=LIST, kind=FeedPosition)
    return ListRequest(
        unread=flags["unread"] == "true",
        archived=flags["archived"] == "true",
        limit=limit,
        after=after,
        before=before,
    )


def cursors(page: Page) -> dict[str, str | None]:
    """Return the cursors to the neighbouring pages."""
    return paging.cursors(page, of=LIST, order=NEWEST_FIRST)
