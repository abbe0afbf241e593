"""``manage.py after_restore``: prevents a restored backup from sending old messages again."""

from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from delivery.heartbeats import last_sweep, last_worker_heartbeat
from domain.states import BroadcastStatus, BulkStage
from domain.time import InvalidTimeError, parse_timestamp, utc_now
from notifications.broadcasts import approvals, control
from notifications.bulk import repository as bulk
from notifications.documents.broadcasts import BROADCASTS
from notifications.documents.bulk import OPERATIONS
from notifications.models.broadcasts import AWAITING
from notifications.store import recovery
from notifyproject.platform import clock_check

RUNNING = ("last sweep", last_sweep), ("last worker heartbeat", last_worker_heartbeat)


class Command(BaseCommand):
    """Give up what was due before the backup's installation stopped, and pause what was running."""

    help = (
        "Run this after restoring a backup and before starting workers and beat. Deliveries due "
        "before --stopped-at fail as outcome_unknown, because they may have been sent since the "
        "backup. Broadcasts and bulk operations that had begun are paused, and broadcasts that "
        "await an approval are drafts."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "--stopped-at",
            required=True,
            metavar="TIME",
            help="when the lost installation stopped, such as 2026-12-01T08:30:00Z",
        )
        parser.add_argument("--dry-run", action="store_true", help="count, and change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Give up and pause; in a dry run, count. Raises CommandError while workers run."""
        if not clock_check.is_right():
            raise CommandError(
                "The clock is wrong, or MongoDB doesn't respond. Nothing was changed."
            )
        now = utc_now()
        stopped_at = self._parse_time(options["stopped_at"], now)
        for name, last_seen in RUNNING:
            at = last_seen()
            if at is not None and at > stopped_at:
                raise CommandError(
                    f"The {name} was at {at:%Y-%m-%dT%H:%M:%SZ}, after --stopped-at. If the lost "
                    "installation ran until then, give that time or a later one; otherwise stop "
                    "workers, beats, and sweepers first."
                )
        broadcasts = list(
            BROADCASTS().find(
                {
                    "status": {"$in": [BroadcastStatus.SCHEDULED, BroadcastStatus.RUNNING]},
                    "due_at": {"$lte": stopped_at},
                },
                {"_id": 1},
            )
        )
        operations = list(OPERATIONS().find({"stage": BulkStage.RUNNING.value}, {"_id": 1}))
        if options["dry_run"]:
            given_up = recovery.count_due_before(stopped_at)
        else:
            for broadcast in broadcasts:
                control.pause(broadcast["_id"], now=now)
            for document in BROADCASTS().find(AWAITING, {"_id": 1}):
                approvals.withdraw_restored(document["_id"], now=now)
            for operation in operations:
                bulk.pause(operation["_id"], now=now)
            while recovery.expire_leases(now=now):
                continue
            given_up = recovery.give_up_due_before(stopped_at, now=now)
        prefix = "Would give up" if options["dry_run"] else "Gave up"
        self.stdout.write(
            f"{prefix} {given_up} notifications due before {stopped_at:%Y-%m-%d %H:%M:%S} UTC, "
            f"and pause{'' if options['dry_run'] else 'd'} {len(broadcasts)} broadcasts and "
            f"{len(operations)} bulk operations."
        )

    def _parse_time(self, text: str, now: datetime) -> datetime:
        try:
            stopped_at = parse_timestamp(text)
        except InvalidTimeError as problem:
            raise CommandError(f"--stopped-at: {problem}") from problem
        if stopped_at > now:
            raise CommandError("--stopped-at is in the future.")
        return stopped_at
