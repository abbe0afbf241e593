"""A process dies at each boundary between two steps, on each channel."""

import time
from datetime import UTC, datetime, timedelta

from bson import ObjectId

from notifyproject.platform.crash_points import Boundary

from .. import bodies, hinting
from ..boundaries import EMAIL, Arrival, Way, of_way
from ..crashing import LEASE_SECONDS, PERSON, Crashing, ask_to_end, is_frozen, rest
from ..evidence import ACCEPTED
from ..findings import Bound, Findings, conclude
from ..gathering import gather
from ..processes import Program, Stuck, wait_until
from ..scenario import Scenario
from ..stand import standing

FREEZES_FOR = 80.0
"""Longer than the part of a lease in which a send may begin."""
UNTIL_WEB_DIES = timedelta(seconds=5)
"""Time to start the web anew before something is sent: while it dies, it takes nothing."""
RECEIPT_SECONDS = 32.0
"""How long the outcome of something critical stays unknown."""
FINAL_SECONDS = 600.0
BROADCAST_SECONDS = 180.0
"""A lease of a minute, and two sweeps."""
ONE_BY_ONE = {"WORKER_THREADS": "1"}


def every_boundary(*, ways: tuple[Way, ...]) -> Findings:
    """Come to each boundary with a process that dies there; then let the others clean up."""
    with standing() as stand:
        run = Crashing(stand, stand.web())
        stand.start(run.web)
        run.introduce()
        sleeper = _freeze(run) if Way.FROZEN in ways else None
        slept_since = time.monotonic()
        for way, go in _STEPS.items():
            if way in ways:
                for boundary, arrival in of_way(way):
                    go(run, boundary, arrival)
        if sleeper is not None:
            rest(FREEZES_FOR - (time.monotonic() - slept_since))
            sleeper.thaw()
            run.dead(sleeper)
        if Way.SWEEP in ways:
            _sweep(run)
        plain = [stand.worker(), stand.beat()]
        stand.start(*plain)
        if Way.RETRY in ways:
            _reopen(run)
        if Way.REPORT in ways:
            for boundary, arrival in of_way(Way.REPORT):
                _report(run, boundary, arrival)
        _await_broadcasts(run)
        stand.wait_final(timeout=FINAL_SECONDS)
        evidence = gather(stand)
        expected = sum(
            1 if way is Way.BULK else len(arrival.channels)
            for way in ways
            for _, arrival in of_way(way)
        )
        return conclude(
            evidence,
            Bound(name="processes that died at a boundary", value=run.reached, least=expected),
            run.expected.bound(evidence),
        )


def _send(run: Crashing, boundary: Boundary, arrival: Arrival) -> None:
    """Let one worker for each channel die while it sends."""
    ids = {
        channel: run.post(run.body(channel), copies=run.copies(arrival, channel))
        for channel in arrival.channels
    }
    # By now it is due for the inbox, too.
    rest(2.5)
    hinting.forget(run.stand)
    for channel, one in ids.items():
        run.hint([one], channel=channel)
    run.die(boundary, *(run.worker(boundary, channel) for channel in arrival.channels))


def _expired(run: Crashing, boundary: Boundary, _arrival: Arrival) -> None:
    one = run.post(run.body(EMAIL, ttl=1), copies=0)
    rest(1.5)
    hinting.forget(run.stand)
    run.hint([one], channel=EMAIL)
    run.die(boundary, run.worker(boundary, EMAIL))


def _alike(run: Crashing, boundary: Boundary, _arrival: Arrival) -> None:
    ids = []
    for _ in range(2):
        run.posted += 1
        ids.append(run.post(bodies.same_mail(run.posted, priority="critical"), copies=1))
    hinting.forget(run.stand)
    run.hint(ids, channel=EMAIL)
    run.die(boundary, run.worker(boundary, EMAIL))


def _crowd(run: Crashing, boundary: Boundary, _arrival: Arrival) -> None:
    from domain.states import Channel, Priority
    from notifications.queueing import fair_queue

    run.post(run.body(EMAIL), copies=1)
    hinting.forget(run.stand)
    client = run.stand.database["api_clients"].find_one()
    if client is None:
        raise Stuck("there is no client")
    lane = fair_queue.FairQueue(client["_id"], Channel.EMAIL, Priority.CRITICAL)
    fair_queue.enqueue_pulls(lane, now=datetime.now(UTC))
    run.die(boundary, run.worker(boundary, EMAIL))


def _ending(run: Crashing, boundary: Boundary, _arrival: Arrival) -> None:
    """Let a worker that sends one by one be asked to end while it waits for a slow answer."""
    ids = [run.post(run.body(EMAIL, to="slow"), copies=1) for _ in range(3)]
    hinting.forget(run.stand)
    run.hint(ids, channel=EMAIL)
    worker = run.worker(boundary, EMAIL)
    worker.start(CRASH_AT=boundary, **ONE_BY_ONE)
    going = {"_id": {"$in": [ObjectId(one) for one in ids]}, "status": "processing"}
    wait_until(
        lambda: run.stand.database["notifications"].count_documents(going),
        timeout=60,
        what="nothing is being sent",
    )
    ask_to_end(worker)
    run.dead(worker)


