"""A process dies at each boundary between two steps, on each channel."""

import time
from datetime import UTC, datetime, timedelta

from bson import ObjectId

from notifyproject.platform.crash_points import Boundary

from .. import bodies, hinting
from ..boundaries import EMAIL, BoundaryCase, Trigger, cases_of
from ..crashing import LEASE_SECONDS, USER_ID, CrashRun, is_stopped, send_sigterm, sleep
from ..evidence import ACCEPTED
from ..findings import Bound, Findings, make_findings
from ..gathering import collect_evidence
from ..processes import Program, ScenarioError, wait_until
from ..scenario import Scenario
from ..stand import run_installation

FREEZE_SECONDS = 80.0
"""Longer than the part of a lease in which a send may begin."""
WEB_START_TIME = timedelta(seconds=5)
"""Time to start the web anew before something is sent: while it dies, it takes nothing."""
RECEIPT_SECONDS = 32.0
"""How long the outcome of something critical stays unknown."""
FINAL_SECONDS = 600.0
BROADCAST_SECONDS = 180.0
"""A lease of a minute, and two sweeps."""
ONE_THREAD = {"WORKER_THREADS": "1"}


def every_boundary(*, ways: tuple[Trigger, ...]) -> Findings:
    """Come to each boundary with a process that dies there; then let the others clean up."""
    with run_installation() as installation:
        run = CrashRun(installation, installation.web())
        installation.start(run.web)
        run.register_recipient()
        frozen_worker = _freeze(run) if Trigger.FROZEN in ways else None
        frozen_since = time.monotonic()
        for trigger, step in _STEPS.items():
            if trigger in ways:
                for boundary, case in cases_of(trigger):
                    step(run, boundary, case)
        if frozen_worker is not None:
            sleep(FREEZE_SECONDS - (time.monotonic() - frozen_since))
            frozen_worker.resume()
            run.wait_crashed(frozen_worker)
        if Trigger.SWEEP in ways:
            _sweep(run)
        plain = [installation.worker(), installation.beat()]
        installation.start(*plain)
        if Trigger.RETRY in ways:
            _reopen(run)
        if Trigger.RECEIPT in ways:
            for boundary, case in cases_of(Trigger.RECEIPT):
                _receipt(run, boundary, case)
        _await_broadcasts(run)
        installation.wait_final(timeout=FINAL_SECONDS)
        evidence = collect_evidence(installation)
        expected = sum(
            1 if way is Trigger.BULK else len(arrival.channels)
            for way in ways
            for _, arrival in cases_of(way)
        )
        return make_findings(
            evidence,
            Bound(name="processes that died at a boundary", value=run.reached, minimum=expected),
            run.expected.bound(evidence),
        )


def _send(run: CrashRun, boundary: Boundary, case: BoundaryCase) -> None:
    """Let one worker for each channel die while it sends."""
    ids = {
        channel: run.post(run.body(channel), copies=run.expected_copies(case, channel))
        for channel in case.channels
    }
    # By now it is due for the inbox, too.
    sleep(2.5)
    hinting.clear_broker(run.installation)
    for channel, one in ids.items():
        run.send_wakeup([one], channel=channel)
    run.crash(boundary, *(run.worker(boundary, channel) for channel in case.channels))


def _expired(run: CrashRun, boundary: Boundary, _case: BoundaryCase) -> None:
    one = run.post(run.body(EMAIL, ttl=1), copies=0)
    sleep(1.5)
    hinting.clear_broker(run.installation)
    run.send_wakeup([one], channel=EMAIL)
    run.crash(boundary, run.worker(boundary, EMAIL))


def _same_content(run: CrashRun, boundary: Boundary, _case: BoundaryCase) -> None:
    ids = []
    for _ in range(2):
        run.posted += 1
        ids.append(run.post(bodies.same_mail(run.posted, priority="critical"), copies=1))
    hinting.clear_broker(run.installation)
    run.send_wakeup(ids, channel=EMAIL)
    run.crash(boundary, run.worker(boundary, EMAIL))


def _burst(run: CrashRun, boundary: Boundary, _case: BoundaryCase) -> None:
    from domain.states import Channel, Priority
    from notifications.queueing import fair_queue

    run.post(run.body(EMAIL), copies=1)
    hinting.clear_broker(run.installation)
    client = run.installation.database["api_clients"].find_one()
    if client is None:
        raise ScenarioError("there is no client")
    queue = fair_queue.FairQueue(client["_id"], Channel.EMAIL, Priority.CRITICAL)
    fair_queue.enqueue_pulls(queue, now=datetime.now(UTC))
    run.crash(boundary, run.worker(boundary, EMAIL))


def _shutdown(run: CrashRun, boundary: Boundary, _case: BoundaryCase) -> None:
    """Let a worker that sends one by one be asked to end while it waits for a slow answer."""
    ids = [run.post(run.body(EMAIL, to="slow"), copies=1) for _ in range(3)]
    hinting.clear_broker(run.installation)
    run.send_wakeup(ids, channel=EMAIL)
    worker = run.worker(boundary, EMAIL)
    worker.start(CRASH_AT=boundary, **ONE_THREAD)
    being_sent = {"_id": {"$in": [ObjectId(one) for one in ids]}, "status": "processing"}
    wait_until(
        lambda: run.installation.database["notifications"].count_documents(being_sent),
        timeout=60,
        what="nothing is being sent",
    )
    send_sigterm(worker)
    run.wait_crashed(worker)


