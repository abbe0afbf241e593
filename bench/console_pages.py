"""S6: the time to first byte of the console's pages with a million notifications.

One gunicorn serves the filled database, another a small one as the floor: the difference is the
cost of the volume.
"""

import http.client
import io
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from typing import Any
from urllib.parse import quote, urlsplit

from domain.states import BulkAction, BulkStage, Channel
from domain.time import utc_now
from notifyproject.db.collections import database

from . import environment
from .environment import Bench
from .figures import Figure, Progress, at_most, compare
from .processes import cpu_seconds

PROFILE = "system.profile"
PROFILE_BYTES = 64 * 2**20
SMALL_COLLECTION = 1_000
"""A collection of this size (types, roles, pauses) may be scanned."""
MAX_SORTED = 10_000
"""The number of documents that a page may sort in memory."""
MAX_FIRST_BYTE_MS = 300.0
REQUESTS = 10
SMALL = 2_000
NAME, SMALL_NAME = "bench_console", "bench_console_small"
TIMEOUT = 60
LISTS = "/admin/notifications"
ALL, FAILED, WAITING = (f"{LISTS}/{kind}notification/" for kind in ("", "failed", "waiting"))


@dataclass(frozen=True, kw_only=True)
class Read:
    """A profiled command: its plan in one line, and whether it scans or sorts without bound."""

    summary: str
    is_unbounded: bool
    milliseconds: int


PAGES = {
    "home": "/admin/",
    "failed": FAILED,
    "failed by cause": f"{FAILED}?channel=email&code=provider_error",
    "failed at": f"{FAILED}?channel=push&code=connection_failed&provider=fcm",
    "failed by type": f"{FAILED}?type={{type}}&failed_within=7d",
    "failed by client": f"{FAILED}?client={{client}}&failed_within=30d",
    "failed in 30 days": f"{FAILED}?failed_within=30d",
    "failed, searched": f"{FAILED}?q={{user_id}}",
    "all": ALL,
    "all by status": f"{ALL}?status=delivered",
    "all by channel": f"{ALL}?channel=whatsapp",
    "all by type": f"{ALL}?type={{type}}",
    "all by client": f"{ALL}?client={{client}}",
    "all by several": f"{ALL}?status=sent&type={{type}}&client={{client}}",
    "all, rare": f"{ALL}?delivery_status=unknown&channel=email",
    "search id": f"{ALL}?q={{id}}",
    "search user": f"{ALL}?q={{user_id}}",
    "search busy user": f"{ALL}?q={{busy}}",
    "search email": f"{ALL}?q={{email}}",
    "search phone": f"{ALL}?q={{phone}}",
    "search external": f"{ALL}?q={{external_id}}",
    "search entity": f"{ALL}?q={{entity_id}}",
    "search key": f"{ALL}?q={{idempotency_key}}",
    "search message": f"{ALL}?q={{message_id}}",
    "search nothing": f"{ALL}?q=nothing-{{id}}",
    "detail": f"{ALL}{{id}}/change/",
    "person": "/admin/recipients/recipient/{user_id}/change/",
    "busy person": "/admin/recipients/recipient/{busy}/change/",
    "people": "/admin/recipients/recipient/",
    "waiting": WAITING,
    "waiting, report": f"{WAITING}?reason=receipt&channel=email",
    "waiting, none": f"{WAITING}?reason=rate_limited",
    "attempts": f"{LISTS}/deliveryattempt/?status=failed",
    "calls": f"{LISTS}/webhooklog/",
    "audit": "/admin/admin/logentry/",
    "providers": f"{LISTS}/providerstate/",
    "workers": f"{LISTS}/heartbeat/",
    "bulk question": f"{LISTS}/bulkoperation/new/?list=failednotification&channel=email",
    "bulk preview": f"{LISTS}/bulkoperation/{{operation}}/change/",
}
"""Paths of the console's pages, with places for the fields of a sample notification."""


