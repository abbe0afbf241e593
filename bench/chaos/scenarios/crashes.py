"""A process is killed at each boundary, on each channel."""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import urllib3
from bson import ObjectId

from domain.channels import Channel
from domain.states import Priority
from notifyproject.platform.crash_points import Boundary

from ...processes import Program, ScenarioError, wait_until
from ..boundaries import EMAIL, IN_APP, PUSH, WHATSAPP, BoundaryCase, Trigger, cases_of
from ..evidence import ACCEPTED
from ..findings import Expected, Findings, at_least, at_most, make_findings, scenario
from ..installation import Installation, publish_wakeups, run_installation
from ..load import (
    NEWS,
    OK,
    Body,
    Client,
    define_digest,
    device_body,
    digest_body,
    in_app_body,
    mail_body,
    push_body,
    send_file,
    uniform_mail_body,
    upload_file,
)

PHONE, USER_ID = "+447700900999", "ada"
CRITICAL, NORMAL = "critical", "normal"
DIGEST_TYPE = "crash_digest"
FILE_TYPE, FIRST_ROW = "payment_confirmed", "2"
DIGEST_TRIGGERS = (Trigger.DIGEST_JOIN, Trigger.DIGEST_CLOSE)
SCHEDULE_AHEAD = timedelta(seconds=2)
"""An inbox item goes through a worker only if it is scheduled."""
CRASH_SECONDS = 90.0
LEASE_SECONDS = 92.0
FREEZE_SECONDS = 80.0
"""Longer than the part of a lease in which a send may begin."""
WEB_START_TIME = timedelta(seconds=5)
"""Time to restart the web before something is sent: no receipt arrives while it is down."""
RECEIPT_SECONDS = 32.0
"""How long a critical delivery stays unknown."""
BROADCAST_SECONDS = 180.0
"""A lease of a minute, and two sweeps."""


@dataclass
class CrashRun:
    """The state of a run: the installation, the web program, and the expected copies."""

    installation: Installation
    web: Program
    posted: int = 0
    posted_digests: int = 0
    files: list[str] = field(default_factory=list)
    expected: Expected = field(default_factory=Expected)
    reached: int = 0

    def register_recipient(self) -> None:
        """Register the recipient's device, and open a service window by an inbound message."""
        device = device_body(user_id=USER_ID)
        status, response = self.installation.client.call("PUT", "/devices", device)
        if status not in (200, 201):
            raise RuntimeError(f"the device was not registered: {response}")
        urllib3.request(
            "POST",
            f"{self.installation.environment['SANDBOX_URL']}/_sandbox/whatsapp/written",
            json={"from": PHONE, "text": "Hello"},
            timeout=10,
        )
        windows = self.installation.database["service_windows"]
        wait_until(lambda: windows.count_documents({}), timeout=30, what="no inbound message")

    def body(self, channel: str, **fields: Any) -> Body:
        """Return a new request body for a channel."""
        self.posted += 1
        number = self.posted
        soon = (datetime.now(UTC) + SCHEDULE_AHEAD).isoformat()
        whatsapp = {"recipient": {"phone": PHONE}, "channels": [WHATSAPP]}
        body = {
            EMAIL: lambda: mail_body(number, **fields),
            PUSH: lambda: push_body(number, user_id=USER_ID, **fields),
            WHATSAPP: lambda: in_app_body(number, **whatsapp, **fields),
            IN_APP: lambda: in_app_body(number, **{"scheduled_at": soon, **fields}),
        }[channel]()
        return {"priority": CRITICAL, **body}

    def post(self, body: Body, *, copies: int) -> str:
        """Send a request with retries; record the expected number of copies, and return the ID."""
        answer = self.installation.client.send(body, key=f"crash-{self.posted}")
        return self.expected.add(answer, copies=copies)

    def send_wakeups(self, ids: Mapping[str, Sequence[str]], *, priority: str = CRITICAL) -> None:
        """Replace all wake-ups in the broker by one wake-up for each channel's deliveries."""
        self.installation.clear_broker()
        for channel, some in ids.items():
            if not publish_wakeups(some, channel=channel, priority=priority):
                raise ScenarioError("the broker did not take a wake-up")

    def worker(self, boundary: Boundary, channel: str, *, priority: str = CRITICAL) -> Program:
        """Return a worker of one channel and priority, named after the boundary."""
        return self.installation.worker(f"{boundary}-{channel}", queues=f"{channel}.{priority}")

    def crash(self, boundary: Boundary, *programs: Program, **environment: str) -> None:
        """Start programs that are killed at a boundary, and wait for their ends."""
        for program in programs:
            program.start(CRASH_AT=boundary, **environment)
        self.wait_crashed(*programs)

    def wait_crashed(self, *programs: Program) -> None:
        """Wait until programs were killed at their boundary. Raises ScenarioError."""
        for program in programs:
            program.wait_ended(timeout=CRASH_SECONDS)
            if program.process is None or program.process.returncode != -signal.SIGKILL:
                raise ScenarioError(f"{program.name} ended by itself: {program.log}")
            self.installation.record_end(program)
            self.reached += 1

    def start_crashing_web(self, boundary: Boundary, *, at_once: bool = False) -> None:
        """Restart the web to be killed at a boundary; ``at_once``: don't wait until it is ready."""
        self.web.kill()
        self.web.start(CRASH_AT=boundary)
        if not at_once:
            self.web.wait_ready()

    def wait_web_crashed(self, times: int = 1) -> None:
        """Wait until the web has lost ``times`` processes since its start."""
        wait_until(
            lambda: self.web.count_logged("was sent SIGKILL") >= times,
            timeout=CRASH_SECONDS,
            what="the web did not come to its boundary",
        )
        self.reached += 1

    def restart_web(self) -> None:
        """Restart the web so that no boundary kills it."""
        self.web.kill()
        self.installation.start(self.web)

    def expected_copies(self, case: BoundaryCase, channel: str) -> int:
        """Return how often the provider should accept a notification of this channel."""
        if channel == IN_APP:
            return 0
        return 2 if channel in case.duplicated else 1