def _freeze(run: Crashing) -> Program:
    """Let a worker freeze just before it sends; return it."""
    ((boundary, _),) = of_way(Way.FROZEN)
    one = run.post(run.body(EMAIL, priority="high"), copies=1)
    hinting.forget(run.stand)
    run.hint([one], channel=EMAIL, priority="high")
    worker = run.worker(boundary, EMAIL, priority="high")
    worker.start(CRASH_AT=boundary, FREEZE_AT=Boundary.STARTED)
    wait_until(lambda: is_frozen(worker), timeout=60, what="the worker did not freeze")
    return worker


def _post(run: Crashing, boundary: Boundary, arrival: Arrival) -> None:
    """Let the web die inside each channel's request; the app tries again with its key."""
    run.web_dies(boundary)
    wanted = []
    for times, channel in enumerate(arrival.channels, start=1):
        body = run.body(channel)
        key = f"crash-{run.posted}"
        if run.stand.client.send_once(body, key=key).status is not None:
            raise Stuck(f"there was an answer after {boundary}")
        run.web_has_died(times)
        wanted.append((channel, body, key))
    run.web_lives()
    for channel, body, key in wanted:
        answer = run.stand.client.send(body, key=key)
        run.expected.add(answer, copies=run.copies(arrival, channel))


def _bulk(run: Crashing, boundary: Boundary, arrival: Arrival) -> None:
    """Let the web die inside a request with one for each channel; the app tries again."""
    run.web_dies(boundary)
    many = [run.body(channel) for channel in arrival.channels]
    key = f"bulk-{boundary}"
    if any(answer.is_accepted for answer in run.stand.client.send_many(many, key=key)):
        raise Stuck(f"there was an answer after {boundary}")
    run.web_has_died()
    run.web_lives()
    answers = run.stand.client.send_many(many, key=key)
    for channel, answer in zip(arrival.channels, answers, strict=True):
        run.expected.add(answer, copies=run.copies(arrival, channel))


def _broadcast(run: Crashing, boundary: Boundary, _arrival: Arrival) -> None:
    """Let a worker die in the middle of a broadcast's page; others tell the rest."""
    from notifications.broadcasts import fan_out

    status, said = run.stand.client.call("POST", "/broadcasts", bodies.broadcast(PERSON))
    if status != ACCEPTED:
        raise Stuck(f"the broadcast was not accepted: {said}")
    told = fan_out.notification_id(ObjectId(said["id"]), PERSON)
    run.expected.copies[str(told)] = 1
    run.die(boundary, run.stand.worker(f"{boundary}", queues="broadcasts"))


def _await_broadcasts(run: Crashing) -> None:
    """Wait until all of them were read: their leases end, and a sweep finds them."""
    wait_until(
        lambda: not run.stand.database["broadcasts"].count_documents({"status": "running"}),
        timeout=BROADCAST_SECONDS,
        what="a broadcast was not read to its end",
    )


def _report(run: Crashing, boundary: Boundary, arrival: Arrival) -> None:
    """Let the web die when a provider reports; the provider reports again."""
    for channel in arrival.channels:
        soon = (datetime.now(UTC) + UNTIL_WEB_DIES).isoformat()
        run.post(run.body(channel, scheduled_at=soon), copies=1)
        run.web_dies(boundary, at_once=True)
        run.web_has_died()
        run.web_lives()


def _reopen(run: Crashing) -> None:
    """Let the web die when somebody re-opens what has failed."""
    one = run.post(run.body(EMAIL, to="invalid"), copies=0)
    notifications = run.stand.database["notifications"]
    for boundary, _ in of_way(Way.RETRY):
        wait_until(
            lambda: notifications.count_documents({"_id": ObjectId(one), "status": "failed"}),
            timeout=120,
            what="the provider did not refuse it",
        )
        run.web_dies(boundary)
        run.stand.client.call("POST", f"/notifications/{one}/retry", {})
        run.web_has_died()
        run.web_lives()


def _sweep(run: Crashing) -> None:
    """Let a sweep die at each of its steps, when all leases have ended."""
    rest(LEASE_SECONDS)
    for boundary, _ in of_way(Way.SWEEP):
        if boundary is Boundary.RESOLVED:
            # By now some outcome is unknown, and nobody will report on it.
            rest(RECEIPT_SECONDS)
        run.die(boundary, run.stand.sweeper(f"sweeper-{boundary}", "--once"))


_STEPS = {
    # First: once something has been due for ten minutes, which the dead leave lying, both wait.
    Way.BROADCAST: _broadcast,
    Way.BULK: _bulk,
    Way.SENDING: _send,
    Way.EXPIRED: _expired,
    Way.ALIKE: _alike,
    Way.CROWD: _crowd,
    Way.ENDING: _ending,
    Way.POST: _post,
}
"""The ways that go from boundary to boundary while nobody else works."""

EVERY_BOUNDARY = Scenario(
    number=1,
    injects="a process dies at each boundary between two steps, on each channel",
    shows="P1, P2 exactly",
    run=every_boundary,
    full={"ways": tuple(Way)},
    short={"ways": (Way.ALIKE, Way.POST, Way.SWEEP)},
)
