"""``manage.py sweeper``: sweep without beat and, if need be, without a broker."""

import signal
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from notifications import recovery, stopping, working
from notifications.schedule import SWEEP_SECONDS
from notifications.timing import utc_now

POLL_SECONDS = 0.2
DELIVERY_SECONDS = 1.0
"""How often it looks for what is due when it delivers itself."""


class Command(BaseCommand):
    """Do what beat and the sweep's task do, in one process; any number may run beside them."""

    help = (
        "Sweep every minute until stopped. With --deliver, also send what is due in this process "
        "whenever the broker takes no hints: nothing but MongoDB is needed then."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--every", type=float, default=SWEEP_SECONDS, metavar="SECONDS")
        parser.add_argument("--deliver", action="store_true", help="send without a broker, too")
        parser.add_argument("--once", action="store_true", help="sweep once and end")

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep until a signal comes."""
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: stopping.ask())
        while not stopping.is_asked():
            report = recovery.sweep(now=utc_now())
            self.stdout.write(
                f"hinted {report.hinted}, drawn {report.drawn}, unpublished {report.unpublished}, "
                f"rescued {report.rescued}, resolved {report.resolved}"
            )
            is_cut_off = options["deliver"] and report.unpublished > 0
            if is_cut_off:
                self.stdout.write(f"sent without a broker: {working.deliver_here()}")
            if options["once"]:
                return
            self._wait(DELIVERY_SECONDS if is_cut_off else options["every"])

    def _wait(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        while not stopping.is_asked() and time.monotonic() < ends_at:
            time.sleep(POLL_SECONDS)