@scenario(
    1,
    injects="a process dies at each boundary between two steps, on each channel",
    shows="P1, P2 exactly",
    full={"ways": tuple(Trigger)},
    short={"ways": (Trigger.SAME_CONTENT, Trigger.POST, Trigger.SWEEP)},
)
def every_boundary(*, ways: tuple[Trigger, ...]) -> Findings:
    """Kill a process at each boundary, then let other processes complete the work."""
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
            time.sleep(max(FREEZE_SECONDS - (time.monotonic() - frozen_since), 0))
            frozen_worker.resume()
            run.wait_crashed(frozen_worker)
        if Trigger.SWEEP in ways:
            _sweep(run)
        installation.start(installation.worker(), installation.beat())
        if Trigger.FILE in ways:
            _send_files(run)
        if Trigger.RETRY in ways:
            _reopen(run)
        if Trigger.RECEIPT in ways:
            for boundary, case in cases_of(Trigger.RECEIPT):
                _receipt(run, boundary, case)
        # The leases of the broadcasts end, and a sweep continues them.
        wait_until(
            lambda: not installation.database["broadcasts"].count_documents({"status": "running"}),
            timeout=BROADCAST_SECONDS,
            what="a broadcast was not read to its end",
        )
        evidence = installation.finish(timeout=600)
        digests = sum(len(cases_of(way)) for way in ways if way in DIGEST_TRIGGERS)
        carriers = installation.database["notifications"].find({"digest_id": {"$exists": True}})
        counts = {str(carrier["_id"]): carrier["data"]["digest"]["count"] for carrier in carriers}
        run.expected.copies.update(dict.fromkeys(counts, 1))
        expected = sum(
            1 if way is Trigger.BULK else len(case.channels)
            for way in ways
            for _, case in cases_of(way)
        )
        return make_findings(
            evidence,
            at_least("processes killed at a boundary", run.reached, expected),
            run.expected.bound(evidence),
            at_least("digests with two members", list(counts.values()).count(2), digests),
            at_most("carriers", len(counts), digests),
        )


def _send(run: CrashRun, boundary: Boundary, case: BoundaryCase) -> None:
    ids = {
        channel: run.post(run.body(channel), copies=run.expected_copies(case, channel))
        for channel in case.channels
    }
    # The scheduled inbox item is due by then.
    time.sleep(2.5)
    run.send_wakeups({channel: [notification_id] for channel, notification_id in ids.items()})
    run.crash(boundary, *(run.worker(boundary, channel) for channel in case.channels))


