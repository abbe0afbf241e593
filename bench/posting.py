"""S2 and S3: accepting notifications, one by one and by the thousand."""

import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import urllib3

from . import environment, mail
from .environment import Bench
from .figures import Figure, Measure, at_least, median, ratio, run_rounds

CALLERS, BULK_CALLERS = 8, 4
"""Callers at once, of one notification and of a thousand."""
WARM_UP = 2.0
BULK_PATH = "/api/v1/notifications/bulk"
SINGLE_PATH = "/api/v1/notifications"


@dataclass(frozen=True, kw_only=True)
class WebServer:
    """A web and how a mail is asked for there."""

    pids: list[int]
    url: str
    headers: dict[str, str]

    def rate(self, *, seconds: float) -> float:
        """Return the requests it answers for each second of its processor time."""
        _post_for(self, seconds=WARM_UP)
        before = environment.cpu_seconds(*self.pids)
        answered = _post_for(self, seconds=seconds)
        return answered / (environment.cpu_seconds(*self.pids) - before)


def measure_single(
    bench: Bench, *, rounds: int, seconds: float, log_progress: Callable[[str], None]
) -> Iterator[Figure]:
    """Measure S2: POST of one notification."""
    with ExitStack() as stack:
        webs = {
            "ours": stack.enter_context(run_service(bench)),
            "floor": stack.enter_context(_run_web(bench, "bench.bare:application")),
            "peer": stack.enter_context(_run_post_office(bench)),
        }
        runs = {name: lambda web=web: web.rate(seconds=seconds) for name, web in webs.items()}
        found = run_rounds(runs, rounds=rounds, log_progress=log_progress)
    yield Figure(
        key="S2",
        label="POST one notification, per CPU second of the web",
        unit="/CPU s",
        ours=median(found["ours"]),
        floor=median(found["floor"]),
        peer=median(found["peer"]),
        ratio_floor=ratio(found["ours"], found["floor"]),
        ratio_peer=ratio(found["ours"], found["peer"]),
        goals=(at_least(0.5, Measure.FLOOR),),
        note="floor: a bare Django view with one majority insert; peer: a view with mail.send()",
    )


@contextmanager
def run_service(
    bench: Bench, *, path: str = SINGLE_PATH, processes: int = 1
) -> Iterator[WebServer]:
    """Run the service's web, with an API client of its own."""
    with environment.run_web(bench, "notifyproject.wsgi", processes=processes) as (pids, url):
        key = create_key()
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        yield WebServer(pids=pids, url=url + path, headers=headers)


@contextmanager
def _run_web(bench: Bench, application: str, **variables: str) -> Iterator[WebServer]:
    with environment.run_web(bench, application, environment=variables) as (pids, url):
        yield WebServer(pids=pids, url=f"{url}/", headers={"Content-Type": "application/json"})


@contextmanager
def _run_post_office(bench: Bench) -> Iterator[WebServer]:
    folder = bench.fresh_folder("post_office")
    with _run_web(bench, "bench.post_office:application()", POST_OFFICE_FOLDER=str(folder)) as web:
        yield web


def create_key() -> str:
    """Return a key of a new API client that may notify."""
    from access.clients import registry
    from access.models import Scope
    from domain.time import utc_now

    client_id = registry.create_client(
        name=f"bench {uuid4().hex[:8]}", scopes=[Scope.NOTIFICATIONS_WRITE], now=utc_now()
    )
    return registry.issue_key(client_id=client_id, now=utc_now()).text