class Browser:
    """An operator's HTTP connection to the web, and sample notifications to fill in paths."""

    def __init__(self, url: str, pids: Sequence[int], filled: "FilledDatabase") -> None:
        self._pids = pids
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT)
        self._headers = {"Cookie": filled.cookie}
        self._samples = filled.samples

    def time_first_byte(self, path: str, number: int) -> float:
        """Return the milliseconds to the first byte of a page, filled with sample ``number``."""
        url = path.format(**self._samples[number % len(self._samples)])
        started = time.perf_counter()
        self._connection.request("GET", url, headers=self._headers)
        answer = self._connection.getresponse()
        first_byte_ms = 1000 * (time.perf_counter() - started)
        answer.read()
        if answer.status != http.client.OK:
            raise RuntimeError(f"{url}: {answer.status} {answer.headers.get('Location', '')}")
        return first_byte_ms

    def measure_page(self, path: str) -> tuple[list[float], float]:
        """Return the first-byte times of ten requests, and the web's CPU time for each, in ms."""
        before = cpu_seconds(*self._pids)
        found = [self.time_first_byte(path, number) for number in range(REQUESTS)]
        return found, 1000 * (cpu_seconds(*self._pids) - before) / REQUESTS


@dataclass(frozen=True, kw_only=True)
class FilledDatabase:
    """A filled database, an operator's session, and sample notifications."""

    name: str
    stored: int
    attempts: int
    cookie: str
    samples: Sequence[Mapping[str, str]]


def measure_pages(bench: Bench, *, stored: int, log_progress: Progress) -> Iterator[Figure]:
    """Measure S6 for each page, and count the reads without an index."""
    with bench.database(SMALL_NAME), bench.database(NAME):
        small = _fill_database(bench, SMALL_NAME, SMALL, log_progress)
        big = _fill_database(bench, NAME, stored, log_progress)
        yield from _compare_pages(bench, big=big, small=small, log_progress=log_progress)


def _compare_pages(
    bench: Bench, *, big: FilledDatabase, small: FilledDatabase, log_progress: Progress
) -> Iterator[Figure]:
    unindexed: list[str] = []
    scale = f"{big.stored:,} notifications, {big.attempts:,} attempts"
    with _run_browser(bench, small) as small_browser, _run_browser(bench, big) as big_browser:
        for page, path in PAGES.items():
            found, processor = big_browser.measure_page(path)
            floor, _ = small_browser.measure_page(path)
            with _profile_reads() as reads:
                big_browser.time_first_byte(path, 0)
            unindexed += [f"{page}: {read.summary}" for read in reads if read.is_unbounded]
            slowest = max(reads, key=lambda read: read.milliseconds)
            log_progress(
                f"{page}: {median(found):.0f} ms, worst {max(found):.0f}, bare "
                f"{median(floor):.0f}, processor {processor:.0f}; {len(reads)} reads, "
                f"the slowest {slowest.summary}"
            )
            yield compare(
                ours=found,
                floor=floor,
                key=f"S6 {page}",
                label=f"first byte, {scale}" if page == "home" else "",
                unit="ms",
                goals=(at_most(MAX_FIRST_BYTE_MS),),
                note=f"worst {max(found):.0f} ms; the web's processor {processor:.0f} ms; "
                f"{len(reads)} reads, the longest {slowest.milliseconds} ms; "
                f"floor: at {small.stored:,} notifications",
            )
    yield Figure(
        key="S6 reads",
        label="reads of these pages that scan, or sort without bound",
        unit="reads",
        ours=len(unindexed),
        goals=(at_most(0),),
        note="; ".join(unindexed),
    )


def _fill_database(bench: Bench, name: str, count: int, log_progress: Progress) -> FilledDatabase:
    from . import console_data

    bench.use_database(name)
    began = time.monotonic()
    attempts = console_data.fill(count, now=utc_now())
    seconds = time.monotonic() - began
    log_progress(f"{count:,} notifications, {attempts:,} attempts: {seconds:.0f} s")
    extra = {"busy": console_data.BUSY_USER_ID, "operation": _preview_bulk_retry(log_progress)}
    return FilledDatabase(
        name=name,
        stored=count,
        attempts=attempts,
        cookie=_session_cookie(),
        samples=[_url_fields(document) | extra for document in console_data.samples(REQUESTS)],
    )


