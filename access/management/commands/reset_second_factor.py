"""``manage.py reset_second_factor``: somebody of the staff has lost their phone and their codes."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ...models import StaffUser
from ...staff import second_factor


class Command(BaseCommand):
    """Forget a member of staff's second factor: they set up a new one when they sign in next."""

    help = "Forget somebody's second factor. Make sure first that it is them who asks."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("username")

    def handle(self, *args: Any, **options: Any) -> None:
        """Forget it."""
        user = StaffUser.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"There is nobody called {options['username']}.")
        was_removed = second_factor.remove(user.pk)
        self.stdout.write("Forgotten: they set up a new one." if was_removed else "There was none.")
