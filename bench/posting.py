"""S2, S3, and S7: create notifications singly, in bulk, and at a steady rate."""

import io
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import urllib3
from bson import ObjectId

from domain.time import utc_now
from notifyproject.db.collections import collection

from . import draining, environment, mail
from .environment import Bench
from .figures import Figure, Measure, Progress, at_least, at_most, compare, run_rounds
from .processes import cpu_seconds, wait_until

CALLERS, BULK_CALLERS, RATE_CALLERS = 8, 4, 16
"""Concurrent callers of S2, S3, and S7."""
WARM_UP_SECONDS, WARM_UP_COUNT = 2.0, 100
RATE = 50
"""Requests per second in S7."""
SINGLE_PATH = "/api/v1/notifications"
Body = Callable[[int], dict[str, Any]]
"""Makes the body of a request by its number."""


@dataclass(frozen=True, kw_only=True)
class WebServer:
    """A running web server, and the URL and headers for its POSTs."""

    pids: list[int]
    url: str
    headers: dict[str, str]

    def post(
        self, http: urllib3.PoolManager, body: bytes, *, status: int = 202, **headers: str
    ) -> urllib3.BaseHTTPResponse:
        """Post a body and return the answer. Raises RuntimeError for another status."""
        merged = {**self.headers, **headers}
        answer = http.request("POST", self.url, body=body, headers=merged, timeout=60)
        if answer.status != status:
            raise RuntimeError(f"{answer.status}: {answer.data[:500]!r}")
        return answer

    def rate(self, *, seconds: float, body: Body = mail.request_body) -> float:
        """Post mails for some seconds; return the requests per second of the web's CPU time."""
        _post_for(self, seconds=WARM_UP_SECONDS, body=body)
        before = cpu_seconds(*self.pids)
        answered = _post_for(self, seconds=seconds, body=body)
        return answered / (cpu_seconds(*self.pids) - before)


def measure_single(
    bench: Bench, *, rounds: int, seconds: float, log_progress: Progress
) -> Iterator[Figure]:
    """Measure S2: POST of one notification."""
    folder = str(bench.fresh_folder("post_office"))
    peer = _run_web(bench, "bench.post_office:application()", POST_OFFICE_FOLDER=folder)
    floor = _run_web(bench, "bench.bare:application")
    with run_service(bench) as ours, floor as floor_web, peer as peer_web:
        webs = {"ours": ours, "floor": floor_web, "peer": peer_web}
        runs = {name: partial(web.rate, seconds=seconds) for name, web in webs.items()}
        bodies = mail.bodies_with_and_without_schema()
        runs |= {
            name: partial(ours.rate, seconds=seconds, body=body) for name, body in bodies.items()
        }
        found = run_rounds(runs, rounds=rounds, log_progress=log_progress)
    with_schema, without = (found.pop(name) for name in bodies)
    yield _compare_schemas(with_schema, without, key="S2 schema", unit="/CPU s")
    yield compare(
        **found,
        key="S2",
        label="POST one notification, per CPU second of the web",
        unit="/CPU s",
        goals=(at_least(0.5, Measure.FLOOR), at_least(1.2, Measure.PEER)),
        note="floor: a bare Django view with one majority insert; peer: a view with mail.send()",
    )


def _compare_schemas(
    with_schema: list[float], without: list[float], *, key: str, unit: str
) -> Figure:
    return compare(
        ours=with_schema,
        floor=without,
        key=key,
        label="… of a type whose schema has ten fields",
        unit=unit,
        goals=(at_least(0.97, Measure.FLOOR),),
        note="floor: the same request of a type without a schema",
    )


@contextmanager
def run_service(
    bench: Bench, *, path: str = SINGLE_PATH, processes: int = 1
) -> Iterator[WebServer]:
    """Run the service's web, with a new API client."""
    with environment.run_web(bench, "notifyproject.wsgi", processes=processes) as (pids, url):
        headers = {"Authorization": f"Bearer {create_key()}", "Content-Type": "application/json"}
        yield WebServer(pids=pids, url=url + path, headers=headers)


