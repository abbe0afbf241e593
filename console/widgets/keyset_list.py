"""Keyset pagination of lists. All pages are equally fast, because no rows are skipped."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.http import HttpRequest

from notifyproject.db import paging
from notifyproject.db.match import Match
from notifyproject.db.paging import Cursor, InvalidCursorError, cursor_of_row

from .lists import BoundedChangeList, CappedPaginator

CURSOR = "cursor"  # Query parameter. A cursor contains its direction


class KeysetPage(CappedPaginator):
    """One page of rows."""

    template_name = "console/widgets/keyset.html"


class KeysetChangeList(BoundedChangeList):
    """A list whose pages start at a cursor. The admin's ``ordering`` must end in the key."""

    next_url = ""
    previous_url = ""

    def __init__(self, request: HttpRequest, *args: Any, **options: Any) -> None:
        super().__init__(request, *args, **options)
        # The forms of search and filters repeat these. Another result starts at its first page.
        self.filter_params.pop(CURSOR, None)

    def get_filters_params(self, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the parameters of filters, without cursors."""
        found: dict[str, Any] = super().get_filters_params(params)
        return {name: value for name, value in found.items() if name != CURSOR}

    def get_query_string(
        self, new_params: Mapping[str, Any] | None = None, remove: Sequence[str] | None = None
    ) -> str:
        """Return the query of a link. It has no cursor unless ``new_params`` has one."""
        removed = [*(remove or ()), *([] if CURSOR in (new_params or {}) else [CURSOR])]
        text: str = super().get_query_string(new_params, removed)
        return text

    def read_page(self, request: HttpRequest) -> None:
        """Read the page at the cursor in the request, and set the links to its neighbors."""
        order = self.get_ordering(request, self.queryset)
        cursor = self._parse_cursor(request)
        backwards = cursor is not None and cursor.backwards
        try:
            found = self.read(cursor, order)
        except InvalidCursorError as error:
            raise IncorrectLookupParameters(str(error)) from error
        has_more = len(found) > self.list_per_page
        found = found[: self.list_per_page]
        self.result_list = found[::-1] if backwards else found
        self.link(order, has_more=has_more, backwards=backwards, has_cursor=cursor is not None)
        self.result_count = len(self.result_list)
        self.show_admin_actions = bool(self.result_list)
        self.can_show_all = self.multi_page = False
        self.paginator = KeysetPage(self.result_list, self.list_per_page)

    def _parse_cursor(self, request: HttpRequest) -> Cursor | None:
        text = request.GET.get(CURSOR)
        if not text:
            return None
        try:
            return paging.decode_cursor(text, list_name=self.cursor_list_name)
        except InvalidCursorError as error:
            raise IncorrectLookupParameters(str(error)) from error

    @property
    def cursor_list_name(self) -> str:
        """The list's name in the signatures of its cursors."""
        return f"console-{self.opts.model_name}"

    def cursor_link(self, cursor: Cursor) -> str:
        """Return the query of the link to the page at a cursor."""
        text = paging.encode_cursor(cursor, list_name=self.cursor_list_name)
        return self.get_query_string({CURSOR: text})

    def read(self, cursor: Cursor | None, order: Sequence[str]) -> list[Any]:
        """Return a page's rows and one more, nearest first. Raises InvalidCursorError."""
        rows = self.queryset
        admin = self.model_admin
        if not self.query and (admin.list_index or admin.list_match):
            rows = rows.filter(Match(admin.list_match, index=admin.list_index))
        if cursor is not None:
            rows = rows.filter(Match(paging.match_beyond(cursor, paging.order_of(order))))
            if cursor.backwards:
                rows = rows.order_by(*(reversed_field(name) for name in order))
        return list(rows[: self.list_per_page + 1])

    def link(
        self, order: Sequence[str], *, has_more: bool, backwards: bool, has_cursor: bool
    ) -> None:
        """Set the URLs of the next and the previous page."""
        if not self.result_list:
            return
        first, last = self.result_list[0], self.result_list[-1]
        if has_more or backwards:
            self.next_url = self.cursor_link(cursor_of_row(last, order))
        if has_more if backwards else has_cursor:
            self.previous_url = self.cursor_link(cursor_of_row(first, order, backwards=True))


def reversed_field(name: str) -> str:
    """Return an order field with the opposite direction: ``-name`` for ``name``."""
    return name[1:] if name.startswith("-") else f"-{name}"