def _expired(run: CrashRun, boundary: Boundary, _case: BoundaryCase) -> None:
    notification_id = run.post(run.body(EMAIL, ttl=1), copies=0)
    time.sleep(1.5)
    run.send_wakeups({EMAIL: [notification_id]})
    run.crash(boundary, run.worker(boundary, EMAIL))


def _same_content(run: CrashRun, boundary: Boundary, _case: BoundaryCase) -> None:
    ids = []
    for _ in range(2):
        run.posted += 1
        ids.append(run.post(uniform_mail_body(run.posted, priority=CRITICAL), copies=1))
    run.send_wakeups({EMAIL: ids})
    run.crash(boundary, run.worker(boundary, EMAIL))


def _burst(run: CrashRun, boundary: Boundary, _case: BoundaryCase) -> None:
    from notifications.queueing import fair_queue

    run.post(run.body(EMAIL), copies=1)
    run.installation.clear_broker()
    client = run.installation.database["api_clients"].find_one()
    if client is None:
        raise ScenarioError("there is no client")
    queue = fair_queue.FairQueue(client["_id"], Channel.EMAIL, Priority.CRITICAL)
    fair_queue.enqueue_pulls(queue, now=datetime.now(UTC))
    run.crash(boundary, run.worker(boundary, EMAIL))


def _shutdown(run: CrashRun, boundary: Boundary, _case: BoundaryCase) -> None:
    """Stop (SIGTERM) a worker, of whose batch one request is in flight and the rest waits."""
    ids = [run.post(run.body(EMAIL, to="slow"), copies=1) for _ in range(3)]
    run.send_wakeups({EMAIL: ids})
    worker = run.worker(boundary, EMAIL)
    worker.start(CRASH_AT=boundary, WORKER_THREADS="1", PROVIDER_MAX_IN_FLIGHT="1")
    being_sent = {
        "_id": {"$in": [ObjectId(notification_id) for notification_id in ids]},
        "status": "processing",
    }
    wait_until(
        lambda: run.installation.database["notifications"].count_documents(being_sent),
        timeout=60,
        what="nothing is being sent",
    )
    os.kill(worker.pid, signal.SIGTERM)
    run.wait_crashed(worker)


def _freeze(run: CrashRun) -> Program:
    ((boundary, _),) = cases_of(Trigger.FROZEN)
    notification_id = run.post(run.body(EMAIL, priority="high"), copies=1)
    run.send_wakeups({EMAIL: [notification_id]}, priority="high")
    worker = run.worker(boundary, EMAIL, priority="high")
    worker.start(CRASH_AT=boundary, FREEZE_AT=Boundary.STARTED)
    wait_until(lambda: worker.is_stopped, timeout=60, what="the worker did not freeze")
    return worker


def _post(run: CrashRun, boundary: Boundary, case: BoundaryCase) -> None:
    """Kill the web during a request for each channel; the client retries with the same key."""
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
    """Kill the web during a bulk request with an item for each channel; the client retries."""
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
    """Kill a worker while it processes a page of a broadcast; others continue later."""
    from notifications.intake import addressees

    body = {
        "type": "alert",
        "audience": {"user_ids": [USER_ID]},
        "channels": [PUSH],
        "content": NEWS,
    }
    key = {"Idempotency-Key": str(ObjectId())}
    status, response = run.installation.client.call("POST", "/broadcasts", body, **key)
    if status != ACCEPTED:
        raise ScenarioError(f"the broadcast was not accepted: {response}")
    notification_id = addressees.notification_id(ObjectId(response["id"]), USER_ID)
    run.expected.copies[str(notification_id)] = 1
    run.crash(boundary, run.installation.worker(f"{boundary}", queues="broadcasts"))


def _file(run: CrashRun, boundary: Boundary, _case: BoundaryCase) -> None:
    """Kill a worker while it reads or checks a file; others continue later."""
    run.posted += 1
    content = f"email,order_id,video_title,amount\nfile{run.posted}@example.com,1,Sunrise,2.50\n"
    file_id = upload_file(run.installation.client, content.encode(), type_slug=FILE_TYPE)
    run.files.append(file_id)
    run.crash(boundary, run.installation.worker(f"{boundary}", queues="broadcasts"))


def _is_checked(client: Client, path: str) -> bool:
    status, response = client.call("GET", path, {})
    return status == OK and response["status"] == "checked"


