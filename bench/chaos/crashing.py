"""A run that comes to every boundary: what is posted, which process comes there and dies."""

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import urllib3

from notifyproject.platform.crash_points import Boundary

from . import bodies, hinting
from .bodies import Body
from .boundaries import EMAIL, IN_APP, PUSH, WHATSAPP, BoundaryCase
from .expecting import Expected
from .processes import Program, ScenarioError, wait_until
from .stand import Installation

PHONE, USER_ID = "+447700900999", "ada"
CRITICAL = "critical"
SCHEDULE_AHEAD = timedelta(seconds=2)
"""What is for the inbox goes through a worker only if it is scheduled."""
CRASH_SECONDS = 90.0
LEASE_SECONDS = 92.0


@dataclass
class CrashRun:
    """The state of such a run."""

    installation: Installation
    web: Program
    posted: int = 0
    expected: Expected = field(default_factory=Expected)
    reached: int = 0
    """Processes that came to their boundary and died there."""

    def register_recipient(self) -> None:
        """Let the person have a device, and write to us on WhatsApp."""
        phone = bodies.phone(user_id=USER_ID)
        status, response = self.installation.client.call("PUT", "/devices", phone)
        if status != 200:
            raise RuntimeError(f"the device was not registered: {response}")
        urllib3.request(
            "POST",
            f"{self.installation.environment['SANDBOX_URL']}/_sandbox/whatsapp/written",
            json={"from": PHONE, "text": "Hello"},
            timeout=10,
        )
        windows = self.installation.database["conversations"]
        wait_until(lambda: windows.count_documents({}), timeout=30, what="nobody has written to us")

    def body(self, channel: str, **fields: Any) -> Body:
        """Return a new request for a channel."""
        self.posted += 1
        number = self.posted
        make = {
            EMAIL: lambda: bodies.mail(number, **fields),
            PUSH: lambda: bodies.push(number, user_id=USER_ID, **fields),
            WHATSAPP: lambda: bodies.whatsapp(number, phone=PHONE, **fields),
            IN_APP: lambda: bodies.in_app(
                number,
                **{"scheduled_at": (datetime.now(UTC) + SCHEDULE_AHEAD).isoformat(), **fields},
            ),
        }
        return {"priority": CRITICAL, **make[channel]()}

    def post(self, body: Body, *, copies: int) -> str:
        """Send a request until it is accepted; remember how often the provider is to take it."""
        answer = self.installation.client.send(body, key=f"crash-{self.posted}")
        return self.expected.add(answer, copies=copies)

    def send_wakeup(self, ids: Sequence[str], *, channel: str, priority: str = CRITICAL) -> None:
        """Tell a worker of these."""
        if not hinting.publish_wakeups(ids, channel=channel, priority=priority):
            raise ScenarioError("the broker did not take a hint")

    def worker(self, boundary: Boundary, channel: str, *, priority: str = CRITICAL) -> Program:
        """Return a worker of one queue that is to die."""
        return self.installation.worker(f"{boundary}-{channel}", queues=f"{channel}.{priority}")

    def crash(self, boundary: Boundary, *programs: Program, **environment: str) -> None:
        """Start processes that are to die at a boundary, and wait until they have."""
        for one in programs:
            one.start(CRASH_AT=boundary, **environment)
        self.wait_crashed(*programs)

    def wait_crashed(self, *programs: Program) -> None:
        """Wait until processes have died at their boundary."""
        for one in programs:
            one.wait_ended(timeout=CRASH_SECONDS)
            if one.process is None or one.process.returncode != -signal.SIGKILL:
                raise ScenarioError(f"{one.name} ended by itself: {one.log}")
            self.installation.record_end(one)
            self.reached += 1

    def start_crashing_web(self, boundary: Boundary, *, at_once: bool = False) -> None:
        """Start the web anew so that each of its processes dies at a boundary.

        ``at_once``: it may be there so soon that it is never seen ready.
        """
        self.web.kill()
        self.web.start(CRASH_AT=boundary)
        if not at_once:
            self.web.wait_ready()

    def wait_web_crashed(self, times: int = 1) -> None:
        """Wait until a process of the web has died, for the so manieth time."""
        wait_until(
            lambda: self.web.count_logged("was sent SIGKILL") >= times,
            timeout=CRASH_SECONDS,
            what="the web did not come to its boundary",
        )
        self.reached += 1

    def restart_web(self) -> None:
        """Start the web anew as it should be."""
        self.web.kill()
        self.installation.start(self.web)

    def expected_copies(self, case: BoundaryCase, channel: str) -> int:
        """Return how often the provider is to take a notification of this channel."""
        if channel == IN_APP:
            return 0
        return 2 if channel in case.duplicated else 1


def is_stopped(program: Program) -> bool:
    """Return whether a process has been stopped, by itself or from outside."""
    fields = Path(f"/proc/{program.pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0] in "Tt"


def send_sigterm(program: Program) -> None:
    """Send SIGTERM, and do not wait."""
    os.kill(program.pid, signal.SIGTERM)


def sleep(seconds: float) -> None:
    """Let time go by: nothing shortens a lease."""
    time.sleep(max(seconds, 0))
