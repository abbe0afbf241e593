"""``manage.py sweeper``: runs the periodic tasks without beat, and if needed without a broker."""

import signal
import time
from collections.abc import Callable
from typing import Any

import structlog
from django.core.management.base import BaseCommand, CommandParser

from callbacks import worker
from delivery import sweeper
from delivery import worker as delivery_worker
from delivery.runtime import SendingRuntime
from delivery.sweeper import SWEEP_SECONDS
from domain.time import utc_now
from monitoring import alerts, rollup
from notifications import callback_events
from notifyproject.platform import clock_check, heartbeat, process
from privacy import content_removal

from ...schedule import MINUTE

log = structlog.get_logger(__name__)
POLL_SECONDS = 0.2
DELIVERY_SECONDS = 1.0
"""Seconds between sweeps while this process sends deliveries itself."""
ROLLUP_SECONDS = 10.0
"""Seconds that the roll-up may take between two sweeps, and content removal too."""


class Command(BaseCommand):
    """Run the periodic tasks in one process. Several may run beside beat and workers."""

    help = (
        "Sweep every 15 s until stopped. With --deliver, also send due deliveries in this process "
        "while the broker accepts no wake-ups: then only MongoDB is required."
    )

    _next_at = float("-inf")

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--every", type=float, default=SWEEP_SECONDS, metavar="SECONDS")
        parser.add_argument("--deliver", action="store_true", help="send without a broker, too")
        parser.add_argument("--once", action="store_true", help="sweep once and end")

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep until SIGTERM or SIGINT arrives. Raises SystemCheckError for unsafe settings."""
        process.refuse_unsafe_settings()
        runtime = SendingRuntime()
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: process.request_shutdown())
        while not process.is_shutting_down():
            if not clock_check.is_right():
                self.stderr.write("Waiting: the clock is wrong, or MongoDB doesn't respond.")
                self._wait(clock_check.RECHECK_SECONDS)
                continue
            report = sweeper.sweep(now=utc_now())
            self.stdout.write(
                f"woken {report.woken}, pulled {report.pulled}, unpublished {report.unpublished}, "
                f"recovered {report.recovered}, resolved {report.resolved}"
            )
            callback_events.publish_events(now=utc_now())
            unpublished = report.unpublished + worker.sweep(now=utc_now()).unpublished
            has_no_broker = options["deliver"] and unpublished > 0
            if has_no_broker:
                # At most until the next sweep, which recovers the sends of lost workers.
                sent = delivery_worker.run_inline(runtime, seconds=SWEEP_SECONDS)
                self.stdout.write(f"sent without a broker: {sent}")
                callback_events.publish_events(now=utc_now())
                worker.run_inline(clock=utc_now, is_shutting_down=process.is_shutting_down)
            self._run_periodic_tasks()
            if options["once"]:
                return
            self._wait(DELIVERY_SECONDS if has_no_broker else options["every"])

    def _run_periodic_tasks(self) -> None:
        if time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + MINUTE
        tasks: tuple[Callable[[], object], ...] = (
            lambda: alerts.evaluate(now=utc_now()),
            lambda: rollup.run(now=utc_now(), budget=ROLLUP_SECONDS),
            lambda: content_removal.remove_expired_content(now=utc_now(), seconds=ROLLUP_SECONDS),
        )
        for task in tasks:
            try:
                task()
            except Exception:
                # Sweeps and the other tasks go on, and this one is tried again in a minute.
                log.exception("periodic_task_failed")

    def _wait(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        while not process.is_shutting_down() and time.monotonic() < ends_at:
            heartbeat.record("sweeper")
            time.sleep(POLL_SECONDS)
