"""``manage.py webpush_keys``: makes a key for web push, and counts the browsers of each."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from devices.push_keys import InvalidKeysError, new_key, read_keys
from devices.subscriptions import count_by_key

ROTATION = (
    "Put it first in WEBPUSH_KEYS, before the others, and restart. Browsers subscribe again when "
    "their page is next open, and until then get pushes by the key that they have. Remove a key "
    "once no browser has it."
)


class Command(BaseCommand):
    """Print a new key for WEBPUSH_KEYS, and how many active browsers each key has."""

    help = "Print a new key for WEBPUSH_KEYS, and how many active browsers each key has."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the key, and the browsers. Raises CommandError for unusable keys."""
        try:
            configured = read_keys(settings.WEBPUSH_KEYS)
        except InvalidKeysError as error:
            raise CommandError(str(error)) from error
        added = new_key()
        texts = [added.private_text, *(key.private_text for key in configured)]
        self.stdout.write(f"WEBPUSH_KEYS={','.join(texts)}")
        self.stdout.write(f"# Public key: {added.public_text}")
        self.stdout.write(f"# {ROTATION}")
        counts = count_by_key()
        known = [key.fingerprint for key in configured]
        for fingerprint in dict.fromkeys([*known, *sorted(counts)]):
            note = "" if fingerprint in known else ", not configured: they get no push"
            count = counts.get(fingerprint, 0)
            self.stdout.write(f"# {fingerprint}: {count} active browsers{note}")
