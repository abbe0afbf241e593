"""``manage.py redrive --channel email --code provider_error``: previews and retries failures."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from access.models import StaffUser
from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import BulkAction, BulkStage
from domain.time import InvalidTimeError, parse_timestamp, utc_now

from ...actions.actions import InvalidStateError, Staff
from ...actions.risk import RiskKind
from ...bulk import decisions, repository, runner, selection
from ...bulk import operation as bulk_operation
from ...bulk.decisions import StartOptions
from ...bulk.operation import Operation

PERMISSIONS = ("notifications.run_bulkoperation", "notifications.retry_notification")
POLL_SECONDS = 0.2


class Command(BaseCommand):
    """Previews a bulk retry of failed deliveries, and starts it with --yes."""

    help = (
        "Count failed deliveries by resend risk. With --yes, retry the safe ones in the "
        "background: see Bulk operations in the console. Without it, nothing is changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--channel", choices=[channel.value for channel in Channel])
        parser.add_argument("--code", choices=[code.value for code in FailureCode])
        parser.add_argument("--since", metavar="TIME", help="such as 2026-12-01T09:00:00Z")
        parser.add_argument(
            "--per-second", type=int, default=bulk_operation.DEFAULT_PER_SECOND, metavar="N"
        )
        parser.add_argument("--by", metavar="USERNAME", help="the operator, for the audit log")
        parser.add_argument(
            "--reason", default="", help="the reason, for the audit log; with --yes"
        )
        confirmation = parser.add_mutually_exclusive_group()
        confirmation.add_argument(
            "--dry-run", action="store_true", help="preview only, as without --yes"
        )
        confirmation.add_argument("--yes", action="store_true", help="start it")

    def handle(self, *args: Any, **options: Any) -> None:
        """Preview the retry, and start it with --yes."""
        by = self._find_staff(options)
        operation = self._preview(options, by)
        self._print_preview(operation)
        if not options["yes"]:
            repository.discard(operation.id)
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
            repository.discard(operation.id)
            raise CommandError(str(problem)) from problem
        self.stdout.write(f"Bulk operation {operation.id} is running: follow it in the console.")

    def _find_staff(self, options: dict[str, Any]) -> Staff:
        """Return the staff user of --by. Raises CommandError if they lack the permissions."""
        if options["by"] is None and not options["yes"]:
            return bulk_operation.UNKNOWN_STAFF
        user = StaffUser.objects.filter(username=options["by"] or "").first()
        if user is None or not user.has_perms(PERMISSIONS):
            raise CommandError("--by takes the username of an operator who can resend in bulk.")
        return Staff(id=user.pk, username=user.get_username())

    def _preview(self, options: dict[str, Any], by: Staff) -> Operation:
        """Run the preview in this process and return the operation. Raises CommandError."""
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
                # Another worker has the lease.
                time.sleep(POLL_SECONDS)
            found = repository.get(operation.id)
            if found is None:
                raise CommandError("The preview was deleted.")
            operation = found
        if operation.stage is not BulkStage.READY:
            raise CommandError(operation.problem or "The preview was cancelled.")
        return operation

    def _print_preview(self, operation: Operation) -> None:
        prefix = "more than " if operation.is_capped else ""
        self.stdout.write(f"{prefix}{operation.found_count} notifications with failures:")
        for kind in RiskKind:
            if count := operation.preview_counts.get(kind):
                action = "would be retried" if kind is RiskKind.SAFE else "would be skipped"
                self.stdout.write(f"{count:>8} {kind.value.replace('_', ' ')}: {action}")
        if operation.is_capped:
            self.stdout.write("Those are the oldest; the others are assessed while it runs.")