def _send_files(run: CrashRun) -> None:
    """Send the files once they are checked. Each has one row."""
    from notifications.intake import addressees

    client = run.installation.client
    for file_id in run.files:
        wait_until(
            partial(_is_checked, client, f"/files/{file_id}"),
            timeout=BROADCAST_SECONDS,
            what="a file was not checked",
        )
        send_file(client, file_id, type_slug=FILE_TYPE)
        row = str(addressees.notification_id(ObjectId(file_id), FIRST_ROW))
        run.expected.copies[row] = 1


def _post_members(run: CrashRun) -> list[str]:
    """Post two members of a digest of their own. The provider gets neither by itself."""
    if not run.posted_digests:
        define_digest(run.installation.client, DIGEST_TYPE)
    run.posted_digests += 1
    ids = []
    for _ in range(2):
        run.posted += 1
        body = digest_body(run.posted, slug=DIGEST_TYPE, recipient=run.posted_digests)
        ids.append(run.post(body, copies=0))
    run.send_wakeups({EMAIL: ids}, priority=NORMAL)
    return ids


def _digest_join(run: CrashRun, boundary: Boundary, _case: BoundaryCase) -> None:
    _post_members(run)
    run.crash(boundary, run.worker(boundary, EMAIL, priority=NORMAL))


def _digest_close(run: CrashRun, boundary: Boundary, _case: BoundaryCase) -> None:
    """Let a worker open a digest, end its window, and kill the worker that closes it."""
    from domain.queues import DIGESTS
    from notifications.queueing import wakeups

    ids = [ObjectId(member) for member in _post_members(run)]
    database = run.installation.database
    joining = run.installation.worker(f"{boundary}-join", queues=f"{EMAIL}.{NORMAL}")
    run.installation.start(joining)
    members = {"_id": {"$in": ids}, "delivery.digest_id": {"$exists": True}}
    wait_until(
        lambda: database["notifications"].count_documents(members) == len(ids),
        timeout=60,
        what="no digest was joined",
    )
    joining.kill()
    run.installation.record_end(joining)
    now = datetime.now(UTC)
    database["digests"].update_many({"status": "open"}, {"$set": {"closes_at": now, "due_at": now}})
    run.installation.clear_broker()
    wakeups.publish_digests(at=None, now=now)
    run.crash(boundary, run.installation.worker(f"{boundary}", queues=DIGESTS))


def _receipt(run: CrashRun, boundary: Boundary, case: BoundaryCase) -> None:
    for channel in case.channels:
        soon = (datetime.now(UTC) + WEB_START_TIME).isoformat()
        run.post(run.body(channel, scheduled_at=soon), copies=1)
        run.start_crashing_web(boundary, at_once=True)
        run.wait_web_crashed()
        run.restart_web()


def _reopen(run: CrashRun) -> None:
    notification_id = run.post(run.body(EMAIL, to="invalid"), copies=0)
    notifications = run.installation.database["notifications"]
    for boundary, _ in cases_of(Trigger.RETRY):
        wait_until(
            lambda: notifications.count_documents(
                {"_id": ObjectId(notification_id), "status": "failed"}
            ),
            timeout=120,
            what="the provider did not refuse it",
        )
        run.start_crashing_web(boundary)
        run.installation.client.call("POST", f"/notifications/{notification_id}/retry", {})
        run.wait_web_crashed()
        run.restart_web()


def _sweep(run: CrashRun) -> None:
    """Kill a sweep at each of its boundaries, after all leases have ended."""
    time.sleep(LEASE_SECONDS)
    for boundary, _ in cases_of(Trigger.SWEEP):
        if boundary is Boundary.RESOLVED:
            # An unknown outcome is resolved only after the time for a receipt.
            time.sleep(RECEIPT_SECONDS)
        run.crash(boundary, run.installation.sweeper(f"sweeper-{boundary}", "--once"))


_STEPS = {
    # First, because both wait while something is overdue by ten minutes, as after other crashes.
    Trigger.BROADCAST: _broadcast,
    Trigger.FILE: _file,
    Trigger.BULK: _bulk,
    Trigger.DIGEST_JOIN: _digest_join,
    Trigger.DIGEST_CLOSE: _digest_close,
    Trigger.SENDING: _send,
    Trigger.EXPIRED: _expired,
    Trigger.SAME_CONTENT: _same_content,
    Trigger.BURST: _burst,
    Trigger.SHUTDOWN: _shutdown,
    Trigger.POST: _post,
}
"""The triggers whose boundaries are reached one by one, without other workers."""
