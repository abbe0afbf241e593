"""``manage.py rollup``: count the figures of a time again."""

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.metrics import INTERVAL_LENGTH, interval_start
from analytics.models import Interval
from domain.time import utc_now
from notifyproject.db.collections import collection

from ... import rollup

NOTHING_KEPT = "Nothing is kept of that time: its figures stay as they are."


class Command(BaseCommand):
    """Count figures again from the notifications and attempts that are kept."""

    help = (
        "Count the figures of a time again, minute by minute; without a time, bring them up to "
        "date. Doing it twice is doing it once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--since", type=_instant, metavar="TIME", help="2026-12-01T09:00:00Z")
        parser.add_argument("--until", type=_instant, metavar="TIME", help="default: now")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it."""
        now = utc_now()
        since, until = options["since"], options["until"] or now
        if since is None:
            if options["until"] is not None:
                raise CommandError("--until needs --since.")
            report = rollup.run(now=now)
            counted = report and report.counted
        else:
            counted = self._rebuild(since, until, now)
        if counted is None:
            raise CommandError("A roll-up is running: try again in a minute.")
        self.stdout.write(f"minutes counted: {counted}")

    def _rebuild(self, since: datetime, until: datetime, now: datetime) -> int | None:
        if until > now or since >= until:
            raise CommandError("Expected --since before --until, and neither in the future.")
        first = collection("notifications").find_one(
            {}, {"created_at": 1}, sort=[("created_at", 1)], hint="ntf_created"
        )
        if first is None or first["created_at"] > until:
            raise CommandError(NOTHING_KEPT)
        if first["created_at"] > since:
            # The hour in which what is kept begins may have lost its beginning.
            since = (
                interval_start(Interval.HOUR, first["created_at"]) + INTERVAL_LENGTH[Interval.HOUR]
            )
            self.stderr.write(f"Nothing is kept from before {since:%Y-%m-%d %H:%M}: from there.")
        if since >= until:
            raise CommandError(NOTHING_KEPT)
        return rollup.rebuild(since=since, until=until, now=now)


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