@contextmanager
def _run_web(bench: Bench, application: str, **variables: str) -> Iterator[WebServer]:
    with environment.run_web(bench, application, environment=variables) as (pids, url):
        yield WebServer(pids=pids, url=f"{url}/", headers={"Content-Type": "application/json"})


def create_key(*scopes: str) -> str:
    """Create an API client that may create notifications and has other scopes; return its key."""
    from access.clients import registry
    from access.models import Scope

    client_id = registry.create_client(
        name=f"bench {uuid4().hex[:8]}",
        scopes=[Scope.NOTIFICATIONS_WRITE, *map(Scope, scopes)],
        now=utc_now(),
    )
    return registry.issue_key(client_id=client_id, now=utc_now()).text


def _post_for(web: WebServer, *, seconds: float, body: Body) -> int:
    until = time.monotonic() + seconds

    def call(caller: int) -> int:
        count = 0
        while time.monotonic() < until:
            number = caller * 1_000_000 + count
            web.post(http, json.dumps(body(number)).encode())
            count += 1
        return count

    with _run_callers(CALLERS) as (http, callers):
        return sum(callers.map(call, range(CALLERS)))


@contextmanager
def _run_callers(count: int) -> Iterator[tuple[urllib3.PoolManager, ThreadPoolExecutor]]:
    pool = urllib3.PoolManager(maxsize=count, block=True, retries=False)
    with pool as http, ThreadPoolExecutor(count) as callers:
        yield http, callers


def measure_bulk(
    bench: Bench, *, rounds: int, count: int, log_progress: Progress
) -> Iterator[Figure]:
    """Measure S3: notifications per second in bulk requests of a thousand."""
    with run_service(bench, path=f"{SINGLE_PATH}/bulk", processes=2) as web:
        bodies = mail.bodies_with_and_without_schema()
        for body in (mail.request_body, *bodies.values()):
            _post_in_bulk(web, BULK_CALLERS * mail.BATCH, body=body)
        runs = {
            "ours": lambda: _post_in_bulk(web, count),
            "store": lambda: _accept_with_store(count),
            "floor": lambda: _insert_many(count),
            "peer": lambda: _queue_with_post_office(bench, count),
        }
        runs |= {
            name: partial(_post_in_bulk, web, count, body=body) for name, body in bodies.items()
        }
        found = run_rounds(runs, rounds=rounds, log_progress=log_progress)
    store = found.pop("store")
    with_schema, without = (found.pop(name) for name in bodies)
    yield compare(
        **found,
        key="S3",
        label="POST bulk of 1,000",
        unit="/s",
        goals=(at_least(10_000),),
        note=f"{BULK_CALLERS} callers and two processes of the web, as the stack has; floor: "
        "insert_many of the same documents in one thread, indexed by _id alone; peer: send_many",
    )
    yield compare(
        ours=store,
        floor=found["floor"],
        key="S3 store",
        label="… store.accept alone, in one thread, all indexes",
        unit="/s",
    )
    yield _compare_schemas(with_schema, without, key="S3 schema", unit="/s")


def _post_in_bulk(web: WebServer, count: int, *, body: Body = mail.request_body) -> float:
    from django.core.management import call_command

    # The service would refuse to add to the backlog of the previous round, and MongoDB would
    # finish a deletion during the measurement.
    collection("notifications").drop()
    call_command("check_indexes", "--create", stdout=io.StringIO())
    batches = (range(start, start + mail.BATCH) for start in range(0, count, mail.BATCH))
    requests = ([body(number) for number in numbers] for numbers in batches)
    bodies = [json.dumps({"notifications": request}).encode() for request in requests]

    def post(body: bytes) -> None:
        answer = web.post(http, body, status=200, **{"Idempotency-Key": uuid4().hex})
        if answer.json()["accepted"] != mail.BATCH:
            raise RuntimeError(f"{answer.status}: {answer.data[:500]!r}")

    with _run_callers(BULK_CALLERS) as (http, callers):
        started = time.perf_counter()
        list(callers.map(post, bodies))
        return count / (time.perf_counter() - started)


