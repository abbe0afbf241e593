"""``manage.py reencrypt``: encrypts stored values under the newest key."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from access.staff import second_factor
from callbacks import subscriptions
from devices import subscriptions as subscriptions_of_browsers
from notifications.files import parts as files
from notifications.store import encrypted_content
from notifyproject.platform import encryption
from rooms import registry as rooms

Values = Callable[[], Iterator[tuple[str, Callable[[], bool]]]]
STORED: dict[str, Values] = {
    "second factors": second_factor.encrypted_keys,
    "callback secrets": subscriptions.encrypted_secrets,
    "targets and secrets of rooms": rooms.encrypted_values,
    "sensitive contents": encrypted_content.encrypted_contents,
    "parts of files": files.encrypted_parts,
    "subscriptions of browsers": subscriptions_of_browsers.encrypted_subscriptions,
}
"""Everything that is stored encrypted, by what it is."""


class Command(BaseCommand):
    """Encrypt every stored value under the first of FIELD_ENCRYPTION_KEYS."""

    help = (
        "Encrypt stored values of older keys under the first of FIELD_ENCRYPTION_KEYS, and print "
        "how many each key has. Safe beside running processes, and to interrupt."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--dry-run", action="store_true", help="count, and change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the values of each key. Raises CommandError if a value can't be decrypted."""
        newest, unreadable = encryption.newest_key_id(), 0
        for name, values in STORED.items():
            by_key: Counter[str] = Counter()
            changed = 0
            for stored, reencrypt in values():
                key_id = encryption.key_id_of(stored)
                if key_id != newest and not options["dry_run"]:
                    try:
                        changed += reencrypt()
                        # A value that changed meanwhile was encrypted under the newest key.
                        key_id = newest
                    except encryption.DecryptionError:
                        unreadable += 1
                by_key[key_id] += 1
            counts = ", ".join(f"{count} under {key}" for key, count in sorted(by_key.items()))
            self.stdout.write(f"{name}: {counts or 'none'}; {changed} re-encrypted")
        if unreadable:
            raise CommandError(f"{unreadable} values can't be decrypted: a key isn't listed.")
