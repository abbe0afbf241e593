"""``manage.py notify``: sends one notification and follows its deliveries."""

import json
import time
from typing import Any

from bson import ObjectId
from django.core.management.base import BaseCommand, CommandError, CommandParser

from access.clients import registry
from domain.channels import Channel
from domain.states import OPEN, Priority
from domain.time import utc_now
from notifications.documents.notification import NotificationDocument
from notifications.documents.records import DeliveryAttemptDocument

from ... import queries, validation
from ...intake import acceptance as intake_acceptance
from ...intake.requests import (
    Caller,
    ContentRequest,
    NotificationRecipientRequest,
    NotificationRequest,
)

CLIENT_NAME = "command line"
POLL_SECONDS = 0.2


class Command(BaseCommand):
    """Sends one notification as a client would."""

    help = "Send one notification. With --wait, print its timeline until every channel has ended."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--type", required=True, help="a registered type: mfa_code")
        parser.add_argument("--user", metavar="USER_ID")
        parser.add_argument("--email")
        parser.add_argument("--phone", help="E.164: +351912345678")
        parser.add_argument("--name")
        parser.add_argument("--locale")
        parser.add_argument("--channels", nargs="+", choices=[c.value for c in Channel])
        parser.add_argument("--priority", choices=[p.value for p in Priority])
        parser.add_argument("--subject")
        parser.add_argument("--body")
        parser.add_argument("--at", metavar="TIME", help="2026-12-01T09:00:00Z; default: now")
        parser.add_argument(
            "--data",
            nargs="+",
            default=[],
            metavar="NAME=VALUE",
            help="variables for the template; a value that begins with { or [ is JSON",
        )
        parser.add_argument(
            "--wait", action="store_true", help="wait until every channel has ended"
        )
        parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS")

    def handle(self, *args: Any, **options: Any) -> None:
        """Send the notification."""
        request = NotificationRequest(
            type=options["type"],
            user_id=options["user"],
            recipient=NotificationRecipientRequest(
                email=options["email"],
                phone=options["phone"],
                name=options["name"],
                locale=options["locale"],
            ),
            channels=options["channels"],
            priority=options["priority"],
            content=ContentRequest(subject=options["subject"], body=options["body"]),
            data=dict(_parse_variable(text) for text in options["data"]),
            scheduled_at=options["at"],
        )
        now = utc_now()
        # The client of this command has no key.
        client_id = registry.find_client(CLIENT_NAME) or registry.create_client(
            name=CLIENT_NAME, scopes=[], now=now
        )
        try:
            acceptance = intake_acceptance.accept(
                request, caller=Caller(client_id=client_id, may_send_critical=True), now=now
            )
        except validation.InvalidRequestError as error:
            lines = [f"  {p.pointer.lstrip('/')}: {p.detail}" for p in error.problems]
            raise CommandError("\n".join(["The notification can't be sent:", *lines])) from None
        notification_id = acceptance.document["_id"]
        self.stdout.write(f"accepted {notification_id}")
        if options["wait"]:
            self._follow(notification_id, options["timeout"])

    def _follow(self, notification_id: ObjectId, timeout: float) -> None:
        """Print what happens until every channel has ended. Raises CommandError at the timeout."""
        deadline = time.monotonic() + timeout
        shown: set[tuple[str, ...]] = set()
        while True:
            document = queries.get(notification_id=notification_id)
            if document is None:
                raise CommandError("The notification was deleted.")
            for line in _timeline(document, queries.attempts_of(notification_id)):
                if line not in shown:
                    shown.add(line)
                    self.stdout.write("  ".join(line))
            if all(d["status"] not in OPEN for d in document["delivery"]):
                break
            if time.monotonic() > deadline:
                raise CommandError(f"Timed out after {timeout:.0f} s: {document['status']}.")
            time.sleep(POLL_SECONDS)
        self.stdout.write(f"{document['status']}")


def _timeline(
    document: NotificationDocument, attempts: list[DeliveryAttemptDocument]
) -> list[tuple[str, ...]]:
    events = [(document["created_at"], "accepted", "", "")]
    for attempt in attempts:
        attempt_name = f"{attempt['channel']} attempt {attempt['attempt_number']}"
        if attempt.get("finished_at") is not None:
            duration = f"{attempt.get('duration_ms', 0)} ms"
            reason = attempt.get("error_message") or duration
            events.append((attempt["finished_at"], attempt_name, attempt["status"], reason))
    for delivery in document["delivery"]:
        for at, name in (
            (delivery.get("delivered_at"), "delivered"),
            (delivery.get("read_at"), "read"),
            (delivery.get("failed_at"), "failed"),
        ):
            if at is not None:
                reason = delivery.get("failure_reason") or ""
                events.append((at, delivery["channel"], name, reason))
    events.sort(key=lambda event: event[0])
    return [(at.strftime("%H:%M:%S.%f")[:-3], *words) for at, *words in events]


def _parse_variable(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise CommandError(f"--data takes NAME=VALUE, not {text!r}.")
    if value[:1] in ("{", "["):
        try:
            return name, json.loads(value)
        except ValueError:
            raise CommandError(f"The value of {name} is not JSON.") from None
    return name, value
