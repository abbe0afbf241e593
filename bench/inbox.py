"""S5: one person's inbox of thousands, among a million notifications."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from . import volume
from .figures import Figure, Measure, Run, at_most, median, ratio, run_rounds

INBOX_SIZE = 5_000
PAGE = 20
REPEATS = 50
DEEP_PAGE = 100
"""Pages down, where a list by skipping would read what it skips."""


def measure_inbox(*, rounds: int) -> Iterator[Figure]:
    """Measure S5 in the database that is used at present, filled already.

    Ours is what the API does between taking a request and handing an answer to Django: the query
    and its JSON. The floor is pymongo's own call with the same filter and index.
    """
    from notifications.inbox import feed
    from notifications.store import Inbox

    inbox = Inbox(client_id=volume.FIRST_CLIENT, user_id=volume.READER)
    position = _position(inbox, DEEP_PAGE * PAGE)
    visible = inbox.match(is_archived=False)
    beyond = inbox.match(is_archived=False, since={"$lt": position.inbox_at})
    unread = inbox.match(is_archived=False, is_read=False)
    reads: dict[str, tuple[str, Run, Run]] = {
        "S5 page": (
            "the feed's first page, as JSON",
            _timed_run(lambda: _render_page(feed.page(inbox, limit=PAGE))),
            _timed_run(lambda: list(_find_with_pymongo(visible))),
        ),
        "S5 deep": (
            f"its page {DEEP_PAGE}, as JSON",
            _timed_run(lambda: _render_page(feed.page(inbox, limit=PAGE, after=position))),
            _timed_run(lambda: list(_find_with_pymongo(beyond))),
        ),
        "S5 counts": (
            f"how many of {INBOX_SIZE:,} are unread, and unseen",
            _timed_run(lambda: feed.counts(inbox)),
            _timed_run(lambda: _count_with_pymongo(unread)),
        ),
    }
    for key, (what, run_service, run_floor) in reads.items():
        found = run_rounds({"ours": run_service, "floor": run_floor}, rounds=rounds)
        yield Figure(
            key=key,
            label=what,
            unit="ms",
            ours=median(found["ours"]),
            floor=median(found["floor"]),
            ratio_floor=ratio(found["ours"], found["floor"]),
            goals=(at_most(2.0, Measure.FLOOR),),
            note="floor: pymongo's find, or count_documents, with the same filter and index",
        )


def _render_page(part: Any) -> bytes:
    from api.http.rendering import JSONRenderer
    from api.inbox.schemas import InboxList, inbox_item
    from api.inbox.views import cursors
    from domain.time import utc_now

    now = utc_now()
    results = [inbox_item(document, now=now) for document in part.documents]
    return JSONRenderer().render(InboxList(results=results, **cursors(part)))


def _timed_run(run: Callable[[], Any]) -> Run:
    """Return what measures a read in milliseconds, as the mean of many."""

    def measure() -> float:
        started = time.perf_counter()
        for _ in range(REPEATS):
            run()
        return 1000 * (time.perf_counter() - started) / REPEATS

    return measure


def _find_with_pymongo(query: dict[str, Any]) -> Any:
    from notifications.inbox.feed import INDEX, NEWEST_FIRST
    from notifyproject.db.collections import collection

    found = collection("notifications").find(query).sort(NEWEST_FIRST)
    return found.hint(INDEX).limit(PAGE + 1)


def _count_with_pymongo(query: dict[str, Any]) -> int:
    from notifications.inbox.feed import INDEX
    from notifyproject.db.collections import collection

    return int(collection("notifications").count_documents(query, hint=INDEX))


def _position(inbox: Any, number: int) -> Any:
    from notifications.inbox.feed import FeedPosition

    found = _find_with_pymongo(inbox.match(is_archived=False)).limit(0).skip(number)
    return FeedPosition.from_document(found.next())
