"""Lists that are looked through in their order for what no index finds, so much at a time.

A filter like that may match nothing: to say so for certain is to read all there is. Here a page
looks through a window of the list, says how far it came, and goes on from there if it is asked.
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

WINDOW = 10_000
"""Rows that a page looks through. To read and dismiss so many takes about 150 ms."""
_LAST_AND_NEXT = 2


class WindowChangeList(KeysetChangeList):
    """A list whose admin names the filters it is looked through for, and the index it is read by.

    The other filters must be served by that index: where a window ends is found by it alone. The
    order is a field and the key, both in one direction.
    """

    next_window_url = ""
    """Where to look through more; empty if the page is full, or there is no more."""
    window_label = f"{WINDOW:,}"

    def read(self, cursor: Cursor | None, order: Sequence[str]) -> list[Any]:
        """Return the rows that match, of a window if they are looked for, and one too many.

        Raises InvalidCursorError for a cursor in another list.
        """
        if self.query:
            return super().read(cursor, order)
        backwards = cursor is not None and cursor.backwards
        sort_order = paging.order_of(order)
        sort_order = paging.reversed_order(sort_order) if backwards else sort_order
        end = self._window_end(cursor, sort_order) if self._is_scanning() else None
        names = [reversed_field(name) if backwards else name for name in order]
        found: list[Any] = []
        for part in _parts(cursor, end, sort_order):
            rows = self.queryset.filter(Match(part.match, index=self.model_admin.list_index))
            ordered = rows.order_by(*names[part.fixed :])
            found += ordered[: self.list_per_page + 1 - len(found)]
            if len(found) > self.list_per_page:
                return found
        if end is not None:
            self.next_window_url = self.cursor_link(Cursor(end.values, backwards))
        return found

    def link(
        self, order: Sequence[str], *, has_more: bool, backwards: bool, has_cursor: bool
    ) -> None:
        """Link the pages; one that ends with its window leads to the next window."""
        super().link(order, has_more=has_more, backwards=backwards, has_cursor=has_cursor)
        if self.next_window_url and backwards:
            self.previous_url = self.next_window_url
        elif self.next_window_url:
            self.next_url = self.next_window_url

    def _is_scanning(self) -> bool:
        scanned = self.model_admin.scanned_filters
        return any(spec.value() for spec in self.filter_specs if isinstance(spec, scanned))

    def _indexed_conditions(self) -> list[dict[str, Any]]:
        """Return what the list's index serves of what is wanted."""
        served = [match_of(self.root_queryset)]
        for spec in self.filter_specs:
            if isinstance(spec, TimeFilter):
                served += [spec.condition(*spec.limits).match] if spec.is_active else []
            elif spec.value() and not isinstance(spec, self.model_admin.scanned_filters):
                served.append(spec.condition(spec.value()))
        return served

    def _window_end(self, cursor: Cursor | None, sort_order: Order) -> Cursor | None:
        """Return where the last row of the window is; None if there is none behind it."""
        served, rows = self._indexed_conditions(), collection(self.model._meta.db_table)
        names = {"_id": 0, **dict.fromkeys((name for name, _ in sort_order), 1)}
        found: list[Mapping[str, Any]] = []
        before = WINDOW - 1
        for part in _parts(cursor, None, sort_order):
            wanted = {"$and": [*served, part.match]}
            keys = rows.find(wanted, names, hint=self.model_admin.list_index)
            ordered = keys.sort(list(sort_order[part.fixed :])).skip(before)
            some = list(ordered.limit(_LAST_AND_NEXT - len(found)))
            found += some
            if len(found) == _LAST_AND_NEXT:
                return Cursor(tuple(found[0][name] for name, _ in sort_order))
            if some:
                before = 0
            else:
                before -= rows.count_documents(wanted, hint=self.model_admin.list_index)
        return None


@dataclass(frozen=True, slots=True)
class _Part:
    """Part of a list: what holds for its rows, and how many fields of the order are one value."""

    match: dict[str, Any]
    fixed: int = 0


def _parts(start: Cursor | None, end: Cursor | None, sort_order: Order) -> list[_Part]:
    """Return what lies behind ``start`` and not behind ``end``, in parts, each a range of an index.

    The order is a field and the key. In one condition MongoDB would read the rows to tell where
    they stand, or sort them, as soon as there are several ranges for it to merge. Raises
    InvalidCursorError.
    """
    if start is not None and len(start.values) != len(sort_order):
        raise InvalidCursorError("a cursor in another list")
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
