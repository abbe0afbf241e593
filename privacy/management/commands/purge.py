"""``manage.py purge --older-than-days 30``: delete notifications that ended long ago."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from domain.time import utc_now
from notifyproject.platform import clock_check

from ... import purge
from ...purge import MAX_DAYS, MIN_DAYS


class Command(BaseCommand):
    """Delete old notifications that have ended, of all API clients."""

    help = (
        "Delete notifications that have ended and not changed for the given time, with their "
        "attempts. Metrics stay. Safe to interrupt."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--older-than-days", type=int, required=True, metavar="N")
        parser.add_argument("--dry-run", action="store_true", help="count, and delete nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Delete notifications, or count them."""
        if not clock_check.is_right():
            raise CommandError(
                "The clock is wrong, or MongoDB doesn't respond. Nothing was deleted."
            )
        days: int = options["older_than_days"]
        if not MIN_DAYS <= days <= MAX_DAYS:
            raise CommandError(f"--older-than-days takes {MIN_DAYS} to {MAX_DAYS}.")
        work = purge.count_purgeable if options["dry_run"] else purge.purge_notifications
        report = work(client_id=None, older_than=timedelta(days=days), at_most=None, now=utc_now())
        if options["dry_run"]:
            self.stdout.write(f"{report.notifications} notifications would be deleted.")
        else:
            self.stdout.write(
                f"{report.notifications} notifications deleted, with {report.attempts} attempts."
            )