@contextmanager
def _run_browser(bench: Bench, stored: FilledDatabase) -> Iterator[Browser]:
    bench.use_database(stored.name)
    with environment.run_web(bench, "notifyproject.wsgi") as (pids, url):
        browser = Browser(url, pids, stored)
        for path in PAGES.values():
            browser.time_first_byte(path, 0)
        yield browser


def _url_fields(document: Mapping[str, Any]) -> dict[str, str]:
    sent = (one.get("provider_message_id") for one in document["delivery"])
    names = ("user_id", "type", "entity_id", "external_id", "idempotency_key")
    fields = {
        "id": document["_id"],
        "client": document["client_id"],
        "message_id": next((one for one in sent if one), "none"),
        **{name: document["recipient"][name] for name in ("email", "phone")},
        **{name: document[name] for name in names},
    }
    return {name: quote(str(value), safe="") for name, value in fields.items()}


def _preview_bulk_retry(log_progress: Progress) -> str:
    """Preview a bulk retry of the failed mails of a week; return the operation's ID."""
    from notifications.bulk import decisions, repository, runner, selection
    from notifications.bulk.operation import UNKNOWN_STAFF

    week_ago = utc_now() - timedelta(days=7)
    failures = selection.select_failures(channel=Channel.EMAIL, code=None, since=week_ago)
    began = time.monotonic()
    operation: Any = decisions.preview(
        action=BulkAction.RETRY, selection=failures, send_at=None, by=UNKNOWN_STAFF, now=utc_now()
    )
    while operation.stage is BulkStage.PREVIEWING and runner.run(operation.id):
        operation = repository.get(operation.id)
    log_progress(f"{operation.found_count:,} previewed in {time.monotonic() - began:.1f} s")
    return str(operation.id)


def _session_cookie() -> str:
    from django.conf import settings
    from django.contrib.auth.models import Group
    from django.core.management import call_command
    from django.test import Client

    from access.models import StaffUser

    call_command("create_roles", stdout=io.StringIO())
    user = StaffUser.objects.create_user("olga", "olga@example.com", "s3cret-enough")
    user.is_staff = True
    user.save()
    user.groups.add(Group.objects.get(name="operator"))
    client, name = Client(), settings.SESSION_COOKIE_NAME
    client.force_login(user)
    return f"{name}={client.cookies[name].value}"


@contextmanager
def _profile_reads() -> Iterator[list[Read]]:
    """Collect the reads of all processes during the block, with MongoDB's profiler."""
    db = database()
    db.command("profile", 0)
    db.drop_collection(PROFILE)
    db.create_collection(PROFILE, capped=True, size=PROFILE_BYTES)
    found: list[Read] = []
    db.command("profile", 2)
    try:
        yield found
    finally:
        db.command("profile", 0)
    entries = db[PROFILE].find({"ns": {"$ne": f"{db.name}.{PROFILE}"}}).sort("ts", 1)
    found += [_read(entry) for entry in entries if "planSummary" in entry]
    db.drop_collection(PROFILE)


def _read(entry: Mapping[str, Any]) -> Read:
    plan, has_sort = entry["planSummary"], bool(entry.get("hasSortStage"))
    documents, keys = entry.get("docsExamined", 0), entry.get("keysExamined", 0)
    milliseconds = entry.get("millis", 0)
    is_scan = "COLLSCAN" in plan and documents > SMALL_COLLECTION
    name = f"{entry['ns'].partition('.')[2]} {plan}{', sorted' if has_sort else ''}"
    return Read(
        summary=f"{name}: {keys:,} keys, {documents:,} documents, {milliseconds} ms",
        is_unbounded=is_scan or (has_sort and max(documents, keys) > MAX_SORTED),
        milliseconds=milliseconds,
    )
