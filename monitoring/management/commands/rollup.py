"""``manage.py rollup``: roll up again the metrics of a period."""

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from domain.time import utc_now
from notifications.documents.notification import NOTIFICATIONS
from notifications.queries import ANY_STATUS

from ... import rollup, rollup_state
from ...metrics import INTERVAL_LENGTH, interval_start
from ...models import Interval

NOTHING_KEPT = "No data is left of that period: its metrics stay unchanged."


class Command(BaseCommand):
    """Recount metrics from the notifications and attempts that retention has not deleted."""

    help = (
        "Count the metrics of a period again, minute by minute; without a period, roll up what has "
        "changed. Idempotent. A roll-up that was stopped runs again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--since", type=_instant, metavar="TIME", help="2026-12-01T09:00:00Z")
        parser.add_argument("--until", type=_instant, metavar="TIME", help="default: now")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command."""
        now = utc_now()
        since, until = options["since"], options["until"] or now
        if rollup_state.resume():
            self.stdout.write("The roll-up was stopped. It runs again.")
        if since is None:
            if options["until"] is not None:
                raise CommandError("--until needs --since.")
            report = rollup.run(now=now)
            counted = report and report.counted
        else:
            counted = self._rebuild(since, until, now)
        if counted is None:
            raise CommandError("A roll-up is running: retry in a minute.")
        self.stdout.write(f"minutes counted: {counted}")

    def _rebuild(self, since: datetime, until: datetime, now: datetime) -> int | None:
        if until > now or since >= until:
            raise CommandError("--since must be before --until, and neither in the future.")
        first = NOTIFICATIONS().find_one(
            {"status": ANY_STATUS},
            {"created_at": 1},
            sort=[("created_at", 1)],
            hint="ntf_status_created",
        )
        if first is None or first["created_at"] > until:
            raise CommandError(NOTHING_KEPT)
        if first["created_at"] > since:
            # The first hour with data may be incomplete.
            first_hour = interval_start(Interval.HOUR, first["created_at"])
            since = first_hour + INTERVAL_LENGTH[Interval.HOUR]
            self.stderr.write(f"No data before {since:%Y-%m-%d %H:%M}: starting there.")
        if since >= until:
            raise CommandError(NOTHING_KEPT)
        return rollup.rebuild(since=since, until=until, now=now)


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
