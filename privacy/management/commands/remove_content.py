"""``manage.py remove_content``: apply the retention policies to old notifications."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from domain.time import utc_now
from notifyproject.platform import clock_check

from ... import content_removal, purge


class Command(BaseCommand):
    """Remove all expired content. Beat does the same every minute, for a limited time."""

    help = (
        "Remove the content of notifications whose retention has ended; the notifications and "
        "their results stay. Safe to interrupt."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--dry-run", action="store_true", help="count, and change nothing")
        parser.add_argument(
            "--from-beginning",
            action="store_true",
            help="ignore the stored progress, such as after a restored backup",
        )
        parser.add_argument(
            "--existing",
            action="store_true",
            help="also set the purge dates of existing notifications by today's retention",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Remove content whose retention has ended; in a dry run, count it."""
        if not clock_check.is_right():
            raise CommandError(
                "The clock is wrong, or MongoDB doesn't respond. Nothing was removed."
            )
        is_from_beginning: bool = options["from_beginning"]
        if options["dry_run"]:
            count = content_removal.count_expired_content(
                now=utc_now(), is_from_beginning=is_from_beginning
            )
            self.stdout.write(f"The content of {count} notifications would be removed.")
            if options["existing"]:
                changes = purge.count_purge_date_changes(now=utc_now())
                self.stdout.write(
                    f"{changes.notifications} purge dates would change; {changes.deleted} of these "
                    "notifications would be deleted at once."
                )
            return
        report = content_removal.remove_expired_content(
            now=utc_now(), seconds=None, is_from_beginning=is_from_beginning
        )
        self.stdout.write(
            f"Removed the content of {report.notifications} notifications and of "
            f"{report.attempts} attempts."
        )
        if options["existing"]:
            changed = purge.backfill_purge_dates()
            self.stdout.write(f"{changed} purge dates changed.")
