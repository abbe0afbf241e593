"""``manage.py stack``: the local stack."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ...stack import running
from ...stack.prerequisites import MissingLibraryError
from ...stack.servers import MissingServerError, ServerFailedError
from ...stack.supervisor import ProgramFailedError

PROBLEMS = (
    running.StackError,
    MissingServerError,
    MissingLibraryError,
    ServerFailedError,
    ProgramFailedError,
)


class Command(BaseCommand):
    """Start mongod, Valkey, the sandbox, web, worker, and beat, or stop them."""

    help = "Run the whole service on this machine until Ctrl-C."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument(
            "--no-examples", action="store_true", help="send no examples at the first start"
        )
        parser.add_argument("--stop", action="store_true", help="stop one in the background")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run or stop the stack."""
        try:
            if options["stop"]:
                stopped = running.down()
                self.stdout.write("Stopped." if stopped else "No stack is running.")
            else:
                running.up(port=options["port"], with_examples=not options["no_examples"])
        except PROBLEMS as problem:
            raise CommandError(str(problem)) from None
