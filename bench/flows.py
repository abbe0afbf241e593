"""``python -m bench.flows``: end-to-end flows on RabbitMQ, from a POST to the sandbox.

Each flow prints what was measured, and the program ends with 1 if a flow failed.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from notifyproject.stack import bytecode

from .chaos.evidence import Answer
from .chaos.installation import (
    BROKER_VARIABLE,
    RABBITMQ,
    Installation,
    provider_requests,
    run_installation,
)
from .chaos.load import mail_body
from .processes import Program, wait_until
from .rabbitmq import RabbitMQ

LIMIT = 60.0
SCHEDULED_SECONDS = 7
BACKLOG = 3_000
CRITICAL = 20
WORKERS = ("worker", "urgent")
"""The worker of all queues, and the one of the urgent queues."""
SWEEP_SECONDS = 90.0
"""As in scenario 8: a sweep starts every 15 seconds, and the rest is for a busy machine."""


def main() -> int:
    """Run all flows; return 1 if one failed."""
    bytecode.enable_cache()
    os.environ[BROKER_VARIABLE] = RABBITMQ
    flows: dict[str, Callable[[Installation], str]] = {
        "a POST reaches the sandbox": immediate,
        "a scheduled notification is sent at its time": scheduled,
        "critical overtakes a backlog": priority,
        "the workers answer, and the depths are known": monitoring,
        "a lost wake-up is replaced by the sweep": lost_wakeup,
        "a frozen broker doesn't delay a POST": frozen_broker,
    }
    failed = False
    with run_installation() as installation:
        programs = (installation.worker(), _urgent_worker(installation), installation.beat())
        installation.start(installation.web(), *programs)
        for name, flow in flows.items():
            try:
                print(f"ok   {name}: {flow(installation)}", flush=True)
            except RuntimeError as error:
                failed = True
                print(f"FAIL {name}: {error}", flush=True)
    return int(failed)


def immediate(installation: Installation) -> str:
    """Send mails one by one; return the times from the POST to the provider."""
    waits = sorted(_wait_for(installation, f"now-{number}", number) for number in range(50))
    return f"median {waits[25] * 1000:.0f} ms, worst {waits[-1] * 1000:.0f} ms"


def scheduled(installation: Installation) -> str:
    """Schedule a mail some seconds ahead; return how late it is sent."""
    at = datetime.now(UTC) + timedelta(seconds=SCHEDULED_SECONDS)
    answer = _send(installation, "later", 900, scheduled_at=at.isoformat())
    late = (_sent_at(installation, answer) - at).total_seconds()
    if not 0 <= late < 2:
        raise RuntimeError(f"sent {late:.2f} s after its time")
    return f"{late * 1000:.0f} ms after its time"


def priority(installation: Installation) -> str:
    """Queue a backlog of low priority, then critical mails; return how much overtook them."""
    for one in installation.programs:
        if one.name in WORKERS:
            installation.kill(one)
    body = partial(mail_body, priority="low")
    installation.client.send_in_bulk(BACKLOG, body=body, name="backlog")
    critical = [
        _send(installation, f"critical-{number}", number, priority="critical").notification_id
        for number in range(CRITICAL)
    ]
    # Without the urgent worker, one process has both.
    installation.start(*(one for one in installation.programs if one.name == WORKERS[0]))
    installation.wait_final(timeout=300)
    sent = provider_requests(installation.folder / "sandbox")
    places = [place for place, one in enumerate(sent) if one.notification_id in critical]
    ahead = len(sent[-BACKLOG - CRITICAL : places[-1]]) - CRITICAL + 1
    if ahead > BACKLOG // 10:
        raise RuntimeError(f"{ahead} of the backlog were sent before the last critical mail")
    installation.start(*(one for one in installation.programs if one.name == WORKERS[1]))
    return f"{max(ahead, 0)} of {BACKLOG:,} were sent before the last of {CRITICAL} critical mails"


def monitoring(installation: Installation) -> str:
    """Ask the workers for a sign of life, and read the depths of all queues."""
    # The service's modules need its settings, which exist only after the servers started.
    from monitoring import workers

    expected = sum(one.is_alive for one in installation.programs if one.name in WORKERS)
    names, service = workers.ping_workers(), workers.service_depth()
    if names is None or len(names) != expected or service is None:
        raise RuntimeError(f"workers: {names}, depth of the service queue: {service}")
    return f"{len(names)} workers, {service} messages in the service queue"


def lost_wakeup(installation: Installation) -> str:
    """Accept mail while the broker is down; return when it is sent after the broker's return."""
    installation.broker.kill()
    answers = [_send(installation, f"lost-{number}", number) for number in range(5)]
    installation.broker.start()
    began = time.monotonic()
    for answer in answers:
        _sent_at(installation, answer)
    seconds = time.monotonic() - began
    if seconds > SWEEP_SECONDS:
        raise RuntimeError(f"{seconds:.0f} s after the broker's return")
    return f"{seconds:.0f} s after the broker's return"


def frozen_broker(installation: Installation) -> str:
    """Freeze the broker; return the time of the slowest POST."""
    if not isinstance(installation.broker, RabbitMQ):
        raise TypeError("the broker is not RabbitMQ")
    os.kill(installation.broker.pid, signal.SIGSTOP)
    waits = []
    for number in range(20):
        began = time.monotonic()
        _send(installation, f"frozen-{number}", number)
        waits.append(time.monotonic() - began)
    os.kill(installation.broker.pid, signal.SIGCONT)
    installation.wait_final(timeout=120)
    if max(waits) > 2 or installation.open_count():
        raise RuntimeError(f"{max(waits):.2f} s, {installation.open_count()} still open")
    return f"slowest 202 after {max(waits) * 1000:.0f} ms; all sent after the broker's return"


def _urgent_worker(installation: Installation) -> Program:
    # The service's modules need its settings, which exist only after the servers started.
    from notifyproject.settings.base import urgent_queue_names

    return installation.worker("urgent", queues=",".join(urgent_queue_names()))


def _send(installation: Installation, key: str, number: int, **fields: str) -> Answer:
    answer = installation.client.send_once(mail_body(number, **fields), key=key)
    if not answer.is_accepted:
        raise RuntimeError(f"{key}: status {answer.status}")
    return answer


def _wait_for(installation: Installation, key: str, number: int, **fields: str) -> float:
    answer = _send(installation, key, number, **fields)
    return (_sent_at(installation, answer) - answer.at).total_seconds()


def _sent_at(installation: Installation, answer: Answer) -> datetime:
    """Wait until the provider has a notification; return the time of its request."""

    def times() -> list[datetime]:
        # The sandbox's log is short enough to read it again.
        requests = provider_requests(installation.folder / "sandbox")
        return [one.at for one in requests if one.notification_id == answer.notification_id]

    wait_until(times, timeout=LIMIT, what=f"{answer.key} was not sent", poll=0.1)
    return times()[0]


if __name__ == "__main__":
    sys.exit(main())
