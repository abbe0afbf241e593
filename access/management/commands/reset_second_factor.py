"""``manage.py reset_second_factor``: remove the second factor of a member of staff."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ...models import StaffUser
from ...staff import second_factor


class Command(BaseCommand):
    """Remove a staff user's second factor. They set up a new one at the next sign-in."""

    help = "Remove a user's second factor. Verify the identity of the requester first."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("username")

    def handle(self, *args: Any, **options: Any) -> None:
        """Remove the second factor."""
        user = StaffUser.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"Unknown user: {options['username']}.")
        was_removed = second_factor.remove(user.pk)
        self.stdout.write("Second factor removed." if was_removed else "No second factor.")