def _freeze(run: CrashRun) -> Program:
    """Let a worker freeze just before it sends; return it."""
    ((boundary, _),) = cases_of(Trigger.FROZEN)
    one = run.post(run.body(EMAIL, priority="high"), copies=1)
    hinting.clear_broker(run.installation)
    run.send_wakeup([one], channel=EMAIL, priority="high")
    worker = run.worker(boundary, EMAIL, priority="high")
    worker.start(CRASH_AT=boundary, FREEZE_AT=Boundary.STARTED)
    wait_until(lambda: is_stopped(worker), timeout=60, what="the worker did not freeze")
    return worker


def _post(run: CrashRun, boundary: Boundary, case: BoundaryCase) -> None:
    """Let the web die inside each channel's request; the app tries again with its key."""
    run.start_crashing_web(boundary)
    unanswered = []
    for times, channel in enumerate(case.channels, start=1):
        body = run.body(channel)
        key = f"crash-{run.posted}"
        if run.installation.client.send_once(body, key=key).status is not None:
            raise ScenarioError(f"there was an answer after {boundary}")
        run.wait_web_crashed(times)
        unanswered.append((channel, body, key))
    run.restart_web()
    for channel, body, key in unanswered:
        answer = run.installation.client.send(body, key=key)
        run.expected.add(answer, copies=run.expected_copies(case, channel))


def _bulk(run: CrashRun, boundary: Boundary, case: BoundaryCase) -> None:
    """Let the web die inside a request with one for each channel; the app tries again."""
    run.start_crashing_web(boundary)
    many = [run.body(channel) for channel in case.channels]
    key = f"bulk-{boundary}"
    if any(answer.is_accepted for answer in run.installation.client.send_many(many, key=key)):
        raise ScenarioError(f"there was an answer after {boundary}")
    run.wait_web_crashed()
    run.restart_web()
    answers = run.installation.client.send_many(many, key=key)
    for channel, answer in zip(case.channels, answers, strict=True):
        run.expected.add(answer, copies=run.expected_copies(case, channel))


def _broadcast(run: CrashRun, boundary: Boundary, _case: BoundaryCase) -> None:
    """Let a worker die in the middle of a broadcast's page; others tell the rest."""
    from notifications.broadcasts import fan_out

    status, response = run.installation.client.call(
        "POST", "/broadcasts", bodies.broadcast(USER_ID)
    )
    if status != ACCEPTED:
        raise ScenarioError(f"the broadcast was not accepted: {response}")
    notification_id = fan_out.notification_id(ObjectId(response["id"]), USER_ID)
    run.expected.copies[str(notification_id)] = 1
    run.crash(boundary, run.installation.worker(f"{boundary}", queues="broadcasts"))


def _await_broadcasts(run: CrashRun) -> None:
    """Wait until all of them were read: their leases end, and a sweep finds them."""
    wait_until(
        lambda: not run.installation.database["broadcasts"].count_documents({"status": "running"}),
        timeout=BROADCAST_SECONDS,
        what="a broadcast was not read to its end",
    )


def _receipt(run: CrashRun, boundary: Boundary, case: BoundaryCase) -> None:
    """Let the web die when a provider reports; the provider reports again."""
    for channel in case.channels:
        soon = (datetime.now(UTC) + WEB_START_TIME).isoformat()
        run.post(run.body(channel, scheduled_at=soon), copies=1)
        run.start_crashing_web(boundary, at_once=True)
        run.wait_web_crashed()
        run.restart_web()


def _reopen(run: CrashRun) -> None:
    """Let the web die when somebody re-opens what has failed."""
    one = run.post(run.body(EMAIL, to="invalid"), copies=0)
    notifications = run.installation.database["notifications"]
    for boundary, _ in cases_of(Trigger.RETRY):
        wait_until(
            lambda: notifications.count_documents({"_id": ObjectId(one), "status": "failed"}),
            timeout=120,
            what="the provider did not refuse it",
        )
        run.start_crashing_web(boundary)
        run.installation.client.call("POST", f"/notifications/{one}/retry", {})
        run.wait_web_crashed()
        run.restart_web()


def _sweep(run: CrashRun) -> None:
    """Let a sweep die at each of its steps, when all leases have ended."""
    sleep(LEASE_SECONDS)
    for boundary, _ in cases_of(Trigger.SWEEP):
        if boundary is Boundary.RESOLVED:
            # By now some outcome is unknown, and nobody will report on it.
            sleep(RECEIPT_SECONDS)
        run.crash(boundary, run.installation.sweeper(f"sweeper-{boundary}", "--once"))


_STEPS = {
    # First: once something has been due for ten minutes, which the dead leave lying, both wait.
    Trigger.BROADCAST: _broadcast,
    Trigger.BULK: _bulk,
    Trigger.SENDING: _send,
    Trigger.EXPIRED: _expired,
    Trigger.SAME_CONTENT: _same_content,
    Trigger.BURST: _burst,
    Trigger.SHUTDOWN: _shutdown,
    Trigger.POST: _post,
}
"""The ways that go from boundary to boundary while nobody else works."""

EVERY_BOUNDARY = Scenario(
    number=1,
    injects="a process dies at each boundary between two steps, on each channel",
    shows="P1, P2 exactly",
    run=every_boundary,
    full={"ways": tuple(Trigger)},
    short={"ways": (Trigger.SAME_CONTENT, Trigger.POST, Trigger.SWEEP)},
)
