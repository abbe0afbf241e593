"""``manage.py retain``: remove what old notifications say, as each category's retention says."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from domain.time import utc_now
from notifyproject.platform import clock_check

from ... import content_removal, purge


class Command(BaseCommand):
    """Do to the end what beat does every minute for a while."""

    help = (
        "Remove what notifications say whose category keeps it no longer; that there was one, and "
        "what became of it, stays. It may be stopped at any time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--dry-run", action="store_true", help="count, and change nothing")
        parser.add_argument(
            "--from-beginning",
            action="store_true",
            help="look also at what was looked at before, such as after a backup was restored",
        )
        parser.add_argument(
            "--existing",
            action="store_true",
            help="also give what is there already the time of deletion that retention says today",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Remove it, or count."""
        if not clock_check.is_right():
            raise CommandError(
                "The clock is wrong, or MongoDB doesn't respond: nothing is removed."
            )
        is_from_beginning: bool = options["from_beginning"]
        if options["dry_run"]:
            count = content_removal.count_expired_content(
                now=utc_now(), is_from_beginning=is_from_beginning
            )
            self.stdout.write(f"What {count} notifications say would be removed.")
            if options["existing"]:
                changes = purge.count_purge_date_changes(now=utc_now())
                self.stdout.write(
                    f"{changes.notifications} would be deleted at another time, {changes.deleted} "
                    "of them at once."
                )
            return
        report = content_removal.remove_expired_content(
            now=utc_now(), seconds=None, is_from_beginning=is_from_beginning
        )
        self.stdout.write(
            f"What {report.notifications} notifications said was removed, with the words of "
            f"{report.attempts} attempts."
        )
        if options["existing"]:
            changed = purge.backfill_purge_dates()
            self.stdout.write(f"{changed} are deleted at another time now, with their attempts.")
