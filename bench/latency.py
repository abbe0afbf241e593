"""S7: from a caller's POST to the provider's having it, at a steady rate."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import urllib3
from bson import ObjectId

from notifyproject.db.collections import collection

from . import draining, environment, mail, posting
from .environment import Bench
from .figures import Figure, at_most

RATE = 50
CALLERS = 16
WARM_UP = 100


def measure_latency(
    bench: Bench, *, seconds: int, log_progress: Callable[[str], None]
) -> Iterator[Figure]:
    """Measure S7: everything but the provider is real, and on the same two cores."""
    timed = {"SENDGRID_URL": bench.http.timed_url}
    with environment.run_worker(bench, environment=timed), posting.run_service(bench) as web:
        _post(web, WARM_UP)
        environment.wait_for(draining.is_all_final)
        posted = _post(web, seconds * RATE)
        environment.wait_for(draining.is_all_final)
    arrivals = bench.http.arrivals()
    waits = sorted(
        arrivals[document["delivery"][0]["provider_message_id"]] - posted[document["_id"]]
        for document in collection("notifications").find(
            {"_id": {"$in": list(posted)}}, {"delivery.provider_message_id": 1}
        )
    )
    if len(waits) != seconds * RATE:
        raise RuntimeError(f"{len(waits)} of {seconds * RATE} have arrived")
    log_progress(f"the slowest: {1000 * waits[-1]:.0f} ms")
    for percent, limit in ((50, 100), (99, 1_000)):
        yield Figure(
            key=f"S7 p{percent}",
            label=f"POST → provider at {RATE}/s for {seconds} s, p{percent}",
            unit="ms",
            ours=1000 * waits[len(waits) * percent // 100],
            goals=(at_most(limit),),
            note="from the instant the caller begins its POST; the provider's own clock",
        )


def _post(web: posting.WebServer, count: int) -> dict[ObjectId, float]:
    """Post at the rate, however long an answer takes; return when each was begun, by its id."""
    http = urllib3.PoolManager(maxsize=CALLERS, block=True, retries=False)
    begun: dict[ObjectId, float] = {}
    lock = threading.Lock()
    start = time.monotonic()

    def post(number: int) -> None:
        time.sleep(max(start + number / RATE - time.monotonic(), 0))
        at = time.time()
        body = json.dumps(mail.request_body(number)).encode()
        answer = http.request("POST", web.url, body=body, headers=web.headers, timeout=30)
        if answer.status != 202:
            raise RuntimeError(f"{answer.status}: {answer.data[:500]!r}")
        with lock:
            begun[ObjectId(answer.json()["id"])] = at

    with ThreadPoolExecutor(CALLERS) as callers:
        list(callers.map(post, range(count)))
    http.clear()
    return begun