def _accept_with_store(count: int) -> float:
    from notifications.store import acceptance

    now = utc_now()
    new = [mail.new_notification(number, at=now) for number in range(count)]
    started = time.perf_counter()
    for start in range(0, count, mail.BATCH):
        acceptance.accept(new[start : start + mail.BATCH], now=now)
    return count / (time.perf_counter() - started)


def _insert_many(count: int) -> float:
    from notifications.store import acceptance
    from notifications.store.acceptance import Accepted

    now = utc_now()
    documents: list[dict[str, Any]] = []
    for start in range(0, count, mail.BATCH):
        new = [mail.new_notification(number, at=now) for number in range(start, start + mail.BATCH)]
        accepted = acceptance.accept(new, now=now)
        documents += [dict(result.document) for result in accepted if isinstance(result, Accepted)]
    floor = collection("floor_notifications")
    floor.drop()
    started = time.perf_counter()
    for start in range(0, count, mail.BATCH):
        floor.insert_many(documents[start : start + mail.BATCH], ordered=False)
    return count / (time.perf_counter() - started)


def _queue_with_post_office(bench: Bench, count: int) -> float:
    folder = bench.fresh_folder("post_office")
    return count / environment.run_program(bench, "post_office", "accept", folder, count)["seconds"]


def measure_latency(bench: Bench, *, seconds: int, log_progress: Progress) -> Iterator[Figure]:
    """Measure S7: the time from POST to provider at a steady rate, all on this machine."""
    timed = {"SENDGRID_URL": f"{bench.http.url}/timed"}
    with environment.run_workers(bench, environment=timed), run_service(bench) as web:
        post_at_rate(web, WARM_UP_COUNT)
        wait_until(draining.is_all_final, timeout=60, what="the warm-up was not sent")
        posted = post_at_rate(web, seconds * RATE)
        wait_until(draining.is_all_final, timeout=60, what="not everything was sent")
    found = waits(bench, posted)
    log_progress(f"the slowest: {1000 * found[-1]:.0f} ms")
    for percent, limit in ((50, 50), (99, 500)):
        yield Figure(
            key=f"S7 p{percent}",
            label=f"POST → provider at {RATE}/s for {seconds} s, p{percent}",
            unit="ms",
            ours=1000 * found[len(found) * percent // 100],
            goals=(at_most(limit),),
            note="from the instant the caller begins its POST; the provider's own clock",
        )


def waits(bench: Bench, posted: Mapping[ObjectId, float]) -> list[float]:
    """Return the sorted seconds from the POST of each mail to its arrival at the provider."""
    arrivals = bench.http.arrivals()
    sent = collection("notifications").find({"_id": {"$in": list(posted)}}, {"delivery": 1})
    found = sorted(
        arrivals[document["delivery"][0]["provider_message_id"]] - posted[document["_id"]]
        for document in sent
    )
    if len(found) != len(posted):
        raise RuntimeError(f"{len(found)} of {len(posted)} have arrived")
    return found


def post_at_rate(
    web: WebServer, count: int, *, body: Body = mail.request_body, rate: float = RATE
) -> dict[ObjectId, float]:
    """Post mails at a rate. Return the time of each POST by the notification's ID."""
    started: dict[ObjectId, float] = {}
    lock = threading.Lock()
    start = time.monotonic()

    def post(number: int) -> None:
        time.sleep(max(start + number / rate - time.monotonic(), 0))
        at = time.time()
        answer = web.post(http, json.dumps(body(number)).encode())
        with lock:
            started[ObjectId(answer.json()["id"])] = at

    with _run_callers(RATE_CALLERS) as (http, callers):
        list(callers.map(post, range(count)))
    return started
