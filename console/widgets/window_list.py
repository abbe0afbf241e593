"""Lists with filters that no index serves. A page scans one window of rows.

Without windows, a filter that matches few rows would scan all rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from notifyproject.db import paging
from notifyproject.db.collections import collection
from notifyproject.db.match import Match, match_of
from notifyproject.db.paging import Cursor, InvalidCursorError, Order

from .filters import TimeFilter
from .keyset_list import KeysetChangeList, reversed_field

WINDOW = 10_000  # Rows that a page scans, in about 150 ms.
_LAST_AND_NEXT = 2


class WindowChangeList(KeysetChangeList):
    """A list whose admin names its unindexed ``scanned_filters`` and its ``list_index``."""

    # The index must serve all other filters, because only it is used to find the end of a window.
    # The order must be a field and the key, both in the same direction.

    next_window_url = ""  # URL of the next window; empty if the page is full or the list ends
    window_label = f"{WINDOW:,}"

    def read(self, cursor: Cursor | None, order: Sequence[str]) -> list[Any]:
        """Return a page's rows and one more, scanning one window. Raises InvalidCursorError."""
        if self.query:
            return super().read(cursor, order)
        backwards = cursor is not None and cursor.backwards
        sort_order = paging.order_of(order)
        sort_order = paging.reversed_order(sort_order) if backwards else sort_order
        scanned = self.model_admin.scanned_filters
        is_scanning = any(s.value() for s in self.filter_specs if isinstance(s, scanned))
        end = self._window_end(cursor, sort_order) if is_scanning else None
        names = [reversed_field(name) if backwards else name for name in order]
        found: list[Any] = []
        for part in _parts(cursor, end, sort_order):
            rows = self.queryset.filter(Match(part.match, index=self.model_admin.list_index))
            found += rows.order_by(*names[part.fixed :])[: self.list_per_page + 1 - len(found)]
            if len(found) > self.list_per_page:
                return found
        if end is not None:
            self.next_window_url = self.cursor_link(Cursor(end.values, backwards))
        return found

    def link(
        self, order: Sequence[str], *, has_more: bool, backwards: bool, has_cursor: bool
    ) -> None:
        """Set the URLs of the next and the previous page.

        If the window ended before the page was full, the page that follows in the direction of
        reading is the next window.
        """
        super().link(order, has_more=has_more, backwards=backwards, has_cursor=has_cursor)
        if self.next_window_url and backwards:
            self.previous_url = self.next_window_url
        elif self.next_window_url:
            self.next_url = self.next_window_url

    def _indexed_conditions(self) -> list[dict[str, Any]]:
        served = [match_of(self.root_queryset)]
        for spec in self.filter_specs:
            if isinstance(spec, TimeFilter):
                served += [spec.condition(*spec.limits).match] if spec.is_active else []
            elif spec.value() and not isinstance(spec, self.model_admin.scanned_filters):
                served.append(spec.condition(spec.value()))
        return served

    def _window_end(self, cursor: Cursor | None, sort_order: Order) -> Cursor | None:
        """Return the cursor of the window's last row, or None if no row follows."""
        served, rows = self._indexed_conditions(), collection(self.model._meta.db_table)
        names = {"_id": 0, **dict.fromkeys((name for name, _ in sort_order), 1)}
        found: list[Mapping[str, Any]] = []
        before = WINDOW - 1
        for part in _parts(cursor, None, sort_order):
            match = {"$and": [*served, part.match]}
            keys = rows.find(match, names, hint=self.model_admin.list_index)
            ordered = keys.sort(list(sort_order[part.fixed :])).skip(before)
            nearest = list(ordered.limit(_LAST_AND_NEXT - len(found)))
            found += nearest
            if len(found) == _LAST_AND_NEXT:
                return Cursor(tuple(found[0][name] for name, _ in sort_order))
            if nearest:
                before = 0
            else:
                before -= rows.count_documents(match, hint=self.model_admin.list_index)
        return None


@dataclass(frozen=True, slots=True)
class _Part:
    """Part of a list. The first ``fixed`` order fields have the same value in all its rows."""

    match: dict[str, Any]
    fixed: int = 0


def _parts(start: Cursor | None, end: Cursor | None, sort_order: Order) -> list[_Part]:
    """Divide the rows after ``start`` up to ``end`` into parts. Raises InvalidCursorError."""
    # Each part is one range of the index. For several ranges in one condition, MongoDB would read
    # the rows to compare them, or sort them.
    if start is not None and len(start.values) != len(sort_order):
        raise InvalidCursorError("a cursor of another list")
    (field, direction), (key, _) = sort_order
    behind, upto = ("$gt", "$lt") if direction > 0 else ("$lt", "$gt")
    after = {behind: start.values[1]} if start else {}
    until = {f"{upto}e": end.values[1]} if end else {}
    if start and end and start.values[0] == end.values[0]:
        return [_Part({field: start.values[0], key: after | until}, fixed=1)]
    bounds = {behind: start.values[0]} if start else {}
    bounds |= {upto: end.values[0]} if end else {}
    return [
        *([_Part({field: start.values[0], key: after}, fixed=1)] if start else []),
        _Part({field: bounds} if bounds else {}),
        *([_Part({field: end.values[0], key: until}, fixed=1)] if end else []),
    ]