def _post_for(web: WebServer, *, seconds: float) -> int:
    """Have several callers post for a while; return how many requests were accepted."""
    http = urllib3.PoolManager(maxsize=CALLERS, block=True, retries=False)
    until = time.monotonic() + seconds
    counts: list[int] = []
    problems: list[str] = []

    def call(caller: int) -> None:
        count = 0
        while time.monotonic() < until and not problems:
            body = json.dumps(mail.request_body(caller * 1_000_000 + count)).encode()
            answer = http.request("POST", web.url, body=body, headers=web.headers, timeout=30)
            if answer.status != 202:
                problems.append(f"{answer.status}: {answer.data[:500]!r}")
            count += 1
        counts.append(count)

    callers = [threading.Thread(target=call, args=(n,)) for n in range(CALLERS)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    http.clear()
    if problems:
        raise RuntimeError(problems[0])
    return sum(counts)


def measure_bulk(
    bench: Bench, *, rounds: int, count: int, log_progress: Callable[[str], None]
) -> Iterator[Figure]:
    """Measure S3: notifications a second that are accepted by the thousand."""
    with run_service(bench, path=BULK_PATH, processes=2) as web:
        _post_in_bulk(web, BULK_CALLERS * mail.BATCH)
        runs = {
            "ours": lambda: _post_in_bulk(web, count),
            "store": lambda: _accept_with_store(count),
            "floor": lambda: _insert_many(count),
            "peer": lambda: _send_many_with_post_office(bench, count),
        }
        found = run_rounds(runs, rounds=rounds, log_progress=log_progress)
    yield Figure(
        key="S3",
        label="POST bulk of 1,000",
        unit="/s",
        ours=median(found["ours"]),
        floor=median(found["floor"]),
        peer=median(found["peer"]),
        ratio_floor=ratio(found["ours"], found["floor"]),
        ratio_peer=ratio(found["ours"], found["peer"]),
        goals=(at_least(10_000),),
        note=f"{BULK_CALLERS} callers and two processes of the web, as the stack has; floor: "
        "insert_many of the same documents in one thread, indexed by _id alone; peer: send_many",
    )
    yield Figure(
        key="S3 store",
        label="… store.accept alone, in one thread, all indexes",
        unit="/s",
        ours=median(found["store"]),
        floor=median(found["floor"]),
        ratio_floor=ratio(found["store"], found["floor"]),
    )


def _post_in_bulk(web: WebServer, count: int) -> float:
    """Return the notifications a second that several callers get accepted."""
    from django.core.management import call_command

    from notifyproject.db.collections import collection

    # What is left of the round before is a backlog, which the service would refuse to add to; and
    # what MongoDB has left to do of a deletion, it would do while we measure.
    collection("notifications").drop()
    call_command("check_indexes", "--create", stdout=io.StringIO())
    bodies = [
        json.dumps(
            {"notifications": [mail.request_body(n) for n in range(start, start + mail.BATCH)]}
        ).encode()
        for start in range(0, count, mail.BATCH)
    ]
    http = urllib3.PoolManager(maxsize=BULK_CALLERS, block=True, retries=False)

    def post(body: bytes) -> None:
        headers = {**web.headers, "Idempotency-Key": uuid4().hex}
        answer = http.request("POST", web.url, body=body, headers=headers, timeout=60)
        if answer.status != 200 or answer.json()["accepted"] != mail.BATCH:
            raise RuntimeError(f"{answer.status}: {answer.data[:500]!r}")

    with ThreadPoolExecutor(BULK_CALLERS) as callers:
        started = time.perf_counter()
        list(callers.map(post, bodies))
        seconds = time.perf_counter() - started
    http.clear()
    return count / seconds


def _accept_with_store(count: int) -> float:
    from domain.time import utc_now
    from notifications import store

    now = utc_now()
    new = [mail.new_notification(number, at=now) for number in range(count)]
    started = time.perf_counter()
    for start in range(0, count, mail.BATCH):
        store.accept(new[start : start + mail.BATCH], now=now)
    return count / (time.perf_counter() - started)


def _insert_many(count: int) -> float:
    from domain.time import utc_now
    from notifications import store
    from notifyproject.db.collections import collection

    now = utc_now()
    documents: list[dict[str, Any]] = []
    for start in range(0, count, mail.BATCH):
        new = [mail.new_notification(number, at=now) for number in range(start, start + mail.BATCH)]
        accepted = store.accept(new, now=now)
        documents += [dict(one.document) for one in accepted if isinstance(one, store.Accepted)]
    floor = collection("floor_notifications")
    floor.drop()
    started = time.perf_counter()
    for start in range(0, count, mail.BATCH):
        floor.insert_many(documents[start : start + mail.BATCH], ordered=False)
    return count / (time.perf_counter() - started)


def _send_many_with_post_office(bench: Bench, count: int) -> float:
    folder = bench.fresh_folder("post_office")
    answer = environment.run_program(bench, "post_office", "accept", str(folder), str(count))
    return count / float(answer["seconds"])
