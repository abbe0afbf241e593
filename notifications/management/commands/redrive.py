"""``manage.py redrive --channel email --code provider_error``: retry failures, after a preview."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from access.models import StaffUser
from domain.errors import FailureCode
from domain.states import BulkAction, BulkStage, Channel
from domain.time import InvalidTimeError, parse_timestamp, utc_now

from ...bulk import decisions, repository, runner, selection
from ...bulk import operation as bulk_operation
from ...bulk.decisions import StartOptions
from ...bulk.operation import Operation
from ...resend.actions import InvalidStateError, Staff
from ...resend.risk import RiskKind

PERMISSIONS = ("notifications.run_bulkoperation", "notifications.retry_notification")
POLL_SECONDS = 0.2


class Command(BaseCommand):
    """Preview a bulk retry of failed deliveries and, if it is confirmed, start it."""

    help = (
        "Count and judge failed deliveries, and print what a retry of each would be. With --yes "
        "those whose retry is safe are tried again in the background: see Bulk operations in the "
        "console. Without it nothing is changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--channel", choices=[channel.value for channel in Channel])
        parser.add_argument("--code", choices=[code.value for code in FailureCode])
        parser.add_argument("--since", metavar="TIME", help="such as 2026-12-01T09:00:00Z")
        parser.add_argument(
            "--per-second", type=int, default=bulk_operation.DEFAULT_PER_SECOND, metavar="N"
        )
        parser.add_argument("--by", metavar="USERNAME", help="the operator who asks for it")
        parser.add_argument("--reason", default="", help="why, for the record; with --yes")
        confirmation = parser.add_mutually_exclusive_group()
        confirmation.add_argument(
            "--dry-run", action="store_true", help="preview only, as without --yes"
        )
        confirmation.add_argument("--yes", action="store_true", help="start it")

    def handle(self, *args: Any, **options: Any) -> None:
        """Preview it, and start it if that was asked for."""
        by = self._find_staff(options)
        operation = self._preview(options, by)
        self._print_preview(operation)
        if not options["yes"]:
            decisions.discard(operation.id)
            self.stdout.write("Nothing was changed. Start it with --yes, --by and --reason.")
            return
        start_options = StartOptions(
            included_risks=frozenset({RiskKind.SAFE}),
            per_second=options["per_second"],
            reason=options["reason"],
        )
        try:
            decisions.start(operation.id, options=start_options, by=by, now=utc_now())
        except InvalidStateError as problem:
            decisions.discard(operation.id)
            raise CommandError(str(problem)) from problem
        self.stdout.write(f"Bulk operation {operation.id} is running: follow it in the console.")

    def _find_staff(self, options: dict[str, Any]) -> Staff:
        """Return who asks; raises CommandError unless they may, if it is to be started."""
        if options["by"] is None and not options["yes"]:
            return bulk_operation.UNKNOWN_STAFF
        user = StaffUser.objects.filter(username=options["by"] or "").first()
        if user is None or not user.has_perms(PERMISSIONS):
            raise CommandError("--by takes the name of an operator who may retry in bulk.")
        return Staff(id=user.pk, username=user.get_username())

    def _preview(self, options: dict[str, Any], by: Staff) -> Operation:
        """Return the operation with its preview, made in this process; raises CommandError."""
        try:
            since = parse_timestamp(options["since"]) if options["since"] else None
        except InvalidTimeError as problem:
            raise CommandError(f"--since: {problem}") from problem
        channel = Channel(options["channel"]) if options["channel"] else None
        failures = selection.select_failures(channel=channel, code=options["code"], since=since)
        operation = decisions.preview(
            action=BulkAction.RETRY, selection=failures, by=by, now=utc_now()
        )
        while operation.stage is BulkStage.PREVIEWING:
            if not runner.run(operation.id):
                # A worker was faster.
                time.sleep(POLL_SECONDS)
            found = repository.get(operation.id)
            if found is None:
                raise CommandError("The preview was deleted meanwhile.")
            operation = found
        if operation.stage is not BulkStage.READY:
            raise CommandError(operation.problem or "The preview was cancelled.")
        return operation

    def _print_preview(self, operation: Operation) -> None:
        """Print the preview."""
        prefix = "more than " if operation.is_capped else ""
        self.stdout.write(f"{prefix}{operation.found_count} notifications with failures:")
        for kind in RiskKind:
            if count := operation.preview_counts.get(kind):
                action = "would be retried" if kind is RiskKind.SAFE else "would be left out"
                self.stdout.write(f"{count:>8} {kind.value.replace('_', ' ')}: {action}")
        if operation.is_capped:
            self.stdout.write("Those are the oldest; the others are judged when their turn comes.")
