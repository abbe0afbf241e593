"""S5: one person's inbox of thousands, among a million notifications."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from . import volume
from .figures import Figure, Measure, Run, at_most, compared, middle, ratio

FULL = 5_000
PAGE = 20
REPEATS = 50
DEEP = 100
"""Pages down, where a list by skipping would read what it skips."""


def reads(*, rounds: int) -> Iterator[Figure]:
    """Measure S5 in the database that is used at present, filled already.

    Ours is what the API does between taking a request and handing an answer to Django: the query
    and its JSON. The floor is pymongo's own call with the same filter and index.
    """
    from notifications.inbox import feed
    from notifications.store import Inbox

    inbox = Inbox(client_id=volume.FIRST_CLIENT, user_id=volume.READER)
    place = _place(inbox, DEEP * PAGE)
    wanted = inbox.match(is_archived=False)
    beyond = inbox.match(is_archived=False, since={"$lt": place.inbox_at})
    unread = inbox.match(is_archived=False, is_read=False)
    reads: dict[str, tuple[str, Run, Run]] = {
        "S5 page": (
            "the feed's first page, as JSON",
            _timed(lambda: _as_json(feed.page(inbox, limit=PAGE))),
            _timed(lambda: list(_bare(wanted))),
        ),
        "S5 deep": (
            f"its page {DEEP}, as JSON",
            _timed(lambda: _as_json(feed.page(inbox, limit=PAGE, after=place))),
            _timed(lambda: list(_bare(beyond))),
        ),
        "S5 counts": (
            f"how many of {FULL:,} are unread, and unseen",
            _timed(lambda: feed.counts(inbox)),
            _timed(lambda: _bare_count(unread)),
        ),
    }
    for key, (what, ours, floor) in reads.items():
        found = compared({"ours": ours, "floor": floor}, rounds=rounds)
        yield Figure(
            key=key,
            what=what,
            unit="ms",
            ours=middle(found["ours"]),
            floor=middle(found["floor"]),
            ratio_floor=ratio(found["ours"], found["floor"]),
            goals=(at_most(2.0, Measure.FLOOR),),
            note="floor: pymongo's find, or count_documents, with the same filter and index",
        )


def _as_json(part: Any) -> bytes:
    from api.http.rendering import JSONRenderer
    from api.inbox.schemas import InboxList, inbox_item
    from api.inbox.views import cursors
    from domain.time import utc_now

    now = utc_now()
    results = [inbox_item(document, now=now) for document in part.documents]
    return JSONRenderer().render(InboxList(results=results, **cursors(part)))


def _timed(run: Callable[[], Any]) -> Run:
    """Return what measures a read in milliseconds, as the mean of many."""

    def measure() -> float:
        started = time.perf_counter()
        for _ in range(REPEATS):
            run()
        return 1000 * (time.perf_counter() - started) / REPEATS

    return measure


def _bare(wanted: dict[str, Any]) -> Any:
    from notifications.inbox.feed import INDEX, NEWEST_FIRST
    from notifyproject.db.collections import collection

    found = collection("notifications").find(wanted).sort(NEWEST_FIRST)
    return found.hint(INDEX).limit(PAGE + 1)


def _bare_count(wanted: dict[str, Any]) -> int:
    from notifications.inbox.feed import INDEX
    from notifyproject.db.collections import collection

    return int(collection("notifications").count_documents(wanted, hint=INDEX))


def _place(inbox: Any, number: int) -> Any:
    from notifications.inbox.feed import FeedPosition

    found = _bare(inbox.holds(is_archived=False)).limit(0).skip(number)
    return FeedPosition.from_document(found.next())
