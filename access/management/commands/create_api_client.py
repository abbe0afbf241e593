"""``manage.py create_api_client``: create an API client or issue a key to one."""

from argparse import ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from pymongo.errors import DuplicateKeyError

from ...clients import registry
from ...models import Scope

ALL_SCOPES = "all"
NEVER = "never"
MAX_DAYS = 3_650
DEFAULT_SCOPES = [Scope.NOTIFICATIONS_WRITE.value, Scope.NOTIFICATIONS_READ.value]


def _parse_days(text: str) -> timedelta | None:
    if text == NEVER:
        return None
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= MAX_DAYS:
        raise ArgumentTypeError(f"expected 1 to {MAX_DAYS} days, or {NEVER}")
    return timedelta(days=int(text))


class Command(BaseCommand):
    """Create an API client, or issue a key to an existing one, and print the key."""

    help = "Create an API client and print its key. The key is shown only once."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("name", help="name of the client")
        parser.add_argument(
            "--scopes",
            nargs="+",
            choices=[ALL_SCOPES, *(scope.value for scope in Scope)],
            default=DEFAULT_SCOPES,
            metavar="SCOPE",
            help=f"any of {', '.join(Scope)}, or {ALL_SCOPES}; default: {' '.join(DEFAULT_SCOPES)}",
        )
        parser.add_argument(
            "--test",
            action="store_true",
            help="send to the sandbox only; keys start with ntf_test_",
        )
        parser.add_argument(
            "--expires-in-days",
            type=_parse_days,
            default=registry.KEY_LIFETIME,
            metavar="N",
            help=f"a number of days, or {NEVER}; default: {registry.KEY_LIFETIME.days}",
        )
        existing = parser.add_mutually_exclusive_group()
        existing.add_argument(
            "--new-key", action="store_true", help="issue another key to an existing client"
        )
        existing.add_argument(
            "--replace-keys",
            action="store_true",
            help="create the client if it doesn't exist, and revoke its other keys",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Create the client or find it, and print a new key."""
        now = timezone.now()
        client_id = self._find_or_create_client(options, now)
        if options["replace_keys"]:
            registry.revoke_all_keys(client_id=client_id, now=now)
        try:
            key = registry.issue_key(
                client_id=client_id, now=now, lifetime=options["expires_in_days"]
            )
        except registry.TooManyKeysError as error:
            raise CommandError(str(error)) from None
        self.stderr.write("Copy this key now. You can't view it again.")
        self.stdout.write(key.text)

    def _find_or_create_client(self, options: Any, now: Any) -> Any:
        name = options["name"]
        if options["new_key"] and options["test"]:
            raise CommandError("--test requires a new client: a client can't change its mode.")
        if options["new_key"] or options["replace_keys"]:
            if (client_id := registry.find_client(name)) is not None:
                return client_id
            if options["new_key"]:
                raise CommandError(f"Unknown client: {name}.")
        names = options["scopes"]
        scopes = list(Scope) if ALL_SCOPES in names else [Scope(name) for name in names]
        try:
            return registry.create_client(
                name=name, scopes=scopes, is_test=options["test"], now=now
            )
        except DuplicateKeyError:
            raise CommandError(
                f"The client {name} already exists. Use --new-key to issue another key."
            ) from None
